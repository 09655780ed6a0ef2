//! Reads parts of a message without parsing it: the append event, a client's `event_id`, broken escapes.
//!
//! [`flat_append`] is the audio path. The function reads only a flat object of plain strings, which is what clients
//! send. For any other message the result is `None`, and the parser reads the message with the same meaning.

use super::bound::EVENT_ID_BYTES_MAX;

/// The append event, borrowed from the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlatAppend<'a> {
    pub(super) audio: &'a str,
    pub(super) event_id: Option<&'a str>,
}

/// Type of the append event.
pub(super) const APPEND: &str = "input_audio_buffer.append";

/// Reads `{"type":"input_audio_buffer.append","audio":"…"}`, members in any order, unknown ones allowed, if
/// every member is a string without escapes. Of a repeated member the last one counts.
pub(super) fn flat_append(text: &str) -> Option<FlatAppend<'_>> {
    let mut scanner = Scanner { text, at: 0 };
    let (mut kind, mut audio, mut event_id) = (None, None, None);
    scanner.token(b'{')?;
    loop {
        let name = scanner.plain_string()?;
        scanner.token(b':')?;
        let value = scanner.plain_string()?;
        match name {
            "type" => kind = Some(value),
            "audio" => audio = Some(value),
            "event_id" => event_id = Some(value),
            _ => {}
        }
        match scanner.any_token()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    scanner.skip_white_space();
    let complete = scanner.at == text.len() && kind == Some(APPEND);
    let readable = event_id.is_none_or(|id| id.len() <= EVENT_ID_BYTES_MAX);
    (complete && readable).then_some(FlatAppend { audio: audio?, event_id })
}

/// Finds the value of the top-level member `event_id` in a text that may not be JSON. Only a short string without
/// escapes counts.
pub(super) fn recover_event_id(text: &str) -> Option<&str> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.token(b'{')?;
    let mut depth = 1_usize;
    loop {
        match scanner.any_token()? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let string = scanner.rest_of_string()?;
                let here = scanner.at;
                if depth == 1 && string == "event_id" && scanner.token(b':').is_some() {
                    let value = scanner.plain_string();
                    if value.is_some_and(|id| id.len() <= EVENT_ID_BYTES_MAX) {
                        return value;
                    }
                }
                scanner.at = here;
            }
            _ => {}
        }
    }
}

/// Replaces each `\uXXXX` that is half of a surrogate pair without its other half by `\ufffd`, in place. JavaScript
/// clients send these when they cut a text inside an emoji. Returns true if there was any.
pub(super) fn mend_surrogates(message: &mut [u8]) -> bool {
    let mut mended = false;
    let mut at = 0;
    while at < message.len() {
        if message[at] != b'\\' {
            at += 1;
            continue;
        }
        at += match escaped_unit(&message[at..]) {
            Some(0xd800..=0xdbff) if matches!(escaped_unit(&message[at + 6..]), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                message[at + 2..at + 6].copy_from_slice(b"fffd");
                mended = true;
                6
            }
            // Any other escape: the byte after the backslash is not the beginning of one.
            Some(_) | None => 2,
        };
    }
    mended
}

/// Bytes that are examined together; a multiple of the size of every vector register.
const LANES: usize = 64;

/// Counts the bytes that separate values in JSON. A message with very many of them is expensive to parse.
pub(super) fn structural_characters(text: &str) -> usize {
    let structural = |byte: u8| (byte == b',') | (byte == b':') | (byte == b'[') | (byte == b'{');
    // At most LANES at a time, so that the compiler may count in bytes: six times faster than in words.
    let count = |bytes: &[u8]| bytes.iter().fold(0_u8, |count, &byte| count + u8::from(structural(byte)));
    let (blocks, rest) = text.as_bytes().as_chunks::<LANES>();
    blocks.iter().map(|block| usize::from(count(block))).sum::<usize>() + usize::from(count(rest))
}

/// Reads the UTF-16 unit of a leading `\uXXXX`.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Returns the length of the longest prefix without a quote, backslash or control character.
fn plain_len(bytes: &[u8]) -> usize {
    let special = |byte: u8| (byte == b'"') | (byte == b'\\') | (byte < b' ');
    let (blocks, _) = bytes.as_chunks::<LANES>();
    // Whole blocks without an early exit: this is the loop that the compiler turns into vector instructions.
    let clean =
        blocks.iter().take_while(|block| !block.iter().fold(false, |any, &byte| any | special(byte))).count();
    let from = clean * LANES;
    from + bytes[from..].iter().take_while(|&&byte| !special(byte)).count()
}

struct Scanner<'a> {
    text: &'a str,
    /// Bytes read, at a character boundary, `0..=text.len()`.
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn skip_white_space(&mut self) {
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    /// Reads the next byte that is not white space. Afterwards `at` may be inside a character, where no caller slices.
    fn any_token(&mut self) -> Option<u8> {
        self.skip_white_space();
        let byte = *self.rest().first()?;
        self.at += 1;
        Some(byte)
    }

    fn token(&mut self, wanted: u8) -> Option<()> {
        (self.any_token()? == wanted).then_some(())
    }

    /// Reads a string without escapes and its quotes; returns the text between them.
    fn plain_string(&mut self) -> Option<&'a str> {
        self.token(b'"')?;
        let start = self.at;
        let end = start + plain_len(self.rest());
        self.at = end;
        self.token_here(b'"')?;
        self.text.get(start..end)
    }

    /// Reads the rest of a string whose first quote has been read. Escapes stay as they are.
    fn rest_of_string(&mut self) -> Option<&'a str> {
        let start = self.at;
        loop {
            match self.rest().first()? {
                b'"' => break,
                b'\\' => self.at += 2.min(self.rest().len()),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(start..self.at - 1)
    }

    fn token_here(&mut self, wanted: u8) -> Option<()> {
        (*self.rest().first()? == wanted).then(|| self.at += 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_append_is_read_in_place() {
        let text = r#"{"event_id":"e1","type":"input_audio_buffer.append","audio":"AAAA"}"#;
        let append = flat_append(text).expect("flat");
        assert_eq!(append, FlatAppend { audio: "AAAA", event_id: Some("e1") });
        assert!(text.as_bytes().as_ptr_range().contains(&append.audio.as_ptr()));
    }

    #[test]
    fn whatever_is_not_flat_and_plain_is_left_to_the_parser() {
        for text in [
            "",
            "{}",
            "{",
            r#"{"type":"input_audio_buffer.append"}"#,
            r#"{"type":"input_audio_buffer.append","audio":"AA\/A"}"#,
            r#"{"type":"input_audio_buffer.append","audio":"AAAA","event_id":null}"#,
            r#"{"type":"input_audio_buffer.append","audio":"AAAA"} x"#,
            r#"{"type":"input_audio_buffer.append","audio":"AAAA",}"#,
            r#"{"type":"input_audio_buffer.append","audio":["AAAA"]}"#,
            "{\"type\":\"input_audio_buffer.append\",\"audio\":\"AA\nAA\"}",
            r#"{"type":"response.cancel","audio":"AAAA"}"#,
        ] {
            assert_eq!(flat_append(text), None, "{text}");
        }
    }

    #[test]
    fn plain_length_is_the_same_at_every_position() {
        for len in [0, 1, 63, 64, 65, 200] {
            for special in [b'"', b'\\', b'\n', 0] {
                let mut bytes = vec![b'A'; len];
                assert_eq!(plain_len(&bytes), len);
                bytes.push(special);
                bytes.extend([b'B'; 70]);
                assert_eq!(plain_len(&bytes), len);
            }
        }
    }

    #[test]
    fn structural_characters_are_counted_in_blocks_and_in_the_rest() {
        for len in [0, 1, 63, 64, 65, 200] {
            assert_eq!(structural_characters(&",".repeat(len)), len);
            assert_eq!(structural_characters(&"é".repeat(len)), 0);
        }
        assert_eq!(structural_characters(r#"{"a":[1,2]}"#), 4);
    }

    #[test]
    fn an_event_id_is_found_in_rubble() {
        assert_eq!(recover_event_id(r#"{"type":"x","event_id":"e9","a":[1,"#), Some("e9"));
        assert_eq!(recover_event_id(r#"{"a":{"event_id":"inner"},"event_id" : "outer""#), Some("outer"));
        assert_eq!(recover_event_id(r#"{"a":"event_id","b":"\ud83d","event_id":"e"}"#), Some("e"));
        assert_eq!(recover_event_id(r#"{"é\"":"event_id":"e"#), None);
        assert_eq!(recover_event_id(r#"[{"event_id":"e"}]"#), None);
        assert_eq!(recover_event_id(&"{".repeat(100_000)), None);
    }

    #[test]
    fn lone_surrogates_are_mended_and_pairs_are_not() {
        for (text, mended) in [
            (r"abc \ud83d", r"abc \ufffd"),
            (r"\ud83d\ude80", r"\ud83d\ude80"),
            (r"\ude80\ud83d", r"\ufffd\ufffd"),
            (r"\ud83d\ud83d\ude80", r"\ufffd\ud83d\ude80"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\ud83", r"\ud83"),
            (r"\", r"\"),
        ] {
            let mut bytes = text.as_bytes().to_vec();
            assert_eq!(mend_surrogates(&mut bytes), text != mended);
            assert_eq!(std::str::from_utf8(&bytes), Ok(mended));
        }
    }
}
