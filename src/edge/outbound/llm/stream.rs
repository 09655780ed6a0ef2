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

use super::chunk::{CallFragment, Chunk, ChunkPart};
use super::error::AnswerError;
use super::order::AnswerOrder;
use super::rate_limit::rate_limits;
use super::reasoning::ReasoningFilter;
use super::sse::SseParser;
use super::{ChatDelta, ChatTimeouts, completions, responses};
use crate::config::LlmApi;
use crate::edge::outbound::http::{CallError, Reply};
use crate::message::{FinishReason, TokenUsage};

/// Wait for the usage after the answer has ended. Only the usage can be lost by the time-out.
const USAGE_WAIT: Duration = Duration::from_millis(300);

/// Wait for the end of the body after `[DONE]`, so that the connection can serve the next turn. The end comes in the
/// same packet in practice.
const BODY_END_WAIT: Duration = Duration::from_millis(20);

/// Longest reasoning without a word of the answer, bytes (some 16,000 tokens): a model that goes on has lost its way.
const REASONING_BYTES_MAX: usize = 64 * 1_024;

/// A response whose headers have come.
pub(super) struct Opened {
    pub(super) reply: Reply,
    /// API of the events.
    pub(super) api: LlmApi,
}

/// One completion. Dropping the stream, at any moment, closes its socket.
pub struct ChatStream {
    phase: StreamPhase,
    timeouts: ChatTimeouts,
    /// Time by which the next token must be there; set by the first call of [`ChatStream::next`].
    deadline: Option<Instant>,
    /// True once a token has come.
    begun: bool,
    parser: SseParser,
    filter: ReasoningFilter,
    order: AnswerOrder,
    /// Bytes of reasoning since the last text or call.
    reasoning_bytes: usize,
    finish: Option<FinishReason>,
    usage: TokenUsage,
    /// Deltas that have arrived and not been returned; an error or [`ChatDelta::Done`] is the last.
    ready: VecDeque<Result<ChatDelta, CallError>>,
}

enum StreamPhase {
    Opening(Pin<Box<dyn Future<Output = Result<Opened, CallError>> + Send>>),
    Open(Box<Opened>),
    /// [`ChatDelta::Done`] or an error has been returned.
    Ended,
}

impl ChatStream {
    pub(super) fn opening(
        opening: impl Future<Output = Result<Opened, CallError>> + Send + 'static,
        timeouts: ChatTimeouts,
    ) -> Self {
        Self {
            phase: StreamPhase::Opening(Box::pin(opening)),
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

    /// Waits for the next delta. Cancel safe: a call that is dropped loses nothing.
    ///
    /// # Errors
    /// Each of [`CallError`], after all text that came before it; the stream has ended then. A call after the end is
    /// [`CallError::Broken`].
    pub async fn next(&mut self) -> Result<ChatDelta, CallError> {
        while self.ready.is_empty() {
            if let Err(error) = self.advance().await {
                self.ready.push_back(Err(error));
            }
        }
        match self.ready.front() {
            Some(Ok(ChatDelta::Done { .. })) => self.close().await,
            Some(Err(_)) => self.phase = StreamPhase::Ended,
            _ => {}
        }
        self.ready.pop_front().expect("the loop ends with something")
    }

    /// Waits for the next thing to happen on the socket.
    async fn advance(&mut self) -> Result<(), CallError> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.timeouts.first_token);
        match &mut self.phase {
            StreamPhase::Opening(opening) => match timeout_at(deadline, opening).await {
                Ok(opened) => {
                    let opened = opened?;
                    let limits = rate_limits(opened.reply.headers());
                    self.ready.extend(limits.map(|limits| Ok(ChatDelta::RateLimits(limits))));
                    self.phase = StreamPhase::Open(Box::new(opened));
                }
                Err(_) => return self.silence(),
            },
            StreamPhase::Open(opened) => {
                let api = opened.api;
                match timeout_at(deadline, opened.reply.chunk()).await {
                    Ok(Ok(Some(bytes))) => self.read(&bytes, api)?,
                    Ok(Ok(None)) => self.end_of_body(api)?,
                    // After the answer's end a torn connection is as good as a closed one.
                    Ok(Err(_)) if self.finish.is_some() => self.done()?,
                    Ok(Err(error)) => return Err(error),
                    Err(_) => return self.silence(),
                }
            }
            StreamPhase::Ended => return Err(CallError::Broken("it was read after its end".to_owned())),
        }
        Ok(())
    }

    /// Handles a deadline until which nothing came.
    fn silence(&mut self) -> Result<(), CallError> {
        if self.finish.is_some() {
            self.done()
        } else if self.begun {
            Err(CallError::Stalled(self.timeouts.between_tokens))
        } else {
            Err(CallError::Timeout(self.timeouts.first_token))
        }
    }

    fn read(&mut self, bytes: &[u8], api: LlmApi) -> Result<(), CallError> {
        let mut events = Vec::new();
        let outcome = self.parser.feed(bytes, |event| events.push(event));
        if self.events(events, api)? {
            return self.done();
        }
        Ok(outcome.map_err(AnswerError::from)?)
    }

    fn end_of_body(&mut self, api: LlmApi) -> Result<(), CallError> {
        let mut events = Vec::new();
        self.parser.finish(|event| events.push(event));
        self.events(events, api)?;
        if self.finish.is_none() {
            return Err(CallError::Broken("it closed before the answer was complete".to_owned()));
        }
        self.done()
    }

    /// Reads `events`; returns true if they hold the API's end mark. Events behind the mark are not read.
    fn events(&mut self, events: Vec<Vec<u8>>, api: LlmApi) -> Result<bool, CallError> {
        for event in events {
            let event = event.trim_ascii();
            if event == b"[DONE]" {
                // Some servers never name a reason; the end mark is one.
                self.finish.get_or_insert(FinishReason::Stop);
                return Ok(true);
            }
            if !event.is_empty() && self.chunk(parse(api, event)?)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the parts of an event; returns true if nothing follows.
    fn chunk(&mut self, chunk: Chunk) -> Result<bool, CallError> {
        for piece in chunk.pieces {
            self.begun = true;
            self.deadline = Some(Instant::now() + self.timeouts.between_tokens);
            match piece {
                ChunkPart::Text(text) => self.text(&text)?,
                ChunkPart::Reasoning(bytes) => self.thought(bytes)?,
                ChunkPart::Call(fragment) => self.call(fragment)?,
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

    fn text(&mut self, written: &str) -> Result<(), CallError> {
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

    fn thought(&mut self, bytes: usize) -> Result<(), CallError> {
        self.reasoning_bytes += bytes;
        if self.reasoning_bytes > REASONING_BYTES_MAX {
            let problem = format!("more than {REASONING_BYTES_MAX} bytes of reasoning without an answer");
            return Err(CallError::Broken(problem));
        }
        self.ready.push_back(Ok(ChatDelta::Reasoning));
        Ok(())
    }

    fn call(&mut self, fragment: CallFragment) -> Result<(), CallError> {
        self.reasoning_bytes = 0;
        self.flush_filter()?;
        self.order(|order, deltas| order.call(fragment, deltas))
    }

    /// Hands out text that looked like the beginning of a tag, since no more text comes for now.
    fn flush_filter(&mut self) -> Result<(), CallError> {
        let mut text = String::new();
        self.filter.finish(&mut text);
        if text.is_empty() { Ok(()) } else { self.order(|order, deltas| order.text(text, deltas)) }
    }

    fn order(
        &mut self,
        take: impl FnOnce(&mut AnswerOrder, &mut Vec<ChatDelta>) -> Result<(), AnswerError>,
    ) -> Result<(), CallError> {
        let mut deltas = Vec::new();
        let outcome = take(&mut self.order, &mut deltas);
        self.ready.extend(deltas.into_iter().map(Ok));
        Ok(outcome?)
    }

    /// Completes the answer: hands out the parts that were held back, then the end.
    fn done(&mut self) -> Result<(), CallError> {
        self.flush_filter()?;
        let finish = self.finish.expect("only called after the answer has ended");
        let is_cut = finish != FinishReason::Stop;
        self.order(|order, deltas| order.finish(is_cut, deltas))?;
        self.ready.push_back(Ok(ChatDelta::Done { finish, usage: self.usage }));
        Ok(())
    }

    /// Reads the end of the body, if it is there, so that the connection goes back to the idle ones.
    async fn close(&mut self) {
        if let StreamPhase::Open(opened) = &mut self.phase {
            // After an error, or without an end in time, the drop closes the connection.
            let _ =
                timeout(BODY_END_WAIT, async { while let Ok(Some(_)) = opened.reply.chunk().await {} }).await;
        }
        self.phase = StreamPhase::Ended;
    }
}

/// Reads the data of one event.
fn parse(api: LlmApi, event: &[u8]) -> Result<Chunk, AnswerError> {
    match api {
        LlmApi::Chat => completions::parse_event(event),
        LlmApi::Responses => responses::parse_event(event),
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
