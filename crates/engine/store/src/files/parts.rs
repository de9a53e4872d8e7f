//! Files that come in are gathered in parts, and written a part at a time.

use std::sync::{Arc, Mutex, MutexGuard};

/// Parts on local disk: small enough that a large file is hashed and written while its rest still comes, large enough that
/// most documents are one, which is few changes of thread and one large write.
pub(crate) const LOCAL_PART_BYTES: usize = 1 << 20;
/// S3 takes no smaller ones, but for the last; some that are like it want all others to be of one size.
pub(crate) const S3_PART_BYTES: usize = 5 << 20;
/// What a disk fetches from memory by itself begins and ends at a multiple of this, in memory and in the file. Few want more.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// So much memory is kept for parts that nobody fills just now.
const KEPT_BYTES: usize = 8 << 20;

/// Makes parts of one size, and keeps some of those that were used: memory that is new to a process costs more than copying
/// into it.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    size: usize,
    kept: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Parts {
    pub(crate) fn new(size: usize) -> Self {
        Parts { size, kept: Arc::default() }
    }

    /// An empty one.
    pub(crate) fn take(&self) -> Part {
        let mut bytes = self.kept().pop().unwrap_or_else(|| Vec::with_capacity(self.size + BLOCK_BYTES));
        let start = bytes.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        bytes.resize(start, 0);
        Part { bytes, start, home: self.clone() }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.kept.lock().expect("no code panics while holding this lock")
    }
}

/// Bytes that gather, where a disk can fetch them.
#[derive(Debug)]
pub(crate) struct Part {
    bytes: Vec<u8>,
    start: usize,
    home: Parts,
}

impl Part {
    /// Takes as much of this as there is room for, and leaves the rest.
    pub(crate) fn fill(&mut self, from: &mut &[u8]) {
        let (taken, rest) = from.split_at(self.room().min(from.len()));
        self.bytes.extend_from_slice(taken);
        *from = rest;
    }

    pub(crate) fn room(&self) -> usize {
        self.home.size - self.as_ref().len()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut kept = self.home.kept();
        if (kept.len() + 1) * self.home.size <= KEPT_BYTES {
            self.bytes.clear();
            kept.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_its_size_and_lies_where_a_disk_can_fetch_it() {
        let parts = Parts::new(10_000);
        for _ in 0..3 {
            let (mut part, mut sent) = (parts.take(), [7; 12_000].as_slice());
            assert!(part.as_ref().is_empty());
            while part.room() > 0 {
                let mut piece = &sent[..sent.len().min(3_000)];
                let offered = piece.len();
                part.fill(&mut piece);
                sent = &sent[offered - piece.len()..];
            }
            assert_eq!((part.as_ref(), sent.len()), ([7; 10_000].as_slice(), 2_000));
            assert_eq!(part.as_ref().as_ptr().align_offset(BLOCK_BYTES), 0);
        }
    }

    #[test]
    fn some_parts_are_used_again() {
        let parts = Parts::new(KEPT_BYTES / 3);
        let taken: Vec<Part> = (0..5).map(|_| parts.take()).collect();
        drop(taken);
        assert_eq!(parts.kept().len(), 3);
        let again = parts.take();
        assert_eq!((parts.kept().len(), again.room()), (2, KEPT_BYTES / 3));
    }
}
