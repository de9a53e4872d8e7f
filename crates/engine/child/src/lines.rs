//! Cuts a stream of bytes into lines of bounded length, whatever the bytes are.

/// What happens to a line that is longer than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlong {
    /// Keep its beginning and skip the rest.
    Cut,
    /// Give up on the whole stream.
    Refuse,
}

/// A line was longer than the bound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Holds the beginning of a line until its end arrives.
pub(crate) struct Lines {
    held: Vec<u8>,
    bytes_max: usize,
    overlong: Overlong,
    is_skipping: bool,
}

impl Lines {
    pub(crate) fn new(bytes_max: usize, overlong: Overlong) -> Self {
        Self { held: Vec::new(), bytes_max, overlong, is_skipping: false }
    }

    /// Takes in more bytes and hands out every line that they complete, without its line end.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) -> Result<(), TooLong> {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (head, tail) = (&bytes[..end], &bytes[end + 1..]);
            if self.held.is_empty() && head.len() <= self.bytes_max && !self.is_skipping {
                line(head);
            } else {
                self.hold(head)?;
                line(&self.held);
            }
            self.held.clear();
            self.is_skipping = false;
            bytes = tail;
        }
        self.hold(bytes)
    }

    /// Hands out what is left when the stream ends without a line end.
    pub(crate) fn finish(&mut self, line: impl FnOnce(&[u8])) {
        if !self.held.is_empty() {
            line(&self.held);
            self.held.clear();
        }
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.is_skipping {
            return Ok(());
        }
        let room = self.bytes_max - self.held.len();
        if bytes.len() <= room {
            self.held.extend_from_slice(bytes);
            return Ok(());
        }
        match self.overlong {
            Overlong::Refuse => Err(TooLong),
            Overlong::Cut => {
                self.held.extend_from_slice(&bytes[..room]);
                self.is_skipping = true;
                Ok(())
            }
        }
    }
}

/// Bytes as text that may be shown and stored: invalid UTF-8 and control characters become U+FFFD, and at most
/// `bytes_max` bytes remain.
pub(crate) fn clean(bytes: &[u8], bytes_max: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut cleaned = String::with_capacity(text.len().min(bytes_max));
    for character in text.trim_end_matches('\r').chars() {
        let shown = if character.is_control() && character != '\t' { '\u{fffd}' } else { character };
        if cleaned.len() + shown.len_utf8() > bytes_max {
            break;
        }
        cleaned.push(shown);
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(overlong: Overlong, chunks: &[&str], expected: Result<&[&str], TooLong>) {
        let mut lines = Lines::new(5, overlong);
        let mut seen = Vec::new();
        let mut keep = |line: &[u8]| seen.push(String::from_utf8(line.to_vec()).unwrap());
        let mut result = Ok(());
        for chunk in chunks {
            result = lines.push(chunk.as_bytes(), &mut keep);
            if result.is_err() {
                break;
            }
        }
        lines.finish(&mut keep);
        match expected {
            Ok(expected) => assert_eq!(
                (result, seen.as_slice()),
                (Ok(()), &expected.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()[..]),
                "{chunks:?}"
            ),
            Err(error) => assert_eq!(result, Err(error), "{chunks:?}"),
        }
    }

    #[test]
    fn lines_come_out_whole_however_they_arrive() {
        check(Overlong::Refuse, &["a\nb\n"], Ok(&["a", "b"]));
        check(Overlong::Refuse, &["a", "b", "\nc"], Ok(&["ab", "c"]));
        check(Overlong::Refuse, &["\n\n"], Ok(&["", ""]));
        check(Overlong::Refuse, &[], Ok(&[]));
        check(Overlong::Refuse, &["12345\n12345"], Ok(&["12345", "12345"]));
    }

    #[test]
    fn a_line_past_the_bound_is_cut_or_refused() {
        check(Overlong::Cut, &["123456\nab\n"], Ok(&["12345", "ab"]));
        check(Overlong::Cut, &["1234", "56", "789", "\nab"], Ok(&["12345", "ab"]));
        check(Overlong::Refuse, &["123456\n"], Err(TooLong));
        check(Overlong::Refuse, &["123", "456"], Err(TooLong));
    }

    #[test]
    fn text_is_made_fit_to_show() {
        for (bytes, expected) in [
            (&b"plain\ttext\r"[..], "plain\ttext"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            (b"a\0b\x1b[31m", "a\u{fffd}b\u{fffd}[31m"),
            ("ääääääääää".as_bytes(), "ääääääää"),
        ] {
            assert_eq!(clean(bytes, 17), expected);
        }
    }
}
