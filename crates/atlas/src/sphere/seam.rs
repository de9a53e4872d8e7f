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
    let starts: Vec<f64> = pieces.iter().map(|piece| seam.position(piece[0])).collect();
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| starts[*a].total_cmp(&starts[*b]));
    let mut is_used = vec![false; pieces.len()];
    let mut rings = Vec::new();
    for first in 0..pieces.len() {
        if is_used[first] {
            continue;
        }
        let mut ring = Vec::new();
        let mut current = first;
        loop {
            is_used[current] = true;
            let piece = &pieces[current];
            ring.extend_from_slice(piece);
            let end = seam.position(piece[piece.len() - 1]);
            let (next, reach) = next_start(end, first, (&order, &starts, &is_used), seam.length());
            seam.corners(end, reach, &mut ring);
            if next == first {
                break;
            }
            current = next;
        }
        rings.push(ring);
    }
    rings
}

/// The first beginning at or after `end`, going round, that is free or closes the ring; and where it lies, counted on.
fn next_start(
    end: f64,
    first: usize,
    (order, starts, is_used): (&[usize], &[f64], &[bool]),
    length: f64,
) -> (usize, f64) {
    let from = order.partition_point(|index| starts[*index] < end);
    let around = order[from..]
        .iter()
        .map(|i| (*i, starts[*i]))
        .chain(order[..from].iter().map(|i| (*i, starts[*i] + length)));
    let mut fitting = around.filter(|(index, _)| *index == first || !is_used[*index]);
    // Every ring can at least be closed where it began.
    fitting.next().unwrap_or((first, end))
}
