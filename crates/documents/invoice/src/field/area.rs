//! The part of a document between two headings.

use std::ops::Range;

use super::Context;
use crate::label::Hit;
use crate::mapping::Within;
use crate::sheet::Span;

/// A stretch of rows between two headings.
pub(crate) struct Area {
    from: (usize, usize),
    to: (usize, usize),
    x: Range<f32>,
}

impl Area {
    pub(crate) fn holds(&self, page: usize, row: usize, x: f32) -> bool {
        let at = (page, row);
        self.from <= at && at < self.to && self.x.contains(&x)
    }

    pub(super) fn lines(&self, context: Context<'_>) -> Vec<Span> {
        let mut lines = Vec::new();
        for (page, at, row) in context.sheet.rows() {
            let number = context.sheet.pages[page].page.number;
            let mut inside = row.pieces.iter().filter(|p| self.holds(page, at, p.bbox.x0));
            if let Some(first) = inside.next() {
                let end = inside.next_back().map_or(first.chars.end, |p| p.chars.end);
                lines.push(row.span(number, &(first.chars.start..end)));
            }
        }
        lines
    }
}

pub(crate) fn areas(within: &Within, context: Context<'_>) -> Vec<Area> {
    let ends = context.hits.of(&within.to);
    let starts = context.hits.of(&within.from).into_iter().filter(|hit| begins_piece(hit, context));
    starts
        .map(|hit| {
            let from = (hit.page, hit.row + 1);
            let x = if within.is_column { column_of(&hit, context) } else { f32::MIN..f32::MAX };
            let in_column = |end: &Hit| {
                let left = context.sheet.row(end.page, end.row).rect(&end.chars).map_or(0.0, |r| r.x0);
                x.contains(&left) && begins_piece(end, context)
            };
            let to = ends.iter().filter(|e| (e.page, e.row) >= from).find(|e| in_column(e));
            Area { from, to: to.map_or((usize::MAX, 0), |e| (e.page, e.row)), x }
        })
        .collect()
}

/// A heading begins its piece; the same word inside a sentence opens nothing.
pub(crate) fn begins_piece(hit: &Hit, context: Context<'_>) -> bool {
    let row = context.sheet.row(hit.page, hit.row);
    row.piece_at(hit.chars.start).is_some_and(|at| row.pieces[at].chars.start == hit.chars.start)
}

/// From the heading's left edge to the next piece beside it.
fn column_of(hit: &Hit, context: Context<'_>) -> Range<f32> {
    let row = context.sheet.row(hit.page, hit.row);
    let Some(at) = row.piece_at(hit.chars.start) else { return f32::MIN..f32::MAX };
    let slack = 8.0;
    let left = if at == 0 { f32::MIN } else { row.pieces[at].bbox.x0 - slack };
    let right = row.pieces.get(at + 1).map_or(f32::MAX, |p| p.bbox.x0 - slack);
    left..right
}
