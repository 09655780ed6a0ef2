//! One completion as it arrives.
#![expect(
    clippy::disallowed_methods,
    reason = "edge zone: time-outs of the HTTP stream are set on the runtime's clock"
)]

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::chunk::{CallFragment, Chunk, Piece};
use super::order::AnswerOrder;
use super::rate_limit::rate_limits;
use super::reasoning::ReasoningFilter;
use super::sse::SseParser;
use super::{ChatDelta, ChatError, ChatTimeouts, root_cause};
use crate::message::{FinishReason, TokenUsage};

/// How long the usage is waited for after the answer has ended. Only the usage can be lost by it.
const USAGE_WAIT: Duration = Duration::from_millis(300);

/// How long the end of the body is waited for after `[DONE]`, so that the connection can serve the next turn. It
/// comes in the same packet in practice.
const BODY_END_WAIT: Duration = Duration::from_millis(20);

/// Longest reasoning without a word of the answer, bytes (some 16,000 tokens): a model that goes on has lost its way.
const REASONING_BYTES_MAX: usize = 64 * 1_024;

/// Reads the data of one event; the error says what is wrong with it, or what the server says is.
pub(super) type ParseEvent = fn(&[u8]) -> Result<Chunk, String>;

/// A response whose headers have come, and how its events are read.
pub(super) struct Opened {
    pub(super) response: reqwest::Response,
    pub(super) parse: ParseEvent,
}

type Opening = Pin<Box<dyn Future<Output = Result<Opened, ChatError>> + Send>>;

/// One completion. Dropping it, at any moment, closes its socket.
pub struct ChatStream {
    phase: Phase,
    timeouts: ChatTimeouts,
    /// When the next token must be there; set by the first call of [`ChatStream::next`].
    deadline: Option<Instant>,
    /// A token has come.
    begun: bool,
    parser: SseParser,
    filter: ReasoningFilter,
    order: AnswerOrder,
    /// Bytes of reasoning since the last text or call.
    reasoning_bytes: usize,
    finish: Option<FinishReason>,
    usage: TokenUsage,
    /// What has arrived and not been returned; an error or [`ChatDelta::Done`] is the last.
    ready: VecDeque<Result<ChatDelta, ChatError>>,
}

enum Phase {
    Opening(Opening),
    Open(Box<Opened>),
    /// [`ChatDelta::Done`] or an error has been returned.
    Ended,
}

impl ChatStream {
    pub(super) fn opening(opening: Opening, timeouts: ChatTimeouts) -> Self {
        Self {
            phase: Phase::Opening(opening),
            timeouts,
            deadline: None,
            begun: false,
            parser: SseParser::default(),
            filter: ReasoningFilter::default(),
            order: AnswerOrder::default(),
            reasoning_bytes: 0,
            finish: None,
            usage: TokenUsage::default(),
            ready: VecDeque::new(),
        }
    }

    /// The next delta. Cancel safe: a call that is dropped loses nothing.
    ///
    /// # Errors
    /// Each of [`ChatError`], after all text that came before it; the stream has ended then. A call after the end is
    /// [`ChatError::Broken`].
    pub async fn next(&mut self) -> Result<ChatDelta, ChatError> {
        while self.ready.is_empty() {
            if let Err(error) = self.advance().await {
                self.ready.push_back(Err(error));
            }
        }
        match self.ready.front() {
            Some(Ok(ChatDelta::Done { .. })) => self.close().await,
            Some(Err(_)) => self.phase = Phase::Ended,
            _ => {}
        }
        self.ready.pop_front().expect("the loop ends with something")
    }

    /// Waits for the next thing to happen on the socket.
    async fn advance(&mut self) -> Result<(), ChatError> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.timeouts.first_token);
        match &mut self.phase {
            Phase::Opening(opening) => match timeout_at(deadline, opening).await {
                Ok(opened) => {
                    let opened = opened?;
                    let limits = rate_limits(opened.response.headers());
                    self.ready.extend(limits.map(|limits| Ok(ChatDelta::RateLimits(limits))));
                    self.phase = Phase::Open(Box::new(opened));
                }
                Err(_) => return self.silence(),
            },
            Phase::Open(opened) => {
                match (timeout_at(deadline, opened.response.chunk()).await, opened.parse) {
                    (Ok(Ok(Some(bytes))), parse) => self.read(&bytes, parse)?,
                    (Ok(Ok(None)), parse) => self.end_of_body(parse)?,
                    // After the answer's end a torn connection is as good as a closed one.
                    (Ok(Err(_)), _) if self.finish.is_some() => self.done()?,
                    (Ok(Err(error)), _) => return Err(ChatError::Broken(root_cause(&error))),
                    (Err(_), _) => return self.silence(),
                }
            }
            Phase::Ended => return Err(ChatError::Broken("it was read after its end".to_owned())),
        }
        Ok(())
    }

    /// Nothing came until the deadline.
    fn silence(&mut self) -> Result<(), ChatError> {
        if self.finish.is_some() {
            self.done()
        } else if self.begun {
            Err(ChatError::Stalled(self.timeouts.between_tokens))
        } else {
            Err(ChatError::FirstTokenTimeout(self.timeouts.first_token))
        }
    }

    fn read(&mut self, bytes: &[u8], parse: ParseEvent) -> Result<(), ChatError> {
        let mut events = Vec::new();
        let outcome = self.parser.feed(bytes, |event| events.push(event));
        if self.events(events, parse)? {
            return self.done();
        }
        outcome.map_err(|error| ChatError::Broken(error.to_string()))
    }

    fn end_of_body(&mut self, parse: ParseEvent) -> Result<(), ChatError> {
        let mut events = Vec::new();
        self.parser.finish(|event| events.push(event));
        self.events(events, parse)?;
        if self.finish.is_none() {
            return Err(ChatError::Broken("it closed before the answer was complete".to_owned()));
        }
        self.done()
    }

    /// Whether `events` end with the API's end mark; what follows that is not read.
    fn events(&mut self, events: Vec<Vec<u8>>, parse: ParseEvent) -> Result<bool, ChatError> {
        for event in events {
            let event = event.trim_ascii();
            if event == b"[DONE]" {
                // Some servers never name a reason; saying that they are done is one.
                self.finish.get_or_insert(FinishReason::Stop);
                return Ok(true);
            }
            if !event.is_empty() && self.chunk(parse(event).map_err(ChatError::Broken)?)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether nothing follows.
    fn chunk(&mut self, chunk: Chunk) -> Result<bool, ChatError> {
        for piece in chunk.pieces {
            self.begun = true;
            self.deadline = Some(Instant::now() + self.timeouts.between_tokens);
            match piece {
                Piece::Text(text) => self.text(&text)?,
                Piece::Reasoning(bytes) => self.thought(bytes)?,
                Piece::Call(fragment) => self.call(fragment)?,
            }
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage;
        }
        if self.finish.is_none() && chunk.finish.is_some() {
            self.finish = chunk.finish;
            self.deadline = Some(Instant::now() + USAGE_WAIT);
        }
        Ok(chunk.is_last)
    }

    fn text(&mut self, written: &str) -> Result<(), ChatError> {
        let thought_before = self.filter.is_inside();
        let mut text = String::new();
        self.filter.feed(written, &mut text);
        if !text.is_empty() {
            self.reasoning_bytes = 0;
            self.order(|order, deltas| order.text(text, deltas))
        } else if thought_before || self.filter.is_inside() {
            self.thought(if thought_before { written.len() } else { 0 })
        } else {
            Ok(())
        }
    }

    fn thought(&mut self, bytes: usize) -> Result<(), ChatError> {
        self.reasoning_bytes += bytes;
        if self.reasoning_bytes > REASONING_BYTES_MAX {
            let problem = format!("more than {REASONING_BYTES_MAX} bytes of reasoning without an answer");
            return Err(ChatError::Broken(problem));
        }
        self.ready.push_back(Ok(ChatDelta::Reasoning));
        Ok(())
    }

    fn call(&mut self, fragment: CallFragment) -> Result<(), ChatError> {
        self.reasoning_bytes = 0;
        self.flush_filter()?;
        self.order(|order, deltas| order.call(fragment, deltas))
    }

    /// No more text comes for now: what looked like the beginning of a tag is none.
    fn flush_filter(&mut self) -> Result<(), ChatError> {
        let mut text = String::new();
        self.filter.finish(&mut text);
        if text.is_empty() { Ok(()) } else { self.order(|order, deltas| order.text(text, deltas)) }
    }

    fn order(
        &mut self,
        take: impl FnOnce(&mut AnswerOrder, &mut Vec<ChatDelta>) -> Result<(), String>,
    ) -> Result<(), ChatError> {
        let mut deltas = Vec::new();
        let outcome = take(&mut self.order, &mut deltas);
        self.ready.extend(deltas.into_iter().map(Ok));
        outcome.map_err(ChatError::Broken)
    }

    /// The answer is complete: what was held back, then the end.
    fn done(&mut self) -> Result<(), ChatError> {
        self.flush_filter()?;
        let finish = self.finish.expect("only called after the answer has ended");
        let is_cut = finish != FinishReason::Stop;
        self.order(|order, deltas| order.finish(is_cut, deltas))?;
        self.ready.push_back(Ok(ChatDelta::Done { finish, usage: self.usage }));
        Ok(())
    }

    /// Reads the end of the body, if it is there, so that the connection goes back to the idle ones.
    async fn close(&mut self) {
        if let Phase::Open(opened) = &mut self.phase {
            // An error and no end alike: the connection is closed by the drop.
            let _ =
                timeout(BODY_END_WAIT, async { while let Ok(Some(_)) = opened.response.chunk().await {} })
                    .await;
        }
        self.phase = Phase::Ended;
    }
}

impl std::fmt::Debug for ChatStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatStream")
            .field("begun", &self.begun)
            .field("finish", &self.finish)
            .finish_non_exhaustive()
    }
}
