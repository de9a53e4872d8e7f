//! What a file must look like to be let in: by its content, whatever its name and its sender say.
//!
//! This is the cheap half of the question, asked while the file streams in: does it begin like a PDF, and does it end
//! like one? Whether it can be read, has pages and needs no password is found by the conversion, in a process of its
//! own.

use ode_job::ErrorCode;

/// Readers look for the header this far into a file, since some programs put a few lines in front of it.
const HEAD_BYTES: usize = 1024;
const HEADER: &[u8] = b"%PDF-";
/// The end may be followed by what a mail program or a form added.
const TAIL_BYTES: usize = 16 << 10;
/// The last line of a PDF, and the line shortly before it that leads to its objects: either shows that it is whole.
const ENDS: [&[u8]; 2] = [b"%%EOF", b"startxref"];

/// Watches a file come in.
#[derive(Debug, Default)]
pub struct Door {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Door {
    /// Looks at the next piece. Refuses as soon as it is known that this is no PDF.
    pub fn see(&mut self, piece: &[u8]) -> Result<(), ErrorCode> {
        let was_undecided = self.head.len() < HEAD_BYTES;
        let wanted = (HEAD_BYTES - self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..wanted]);
        if was_undecided && self.head.len() == HEAD_BYTES && !self.begins_like_a_pdf() {
            return Err(ErrorCode::NotPdf);
        }
        let kept = &piece[piece.len().saturating_sub(TAIL_BYTES)..];
        let excess = (self.tail.len() + kept.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend_from_slice(kept);
        Ok(())
    }

    /// What is to be said about the whole of it.
    pub fn leave(self) -> Result<(), ErrorCode> {
        if !self.begins_like_a_pdf() {
            return Err(ErrorCode::NotPdf);
        }
        if !ENDS.iter().any(|end| holds(&self.tail, end)) {
            return Err(ErrorCode::Truncated);
        }
        Ok(())
    }

    fn begins_like_a_pdf(&self) -> bool {
        holds(&self.head, HEADER)
    }
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(bytes, wanted).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However a file is cut into pieces, the verdict is the same.
    fn check(file: &[u8], expected: Result<(), ErrorCode>) {
        for size in [1, 7, 1000, 1 << 20] {
            let mut door = Door::default();
            let seen = file.chunks(size).try_for_each(|piece| door.see(piece));
            assert_eq!(seen.and_then(|()| door.leave()), expected, "pieces of {size} bytes");
        }
    }

    fn pdf(before: usize, after: usize) -> Vec<u8> {
        let mut file = vec![b' '; before];
        file.extend_from_slice(b"%PDF-1.7\n1 0 obj null endobj\nstartxref\n9\n%%EOF\n");
        file.extend(std::iter::repeat_n(0, after));
        file
    }

    #[test]
    fn a_pdf_is_let_in_also_with_something_around_it() {
        check(&pdf(0, 0), Ok(()));
        check(&pdf(HEAD_BYTES - HEADER.len(), 0), Ok(()));
        check(&pdf(0, TAIL_BYTES - 100), Ok(()));
    }

    #[test]
    fn what_does_not_begin_like_a_pdf_is_none() {
        check(b"", Err(ErrorCode::NotPdf));
        check(b"Dear all, %PD", Err(ErrorCode::NotPdf));
        check(&b"just text\n".repeat(10_000), Err(ErrorCode::NotPdf));
        check(&pdf(HEAD_BYTES, 0), Err(ErrorCode::NotPdf));
    }

    #[test]
    fn a_pdf_without_an_end_was_cut_off() {
        check(&pdf(0, 0)[..20], Err(ErrorCode::Truncated));
        let mut cut = pdf(0, 0);
        cut.extend(b"2 0 obj << /Length 99999 >> stream ".repeat(1000));
        check(&cut, Err(ErrorCode::Truncated));
    }
}
