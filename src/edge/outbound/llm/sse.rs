//! Server-sent events out of a byte stream.
//!
//! *Never:* decodes text before a line is complete, so a character cut between two network reads stays whole.

/// Longest event that is kept, bytes; a server that sends more without an end of line is broken or hostile.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// Error for an event that is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {EVENT_BYTES_MAX} bytes")]
pub(super) struct EventTooLong;

/// Incremental parser of the `text/event-stream` format; only `data` fields are kept.
///
/// # Source
/// WHATWG HTML, "Server-sent events", 9.2.6 "Interpreting an event stream". One deviation: an event that the end of
/// the stream cuts off before its blank line is delivered, since several model servers end that way.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    /// The line being read, without its end.
    line: Vec<u8>,
    /// The data of the event being read; its lines are joined by `\n`.
    data: Vec<u8>,
    /// True if the event being read has a data field, perhaps an empty one.
    has_data: bool,
    /// True if the last byte was `\r`: a `\n` that follows belongs to the same line end, in this read or in the next.
    after_cr: bool,
    /// True once the first line of the stream has been read (it may begin with a byte order mark).
    started: bool,
}

impl SseParser {
    /// Reads `bytes`, however they are cut, and hands every event that they complete to `sink`.
    ///
    /// # Errors
    /// [`EventTooLong`]; the stream is unusable afterwards.
    pub(super) fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Vec<u8>)) -> Result<(), EventTooLong> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                return self.check_length();
            };
            self.line.extend_from_slice(&rest[..end]);
            self.check_length()?;
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.end_line(&mut sink);
        }
        Ok(())
    }

    /// Ends the stream, and hands out its last event.
    pub(super) fn finish(&mut self, mut sink: impl FnMut(Vec<u8>)) {
        self.end_line(&mut sink);
        self.dispatch(&mut sink);
    }

    fn check_length(&self) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.len() > EVENT_BYTES_MAX { Err(EventTooLong) } else { Ok(()) }
    }

    fn end_line(&mut self, sink: &mut impl FnMut(Vec<u8>)) {
        let mut line = self.line.as_slice();
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(sink);
        } else if let Some(value) = line.strip_prefix(b"data") {
            let value = match value.strip_prefix(b":") {
                Some(value) => Some(value.strip_prefix(b" ").unwrap_or(value)),
                None => value.is_empty().then_some(value),
            };
            if let Some(value) = value {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
        }
        self.line.clear();
    }

    fn dispatch(&mut self, sink: &mut impl FnMut(Vec<u8>)) {
        if std::mem::take(&mut self.has_data) {
            sink(std::mem::take(&mut self.data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `stream` cut into pieces at `cuts`.
    fn events(stream: &[u8], cuts: &[usize]) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut found = Vec::new();
        let mut from = 0;
        for &cut in cuts.iter().chain([&stream.len()]) {
            parser
                .feed(&stream[from..cut], |event| {
                    found.push(String::from_utf8(event).expect("whole characters"))
                })
                .expect("short events");
            from = cut;
        }
        parser.finish(|event| found.push(String::from_utf8(event).expect("whole characters")));
        found
    }

    const TEXT: &str = "naïve 你好 👩‍🚀 — end";

    #[test]
    fn every_cut_gives_the_same_events() {
        let stream = format!(
            ": ping\r\n\r\ndata: {TEXT}\r\n\r\ndata:{TEXT}\n\nevent: x\nid: 1\ndata: a\ndata: b\n\ndata: z"
        );
        let whole = events(stream.as_bytes(), &[]);
        assert_eq!(whole, [TEXT, TEXT, "a\nb", "z"]);
        for first in 0..=stream.len() {
            assert_eq!(events(stream.as_bytes(), &[first]), whole, "cut at {first}");
        }
        let all: Vec<usize> = (0..stream.len()).collect();
        assert_eq!(events(stream.as_bytes(), &all), whole, "one byte at a time");
    }

    #[test]
    fn all_three_line_ends_and_a_byte_order_mark() {
        for stream in
            ["data: a\n\ndata: b\n\n", "data: a\r\rdata: b\r\r", "\u{feff}data: a\r\n\r\ndata: b\r\n\r\n"]
        {
            assert_eq!(events(stream.as_bytes(), &[]), ["a", "b"], "{stream:?}");
        }
    }

    #[test]
    fn other_fields_are_not_data() {
        assert_eq!(events(b"database: no\n\nretry: 3\n\ndata\n\ndata:\n\n: data: no\n\n", &[]), ["", ""]);
    }

    #[test]
    fn a_line_without_end_does_not_grow_without_bound() {
        let mut parser = SseParser::default();
        let block = vec![b'x'; EVENT_BYTES_MAX / 4];
        let results: Vec<_> = (0..5).map(|_| parser.feed(&block, |_| ()).is_ok()).collect();
        assert_eq!(results, [true, true, true, true, false]);
    }
}
