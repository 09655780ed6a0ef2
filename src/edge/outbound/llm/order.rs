//! Text and calls in order, from an answer whose calls interleave.

use serde::de::IgnoredAny;

use super::ChatDelta;
use super::chunk::CallFragment;
use super::error::AnswerError;

/// Most function names and arguments of one answer, bytes, text between its calls included (some 16,000 tokens).
const CALL_BYTES_MAX: usize = 64 * 1_024;

/// Most calls of one answer. Source: the API's limit on the tools of a request, of which a model may call each.
const CALLS_MAX: usize = 128;

/// Arguments of a call for which the model wrote none: models call functions without parameters so, and clients parse
/// JSON.
const NO_ARGUMENTS: &str = "{}";

/// Queue that puts text and calls into the order in which they began, also if the server interleaves them.
///
/// The first part that is not complete goes out as it arrives; those behind it wait. A call is complete when the server
/// marks it as such, when its arguments are a whole JSON object and something else has begun, and at the end of the
/// answer.
#[derive(Debug, Default)]
pub(super) struct AnswerOrder {
    /// All parts from the first call on.
    parts: Vec<AnswerPart>,
    /// Index of the first part that has not gone out.
    front: usize,
    /// Bytes of all parts.
    bytes: usize,
}

#[derive(Debug)]
enum AnswerPart {
    Call(PendingCall),
    Text(String),
}

impl AnswerOrder {
    /// Takes text of the answer, not empty.
    ///
    /// # Errors
    /// [`AnswerError::CallBytes`] if too much text waits for calls, [`AnswerError::NamelessCall`].
    pub(super) fn text(&mut self, text: String, deltas: &mut Vec<ChatDelta>) -> Result<(), AnswerError> {
        self.advance(true, deltas)?;
        if self.front == self.parts.len() {
            deltas.push(ChatDelta::Text(text));
            return Ok(());
        }
        self.count(text.len())?;
        match self.parts.last_mut() {
            Some(AnswerPart::Text(waiting)) => waiting.push_str(&text),
            _ => self.parts.push(AnswerPart::Text(text)),
        }
        Ok(())
    }

    /// Takes a part of a call.
    ///
    /// # Errors
    /// [`AnswerError`] for too many bytes or calls, or a call without a name.
    pub(super) fn call(
        &mut self,
        fragment: CallFragment,
        deltas: &mut Vec<ChatDelta>,
    ) -> Result<(), AnswerError> {
        self.count(fragment.name.as_ref().map_or(0, String::len) + fragment.arguments.len())?;
        if let Some(call) = self.place(&fragment) {
            call.append(fragment);
        } else if self.parts.iter().filter(|part| matches!(part, AnswerPart::Call(_))).count() == CALLS_MAX {
            return Err(AnswerError::Calls(CALLS_MAX));
        } else {
            self.parts.push(AnswerPart::Call(PendingCall::new(fragment)));
        }
        self.advance(false, deltas)
    }

    /// Ends the answer. `is_cut` is true if the model did not end the answer itself. A call that was cut gets no end,
    /// and the parts behind it are dropped.
    ///
    /// # Errors
    /// [`AnswerError::NamelessCall`].
    pub(super) fn finish(&mut self, is_cut: bool, deltas: &mut Vec<ChatDelta>) -> Result<(), AnswerError> {
        for part in self.parts.drain(..).skip(self.front) {
            match part {
                AnswerPart::Text(text) => deltas.push(ChatDelta::Text(text)),
                AnswerPart::Call(mut call) => {
                    call.hand_out(deltas);
                    if is_cut && !call.is_complete(true) {
                        break;
                    }
                    call.end(deltas)?;
                }
            }
        }
        self.front = 0;
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), AnswerError> {
        self.bytes += bytes;
        if self.bytes > CALL_BYTES_MAX {
            return Err(AnswerError::CallBytes(CALL_BYTES_MAX));
        }
        Ok(())
    }

    /// Hands out the parts that are due. `text_follows` is true if something other than a call has begun.
    fn advance(&mut self, text_follows: bool, deltas: &mut Vec<ChatDelta>) -> Result<(), AnswerError> {
        let count = self.parts.len();
        while let Some(part) = self.parts.get_mut(self.front) {
            match part {
                AnswerPart::Text(text) => deltas.push(ChatDelta::Text(std::mem::take(text))),
                AnswerPart::Call(call) => {
                    call.hand_out(deltas);
                    if !call.is_complete(text_follows || self.front + 1 < count) {
                        return Ok(());
                    }
                    call.end(deltas)?;
                }
            }
            self.front += 1;
        }
        Ok(())
    }

    /// Finds the call that `fragment` belongs to; `None` if the fragment begins a call.
    ///
    /// Servers number calls, or name them, or neither; some give every call the number 0, and some repeat the function's
    /// name, or make up another id, with every piece.
    fn place(&mut self, fragment: &CallFragment) -> Option<&mut PendingCall> {
        let mut calls = self.parts.iter_mut().rev().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call),
            AnswerPart::Text(_) => None,
        });
        let found = match (fragment.index, &fragment.id) {
            (Some(index), _) => calls.find(|call| call.index == Some(index)),
            (None, Some(id)) if fragment.name.is_some() => {
                calls.find(|call| call.id.as_ref().is_none_or(|known| known == id))
            }
            // A piece without a function's name continues a call.
            (None, Some(id)) => {
                let mut calls: Vec<_> = calls.collect();
                let place = calls.iter().position(|call| call.id.as_ref() == Some(id)).unwrap_or(0);
                (place < calls.len()).then(|| calls.swap_remove(place))
            }
            (None, None) => calls.next(),
        };
        found.filter(|call| !call.is_followed_by(fragment))
    }
}

#[derive(Debug, Default)]
struct PendingCall {
    index: Option<u32>,
    id: Option<String>,
    name: String,
    arguments: String,
    /// True once the name has gone out.
    begun: bool,
    /// Bytes of the arguments that have gone out.
    handed_out: usize,
    /// True once the server has marked the call as complete.
    is_whole: bool,
    /// True once the end has gone out. What comes later is white space, or of no use.
    ended: bool,
}

impl PendingCall {
    fn new(fragment: CallFragment) -> Self {
        let mut call = Self { index: fragment.index, ..Self::default() };
        call.append(fragment);
        call
    }

    fn append(&mut self, fragment: CallFragment) {
        if self.ended {
            return;
        }
        self.id = self.id.take().or(fragment.id);
        if let Some(name) = fragment.name
            && self.arguments.trim().is_empty()
            && name != self.name
        {
            self.name.push_str(&name);
        }
        if !fragment.is_whole {
            self.arguments.push_str(&fragment.arguments);
        } else if self.arguments.is_empty() {
            self.arguments = fragment.arguments;
        }
        self.is_whole |= fragment.is_whole;
    }

    /// Returns true if `fragment`, which has this call's number or none, begins another call.
    fn is_followed_by(&self, fragment: &CallFragment) -> bool {
        let Some(name) = &fragment.name else { return false };
        if fragment.is_whole && (fragment.index.is_some() || fragment.id.is_some()) {
            // The call that was streamed, once more.
            return false;
        }
        let is_other = fragment.id.is_none() || fragment.id != self.id;
        if self.arguments.trim().is_empty() && !self.is_whole {
            // A name may come in pieces, or again. With another id and another function, the fragment begins another
            // call.
            fragment.id.is_some() && self.id.is_some() && is_other && *name != self.name
        } else {
            is_other && self.is_complete(true)
        }
    }

    /// Returns true if nothing of the call seems to be missing.
    fn is_complete(&self, something_follows: bool) -> bool {
        self.is_whole
            || something_follows
                && self.arguments.trim_end().ends_with('}')
                && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

    fn hand_out(&mut self, deltas: &mut Vec<ChatDelta>) {
        if self.name.is_empty() || self.arguments.trim().is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.begun, true) {
            deltas.push(ChatDelta::Call { name: self.name.clone() });
        }
        let rest = &self.arguments[self.handed_out..];
        if !rest.is_empty() {
            deltas.push(ChatDelta::Arguments(rest.to_owned()));
        }
        self.handed_out = self.arguments.len();
    }

    fn end(&mut self, deltas: &mut Vec<ChatDelta>) -> Result<(), AnswerError> {
        if self.name.is_empty() {
            return Err(AnswerError::NamelessCall);
        }
        if !self.begun {
            deltas.push(ChatDelta::Call { name: self.name.clone() });
            deltas.push(ChatDelta::Arguments(NO_ARGUMENTS.to_owned()));
        }
        deltas.push(ChatDelta::CallEnd);
        self.ended = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: u32, name: Option<&str>, arguments: &str) -> CallFragment {
        CallFragment {
            index: Some(index),
            name: name.map(str::to_owned),
            arguments: arguments.to_owned(),
            ..CallFragment::default()
        }
    }

    fn with_id(id: &str, fragment: CallFragment) -> CallFragment {
        CallFragment { id: Some(id.to_owned()), ..fragment }
    }

    /// Writes all deltas in one line: `name(arguments)` for a call, `name(arguments` for one that was cut, text in
    /// quotes.
    fn line(deltas: &[ChatDelta]) -> String {
        let written = deltas.iter().map(|delta| match delta {
            ChatDelta::Call { name } => format!("{name}("),
            ChatDelta::Arguments(json) => json.clone(),
            ChatDelta::CallEnd => ")".to_owned(),
            ChatDelta::Text(text) => format!("'{text}'"),
            other => panic!("{other:?}"),
        });
        written.collect()
    }

    fn calls(fragments: impl IntoIterator<Item = CallFragment>) -> String {
        let (mut order, mut deltas) = (AnswerOrder::default(), Vec::new());
        for fragment in fragments {
            order.call(fragment, &mut deltas).expect("a call");
        }
        order.finish(false, &mut deltas).expect("named");
        line(&deltas)
    }

    #[test]
    fn interleaved_calls_come_one_after_the_other() {
        let fragments = [
            piece(0, Some("a"), "{\"x\""),
            piece(1, Some("b"), ""),
            piece(1, None, "{\"y\":"),
            piece(0, None, ":1"),
            piece(1, None, "2}"),
            piece(0, None, "}"),
        ];
        assert_eq!(calls(fragments), r#"a({"x":1})b({"y":2})"#);
    }

    #[test]
    fn a_complete_call_does_not_hold_up_what_follows() {
        let (mut order, mut deltas) = (AnswerOrder::default(), Vec::new());
        order.call(piece(0, Some("a"), "{\"x\":1"), &mut deltas).expect("a call");
        assert_eq!(line(&deltas), r#"a({"x":1"#);
        order.text("wait".to_owned(), &mut deltas).expect("short");
        order.call(piece(0, None, "}"), &mut deltas).expect("a call");
        order.call(piece(1, Some("b"), "{"), &mut deltas).expect("a call");
        assert_eq!(line(&deltas), r#"a({"x":1})'wait'b({"#);
        order.call(piece(0, None, " \n"), &mut deltas).expect("too late, and white space");
        order.call(piece(1, None, "}"), &mut deltas).expect("a call");
        order.text("then".to_owned(), &mut deltas).expect("short");
        assert_eq!(line(&deltas), r#"a({"x":1})'wait'b({})'then'"#);
    }

    #[test]
    fn calls_are_told_apart_however_they_are_named() {
        let other = |index| move |fragment: CallFragment| CallFragment { index, ..fragment };
        let (none, zero) = (other(None), other(Some(0)));
        // Neither numbers nor ids.
        let plain =
            [piece(0, Some("a"), "{\"x\":"), piece(0, None, "1}"), piece(0, Some("b"), "{}")].map(none);
        assert_eq!(calls(plain), r#"a({"x":1})b({})"#);
        // Ids, no numbers; the later pieces without either.
        let named = [
            with_id("1", piece(0, Some("a"), "")),
            piece(0, None, "{}"),
            with_id("2", piece(0, Some("a"), "")),
            piece(0, None, "{ }"),
        ];
        assert_eq!(calls(named.map(none)), "a({})a({ })");
        // Every call has the number 0.
        let zeros = [with_id("1", piece(0, Some("a"), "{}")), with_id("2", piece(0, Some("a"), "{ }"))];
        assert_eq!(calls(zeros.map(zero)), "a({})a({ })");
        // The name again with every piece, and an id that is another each time.
        let repeated = [("1", "{"), ("2", "\"x\":"), ("3", "1}")];
        let repeated = repeated.map(|(id, arguments)| with_id(id, piece(0, Some("a"), arguments)));
        assert_eq!(calls(repeated), r#"a({"x":1})"#);
        // The name in pieces.
        assert_eq!(
            calls([piece(0, Some("get_"), ""), piece(0, Some("time"), ""), piece(0, None, "{}")]),
            "get_time({})"
        );
        // Two without arguments.
        let empty = [with_id("1", piece(0, Some("a"), "")), with_id("2", piece(0, Some("b"), ""))];
        assert_eq!(calls(empty.map(none)), "a({})b({})");
    }

    #[test]
    fn what_the_server_calls_whole_is_taken_once() {
        let whole = |fragment| CallFragment { is_whole: true, ..fragment };
        let twice = [
            piece(2, Some("a"), ""),
            piece(2, None, "{\"x\":"),
            piece(2, None, "1}"),
            whole(piece(2, None, "{\"x\":1}")),
            whole(piece(2, Some("a"), "{\"x\":1}")),
            whole(piece(3, Some("b"), "{\"y\":2}")),
            whole(piece(4, Some("c"), "")),
        ];
        assert_eq!(calls(twice), r#"a({"x":1})b({"y":2})c({})"#);
    }

    #[test]
    fn a_cut_call_has_no_end() {
        let cut = |arguments: [&str; 2]| {
            let (mut order, mut deltas) = (AnswerOrder::default(), Vec::new());
            order.call(piece(0, Some("a"), arguments[0]), &mut deltas).expect("a call");
            order.call(piece(1, Some("b"), arguments[1]), &mut deltas).expect("a call");
            order.finish(true, &mut deltas).expect("named");
            line(&deltas)
        };
        assert_eq!(cut(["{}", "{\"x\":"]), "a({})b({\"x\":");
        assert_eq!(cut(["{", "{}"]), "a({");
        assert_eq!(cut(["{}", ""]), "a({})");
    }

    #[test]
    fn what_is_too_much_or_nameless_is_refused() {
        let (mut order, mut deltas) = (AnswerOrder::default(), Vec::new());
        order.call(piece(0, Some("a"), &"x".repeat(CALL_BYTES_MAX - 1)), &mut deltas).expect("just fits");
        let error = order.call(piece(0, None, "x"), &mut deltas).expect_err("too long");
        assert_eq!(error, AnswerError::CallBytes(65_536));
        let mut order = AnswerOrder::default();
        let many = (0..1_000).map(|index| order.call(piece(index, Some("a"), ""), &mut deltas));
        assert!(many.into_iter().any(|outcome| outcome.is_err_and(|error| error == AnswerError::Calls(128))));
        let mut order = AnswerOrder::default();
        order.call(piece(0, None, "{}"), &mut deltas).expect("the name may follow");
        assert!(order.finish(false, &mut deltas).is_err());
    }
}
