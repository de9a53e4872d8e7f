//! White corridors: narrow gaps that stand above each other on many lines separate columns, though each of them alone
//! might be a wide space between two words.

use crate::words::Piece;

/// A gap narrower than this is never part of a corridor, in sizes.
const GAP_MIN: f32 = 0.6;
/// What all gaps of a corridor share is at least this wide, in sizes.
const WIDTH_MIN: f32 = 0.5;
/// A corridor runs through at least this many lines with words on both of its sides.
const LINES_MIN: usize = 4;
/// A corridor ends where the next line is further away than this, in sizes.
const STEP_MAX: f32 = 3.0;
/// Corridors followed at one time: a page of dots has gaps without end.
const OPEN_MAX: usize = 200;

struct Corridor {
    from: f32,
    to: f32,
    base: f32,
    /// The gaps it is made of: level, and the piece that stands after the gap.
    gaps: Vec<(usize, usize)>,
}

/// For each piece of each level, whether a corridor runs before it. The levels are ordered downwards, their pieces from
/// left to right.
pub(crate) fn find(levels: &[Vec<Piece>]) -> Vec<Vec<bool>> {
    let mut is_after: Vec<Vec<bool>> = levels.iter().map(|level| vec![false; level.len()]).collect();
    let mut open: Vec<Corridor> = Vec::new();
    let mut close = |corridor: Corridor| {
        if corridor.gaps.len() >= LINES_MIN {
            for (level, piece) in corridor.gaps {
                is_after[level][piece] = true;
            }
        }
    };
    for (index, level) in levels.iter().enumerate() {
        let Some(first) = level.first() else {
            continue;
        };
        let (base, size) = (first.base, first.size);
        let gaps = gaps(level);
        let mut is_used = vec![false; gaps.len()];
        let mut still_open = Vec::with_capacity(open.len());
        for mut corridor in open {
            match corridor.meet(level, &gaps, base, size) {
                Meeting::Ends => close(corridor),
                Meeting::Passes => still_open.push(corridor),
                Meeting::Joins(gap) => {
                    is_used[gap] = true;
                    let Gap { from, to, piece } = gaps[gap];
                    (corridor.from, corridor.to) = (corridor.from.max(from), corridor.to.min(to));
                    corridor.base = base;
                    corridor.gaps.push((index, piece));
                    still_open.push(corridor);
                }
            }
        }
        open = still_open;
        for (gap, _) in gaps.iter().zip(is_used).filter(|(_, is_used)| !is_used) {
            if open.len() < OPEN_MAX {
                open.push(Corridor { from: gap.from, to: gap.to, base, gaps: vec![(index, gap.piece)] });
            }
        }
    }
    open.into_iter().for_each(close);
    is_after
}

#[derive(Clone, Copy)]
struct Gap {
    from: f32,
    to: f32,
    /// The piece after it.
    piece: usize,
}

fn gaps(level: &[Piece]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut end = f32::MAX;
    for (piece, next) in level.iter().enumerate() {
        if next.from - end >= GAP_MIN * next.size {
            gaps.push(Gap { from: end, to: next.from, piece });
        }
        end = if end == f32::MAX { next.to } else { end.max(next.to) };
    }
    gaps
}

enum Meeting {
    /// A word stands in the way, or the corridor is too far above.
    Ends,
    /// The line stands on one side only.
    Passes,
    /// The corridor goes on through this gap.
    Joins(usize),
}

impl Corridor {
    fn meet(&self, level: &[Piece], gaps: &[Gap], base: f32, size: f32) -> Meeting {
        if base - self.base > STEP_MAX * size {
            return Meeting::Ends;
        }
        let shared = |gap: &Gap| self.to.min(gap.to) - self.from.max(gap.from);
        let widest = gaps.iter().enumerate().max_by(|(_, a), (_, b)| shared(a).total_cmp(&shared(b)));
        if let Some((index, _)) = widest.filter(|(_, gap)| shared(gap) >= WIDTH_MIN * size) {
            return Meeting::Joins(index);
        }
        let is_crossed =
            level.iter().any(|piece| piece.from < self.to - 0.1 * size && piece.to > self.from + 0.1 * size);
        if is_crossed { Meeting::Ends } else { Meeting::Passes }
    }
}
