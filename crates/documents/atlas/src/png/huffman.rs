//! Huffman codes of limited length, and the bits they are written in.

/// Bits, written from the lowest on.
#[derive(Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl Bits {
    /// Writes the low `count` bits of `value`, at most 32.
    pub(super) fn put(&mut self, value: u32, count: u32) {
        self.held |= u64::from(value) << self.count;
        self.count += count;
        if self.count >= 32 {
            self.bytes.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.count -= 32;
        }
    }

    /// Fills the last byte up with zeros and gives the bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let left = self.count.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.held.to_le_bytes()[..left]);
        self.bytes
    }
}

/// The code of each symbol: its bits, ready to be written, and how many there are; none for what does not occur.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) bits: Vec<u32>,
    pub(super) lengths: Vec<u8>,
}

impl Code {
    /// The best code for symbols that occur this often, with no code longer than `length_max`.
    pub(super) fn new(counts: &[u32], length_max: u8) -> Self {
        let lengths = lengths(counts, length_max);
        Self { bits: canonical(&lengths), lengths }
    }

    pub(super) fn put(&self, symbol: usize, out: &mut Bits) {
        out.put(self.bits[symbol], u32::from(self.lengths[symbol]));
    }
}

/// Code lengths: a Huffman tree by merging the two rarest again and again, then flattened where it is too deep.
fn lengths(counts: &[u32], length_max: u8) -> Vec<u8> {
    let mut leaves: Vec<(u64, usize)> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(symbol, count)| (u64::from(*count), symbol))
        .collect();
    let mut lengths = vec![0; counts.len()];
    if leaves.len() < 2 {
        // One symbol still takes a bit.
        leaves.iter().for_each(|(_, symbol)| lengths[*symbol] = 1);
        return lengths;
    }
    leaves.sort_unstable();
    let depths = depths(&leaves);
    let mut per_length = vec![0_usize; usize::from(length_max) + 1];
    depths.iter().for_each(|depth| per_length[(*depth).min(usize::from(length_max))] += 1);
    limit(&mut per_length);
    // The rarest symbols come first and get the longest codes.
    let mut symbols = leaves.iter().map(|(_, symbol)| *symbol);
    for (length, count) in per_length.iter().enumerate().rev() {
        symbols.by_ref().take(*count).for_each(|symbol| lengths[symbol] = length as u8);
    }
    lengths
}

/// How deep in the tree each leaf is, for leaves from the rarest on.
fn depths(leaves: &[(u64, usize)]) -> Vec<usize> {
    let count = leaves.len();
    let mut weights: Vec<u64> = leaves.iter().map(|(weight, _)| *weight).collect();
    let mut parents = vec![0; 2 * count - 1];
    // Two lines of nodes, each from light to heavy: leaves, and those made of two.
    let (mut leaf, mut made) = (0, count);
    for node in count..2 * count - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let takes_leaf = leaf < count && (made >= node || weights[leaf] <= weights[made]);
            let child = if takes_leaf { &mut leaf } else { &mut made };
            sum += weights[*child];
            parents[*child] = node;
            *child += 1;
        }
        weights.push(sum);
    }
    let mut depths = vec![0; 2 * count - 1];
    for node in (0..2 * count - 2).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths.truncate(count);
    depths
}

/// Makes codes fit again after those too long were cut: for one of the longest, a shorter one gives up its place and
/// both go below it. Every step frees exactly one place, so that in the end none is over and none is left, as inflaters
/// demand.
fn limit(per_length: &mut [usize]) {
    let longest = per_length.len() - 1;
    let sum: usize = (1..=longest).map(|length| per_length[length] << (longest - length)).sum();
    for _ in 0..sum.saturating_sub(1 << longest) {
        let Some(length) = (1..longest).rev().find(|length| per_length[*length] > 0) else { break };
        per_length[longest] -= 1;
        per_length[length] -= 1;
        per_length[length + 1] += 2;
    }
}

/// The codes that lengths stand for, as deflate numbers them, with the bits turned round for writing.
fn canonical(lengths: &[u8]) -> Vec<u32> {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut codes = vec![0; lengths.len()];
    let mut next = 0_u32;
    for length in 1..=longest {
        for (symbol, _) in lengths.iter().enumerate().filter(|(_, own)| **own == length) {
            codes[symbol] = next.reverse_bits() >> (32 - u32::from(length));
            next += 1;
        }
        next <<= 1;
    }
    codes
}
