//! Joining the pieces of a polygon that was cut: from where the polygon leaves the map, along the map's edge, to where
//! it comes in again.

use crate::projection::Place;

/// The edge of a map as a line that runs clockwise around all that is seen.
pub(super) trait Seam {
    /// How far along the edge a place on it lies.
    fn position(&self, place: Place) -> f64;

    /// How long the edge is, all around.
    fn length(&self) -> f64;

    /// Adds what has to be drawn between two positions, without the ends; `to` is beyond `from`, perhaps by more than
    /// what is left of the edge.
    fn corners(&self, from: f64, to: f64, out: &mut Vec<Place>);
}

/// Joins pieces, each of which begins and ends on the edge, to rings. With the inside to the right, the way from an end
/// to the next beginning is always clockwise along the edge.
pub(super) fn join(pieces: Vec<Vec<Place>>, seam: &impl Seam) -> Vec<Vec<Place>> {
    let pieces: Vec<_> = pieces.into_iter().filter(|piece| piece.len() >= 2).collect();
    let mut starts = Starts::new(pieces.iter().map(|piece| seam.position(piece[0])).collect());
    let mut rings = Vec::new();
    for first in 0..pieces.len() {
        if !starts.is_free(first) {
            continue;
        }
        let mut ring = Vec::new();
        let mut current = first;
        loop {
            let piece = &pieces[current];
            ring.extend_from_slice(piece);
            let end = seam.position(piece[piece.len() - 1]);
            // The first one is free until the ring is closed, so every ring can at least be closed where it began.
            let (next, reach) = starts.after(end, seam.length());
            seam.corners(end, reach, &mut ring);
            starts.take(next);
            if next == first {
                break;
            }
            current = next;
        }
        rings.push(ring);
    }
    rings
}

/// Where pieces begin, in the order along the edge, and which of them are free.
struct Starts {
    /// Position and piece.
    sorted: Vec<(f64, usize)>,
    /// Where each piece stands in `sorted`.
    ranks: Vec<usize>,
    /// For each rank itself if it is free, or else one that is nearer to the next free one: rings of very many pieces
    /// would otherwise look at most of the used ones for each.
    next: Vec<usize>,
}

impl Starts {
    fn new(positions: Vec<f64>) -> Self {
        let mut sorted: Vec<(f64, usize)> = positions.into_iter().zip(0..).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ranks = vec![0; sorted.len()];
        sorted.iter().enumerate().for_each(|(rank, (_, piece))| ranks[*piece] = rank);
        Self { next: (0..=sorted.len()).collect(), sorted, ranks }
    }

    fn is_free(&self, piece: usize) -> bool {
        let rank = self.ranks[piece];
        self.next[rank] == rank
    }

    fn take(&mut self, piece: usize) {
        let rank = self.ranks[piece];
        self.next[rank] = rank + 1;
    }

    /// The first free beginning at or after `end`, going round, of which there must be one; and where it lies, counted on.
    fn after(&mut self, end: f64, length: f64) -> (usize, f64) {
        let rank = self.sorted.partition_point(|(start, _)| *start < end);
        let (rank, turn) = match self.free_from(rank) {
            rank if rank < self.sorted.len() => (rank, 0.0),
            _ => (self.free_from(0), length),
        };
        let (start, piece) = self.sorted[rank];
        (piece, start + turn)
    }

    /// The first free rank from one on, or one past the last.
    fn free_from(&mut self, mut rank: usize) -> usize {
        while self.next[rank] != rank {
            self.next[rank] = self.next[self.next[rank]];
            rank = self.next[rank];
        }
        rank
    }
}
