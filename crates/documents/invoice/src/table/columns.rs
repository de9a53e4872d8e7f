//! Bounds of columns: drawn rules, white gutters, and on which side cells are aligned.

use std::ops::Range;

use ode_pdf::Rect;

use super::{Bands, BodyRow, Heads, cell_span, mid_x, words_of};
use crate::mapping::TableRule;
use crate::sheet::{SheetPage, union};
use crate::values::{self, Kind, Locale};

/// Bounds between columns: a drawn rule where there is one, else the widest white gutter.
pub(super) fn cut_columns(
    rule: &TableRule,
    heads: &Heads,
    page: &SheetPage<'_>,
    body: &[BodyRow<'_>],
    locale: &Locale,
) -> Bands {
    let mut order: Vec<(usize, Rect)> =
        heads.iter().enumerate().filter_map(|(at, r)| r.map(|r| (at, r))).collect();
    order.sort_by(|a, b| mid_x(a.1).total_cmp(&mid_x(b.1)));
    let main = main_rows(rule, &order, body, locale);
    // Walls between columns stand beside the first row of the body, whether or not the headings have any.
    let y = body.first().map_or(0.0, |part| part.row.y_mid());
    let mut bands: Bands = vec![None; rule.columns.len()];
    let mut left = 0.0;
    let mut at = 0;
    while at < order.len() {
        // Headings that stand over each other head one column, whose cells hold several lines.
        let stack = order[at..].iter().take_while(|(_, head)| is_stacked(order[at].1, *head)).count().max(1);
        let head = order[at..at + stack].iter().map(|(_, r)| *r).reduce(union).unwrap_or(order[at].1);
        let sides = |column: usize| Side::of(rule.columns[column].kind);
        let right = order.get(at + stack).map_or(page.page.width, |(next, rect)| {
            let gap = gutter(head, *rect, page, y, &main);
            cut_in(&gap, sides(order[at].0), sides(*next))
        });
        for (column, _) in &order[at..at + stack] {
            bands[*column] = Some(left..right);
        }
        left = right;
        at += stack;
    }
    bands
}

/// On which side a column's cells are aligned.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Amount | Kind::Number | Kind::Quantity | Kind::Int | Kind::Percent => Self::Right,
            Kind::Text
            | Kind::Id
            | Kind::Unit
            | Kind::Date
            | Kind::Currency
            | Kind::Iban
            | Kind::Bic
            | Kind::VatId
            | Kind::TaxNumber => Self::Left,
        }
    }
}

/// Where in a white gutter the bound lies: right before a column that starts there, right behind one that ends
/// there, else in the middle. Cells of other rows may be longer than those that were looked at.
fn cut_in(gap: &Range<f32>, left: Side, right: Side) -> f32 {
    let margin = ((gap.end - gap.start) * 0.25).min(1.5);
    match (left, right) {
        (_, Side::Left) => gap.end - margin,
        (Side::Right, Side::Right) => f32::midpoint(gap.start, gap.end).min(gap.start + 12.0),
        (Side::Left, Side::Right) => f32::midpoint(gap.start, gap.end),
    }
}

fn is_stacked(a: Rect, b: Rect) -> bool {
    let shared = a.x1.min(b.x1) - a.x0.max(b.x0);
    shared > 0.6 * (a.x1 - a.x0).min(b.x1 - b.x0)
}

/// What the bounds of columns are found by: the headings and the rows that carry the table's figures. Notes between
/// them may reach over every gutter.
struct MainRows {
    words: Vec<Rect>,
    pieces: Vec<Rect>,
}

fn main_rows(rule: &TableRule, order: &[(usize, Rect)], body: &[BodyRow<'_>], locale: &Locale) -> MainRows {
    let at = order.iter().position(|(column, _)| *column == rule.starts);
    let left = at.and_then(|at| at.checked_sub(1)).map_or(0.0, |before| mid_x(order[before].1));
    let right = at.and_then(|at| order.get(at + 1)).map_or(f32::MAX, |(_, r)| mid_x(*r));
    let kind = rule.columns[rule.starts].kind;
    let heads: Vec<Rect> = order.iter().map(|(_, head)| *head).collect();
    let mut main = MainRows { words: heads.clone(), pieces: heads };
    for part in body {
        let cell = cell_span(part, &(left..right));
        if cell.is_some_and(|c| !values::read_all(kind, &c.text, locale).is_empty()) {
            main.words.extend(words_of(part.row).into_iter().map(|w| w.1));
            main.pieces.extend(part.row.pieces.iter().map(|p| p.bbox));
        }
    }
    main
}

/// The white between two columns: at a drawn rule where there is one. Else the last stretch that no piece of text
/// crosses: headings are centred or aligned like their cells, so what stands before the next one is not its own. Where
/// cells touch, the widest stretch between words.
fn gutter(left: Rect, right: Rect, page: &SheetPage<'_>, y: f32, main: &MainRows) -> Range<f32> {
    let (from, to) = (mid_x(left), mid_x(right));
    let drawn =
        page.uprights.iter().filter(|(x, top, bottom)| from < *x && *x < to && *top <= y && y <= *bottom);
    if let Some((x, _, _)) = drawn.max_by(|a, b| a.0.total_cmp(&b.0)) {
        return *x..*x;
    }
    let between = left.x1.min(right.x0)..right.x0.max(left.x1);
    let last = stretches(&main.pieces, from..to)
        .into_iter()
        .rfind(|(depth, s)| *depth == 0 && s.end - s.start > 1.5);
    let widest = || {
        let by_width = |s: &Range<f32>| s.end - s.start;
        let all = stretches(&main.words, from..to).into_iter();
        all.min_by(|(a, x), (b, y)| a.cmp(b).then(by_width(y).total_cmp(&by_width(x))))
    };
    last.or_else(widest).map_or(between, |(_, stretch)| stretch)
}

/// Stretches between the edges of boxes within a range, with how many boxes cross each.
fn stretches(boxes: &[Rect], range: Range<f32>) -> Vec<(i32, Range<f32>)> {
    let mut edges: Vec<(f32, i32)> = Vec::new();
    for rect in boxes.iter().filter(|w| w.x1 > range.start && w.x0 < range.end) {
        edges.push((rect.x0.max(range.start), 1));
        edges.push((rect.x1.min(range.end), -1));
    }
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut found = Vec::new();
    let (mut depth, mut at) = (0, range.start);
    for (x, step) in edges.into_iter().chain([(range.end, 0)]) {
        if x - at > 0.1 {
            found.push((depth, at..x));
        }
        depth += step;
        at = x;
    }
    found
}
