//! Deflate for data that is mostly zeros: a block with its own codes for each band, and no matches but runs of zeros.

use super::huffman::{Bits, Code};

/// The last block of the data: one without anything in it.
pub(super) const END: [u8; 5] = [1, 0, 0, 0xFF, 0xFF];
/// Fills up to a whole byte, after the three bits that begin it.
const EMPTY_STORED: [u8; 4] = [0, 0, 0xFF, 0xFF];

const SYMBOLS: usize = 286;
const END_OF_BLOCK: usize = 256;
const RUN_MAX: u64 = 258;
const RUN_MIN: u64 = 3;
const CODE_BITS_MAX: u8 = 15;
const CODE_LENGTH_BITS_MAX: u8 = 7;
/// The order in which deflate lists the lengths of the codes for code lengths.
const CODE_LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// What a block is made of.
#[derive(Debug, Clone, Copy)]
enum Token {
    Literal(u8),
    /// This many runs of the longest kind.
    LongRuns(u32),
    /// A run of this many zeros, after a zero.
    Run(u16),
}

/// Collects a block.
#[derive(Debug)]
pub(super) struct Deflate {
    tokens: Vec<Token>,
    counts: Vec<u32>,
    has_runs: bool,
}

impl Default for Deflate {
    fn default() -> Self {
        Self { tokens: Vec::new(), counts: vec![0; SYMBOLS], has_runs: false }
    }
}

impl Deflate {
    pub(super) fn literal(&mut self, byte: u8) {
        self.counts[usize::from(byte)] += 1;
        self.tokens.push(Token::Literal(byte));
    }

    pub(super) fn zeros(&mut self, count: u64) {
        let runs = count.saturating_sub(1);
        if runs < RUN_MIN {
            (0..count).for_each(|_| self.literal(0));
            return;
        }
        // A run repeats the byte before it, so the first zero is a byte of its own.
        self.literal(0);
        self.has_runs = true;
        let mut long = runs / RUN_MAX;
        let mut rest = runs % RUN_MAX;
        if rest > 0 && rest < RUN_MIN && long > 0 {
            // Too short to be a run; the last long one gives some of its own.
            long -= 1;
            self.run((RUN_MAX + rest - RUN_MIN) as u16);
            rest = RUN_MIN;
        }
        if long > 0 {
            self.counts[run_symbol(RUN_MAX as u16).0] += long as u32;
            self.tokens.push(Token::LongRuns(long as u32));
        }
        if rest > 0 {
            self.run(rest as u16);
        }
    }

    fn run(&mut self, length: u16) {
        self.counts[run_symbol(length).0] += 1;
        self.tokens.push(Token::Run(length));
    }

    /// Ends the block at a whole byte and starts the next.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.counts[END_OF_BLOCK] += 1;
        let code = Code::new(&self.counts, CODE_BITS_MAX);
        let mut out = Bits::default();
        header(&code, self.has_runs, &mut out);
        for token in self.tokens.drain(..) {
            match token {
                Token::Literal(byte) => code.put(usize::from(byte), &mut out),
                Token::LongRuns(count) => (0..count).for_each(|_| put_run(RUN_MAX as u16, &code, &mut out)),
                Token::Run(length) => put_run(length, &code, &mut out),
            }
        }
        code.put(END_OF_BLOCK, &mut out);
        out.put(0, 3);
        self.counts.fill(0);
        self.has_runs = false;
        let mut bytes = out.finish();
        bytes.extend_from_slice(&EMPTY_STORED);
        bytes
    }
}

fn put_run(length: u16, code: &Code, out: &mut Bits) {
    let (symbol, extra, extra_bits) = run_symbol(length);
    code.put(symbol, out);
    out.put(extra, extra_bits);
    // The only distance there is: one byte back.
    out.put(0, 1);
}

/// The symbol of a length from 3 to 258, and the bits that follow it.
fn run_symbol(length: u16) -> (usize, u32, u32) {
    let rest = u32::from(length) - 3;
    if length == 258 {
        return (285, 0, 0);
    }
    if rest < 8 {
        return (257 + rest as usize, 0, 0);
    }
    let bits = 29 - rest.leading_zeros();
    let group = rest >> bits;
    (257 + (4 * bits + group) as usize, rest & ((1 << bits) - 1), bits)
}

/// The beginning of a block: that it has codes of its own, and their lengths.
fn header(code: &Code, has_runs: bool, out: &mut Bits) {
    let symbols = code.lengths.iter().rposition(|length| *length > 0).map_or(257, |last| (last + 1).max(257));
    // One distance code of one bit; without runs it has no bits at all.
    let lengths = [&code.lengths[..symbols], &[u8::from(has_runs)]].concat();
    let steps = run_lengths(&lengths);
    let mut counts = [0; 19];
    steps.iter().for_each(|(symbol, _, _)| counts[usize::from(*symbol)] += 1);
    let code_lengths = Code::new(&counts, CODE_LENGTH_BITS_MAX);
    let listed = CODE_LENGTH_ORDER.iter().rposition(|symbol| code_lengths.lengths[*symbol] > 0);
    let listed = listed.map_or(4, |last| (last + 1).max(4));
    // Not the last block; codes of its own.
    out.put(0b100, 3);
    out.put(symbols as u32 - 257, 5);
    out.put(0, 5);
    out.put(listed as u32 - 4, 4);
    for symbol in &CODE_LENGTH_ORDER[..listed] {
        out.put(u32::from(code_lengths.lengths[*symbol]), 3);
    }
    for (symbol, extra, extra_bits) in steps {
        code_lengths.put(usize::from(symbol), out);
        out.put(extra, extra_bits);
    }
}

/// Code lengths with repetitions shortened, as symbols with the bits that follow them.
fn run_lengths(lengths: &[u8]) -> Vec<(u8, u32, u32)> {
    let mut steps = Vec::new();
    for group in lengths.chunk_by(|a, b| a == b) {
        let value = group[0];
        let mut left = group.len() as u32;
        if value != 0 {
            steps.push((value, 0, 0));
            left -= 1;
        }
        while left > 0 {
            let step = match (value, left) {
                (0, 11..) => (18, left.min(138) - 11, 7),
                (0, 3..) => (17, left - 3, 3),
                (1.., 3..) => (16, left.min(6) - 3, 2),
                _ => (value, 0, 0),
            };
            left -= match step.0 {
                18 => step.1 + 11,
                16 | 17 => step.1 + 3,
                _ => 1,
            };
            steps.push(step);
        }
    }
    steps
}
