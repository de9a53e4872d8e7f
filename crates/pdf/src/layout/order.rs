//! The order in which a person reads: the page is cut along its white space, columns first, then bands.

use super::{Area, Row};

/// A white strip between columns is at least this wide, in sizes.
const GUTTER_MIN: f32 = 0.8;
/// A band of white that separates blocks is at least this high, in sizes.
const BAND_MIN: f32 = 0.55;
/// Cuts within cuts; each halves the rows at best, so real pages stay far below.
const DEPTH_MAX: u32 = 60;
/// A line of running text has at least this many words on average.
const WORDS_PER_LINE: f32 = 3.0;

/// Rows grouped into blocks, in reading order.
pub(crate) fn blocks(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        cut(rows, 0, &mut blocks);
    }
    blocks
}

fn cut(mut rows: Vec<Row>, depth: u32, blocks: &mut Vec<Vec<Row>>) {
    if rows.len() > 1 && depth < DEPTH_MAX {
        if let Some(at) = gutter(&mut rows) {
            let is_rtl = is_rtl(&rows);
            let (left, right) = rows.into_iter().partition(|row| row.area.from < at);
            let (first, second) = if is_rtl { (right, left) } else { (left, right) };
            cut(first, depth + 1, blocks);
            cut(second, depth + 1, blocks);
            return;
        }
        if let Some(at) = band(&mut rows) {
            let (above, below) = rows.into_iter().partition(|row| row.area.top < at);
            cut(above, depth + 1, blocks);
            cut(below, depth + 1, blocks);
            return;
        }
    }
    sort_rows(&mut rows);
    blocks.push(rows);
}

fn is_rtl(rows: &[Row]) -> bool {
    rows.iter().filter(|row| row.is_rtl).count() * 2 > rows.len()
}

/// Rows by height, and in the direction of writing where they stand at one height.
fn sort_rows(rows: &mut [Row]) {
    let is_rtl = is_rtl(rows);
    rows.sort_by(|a, b| a.base.total_cmp(&b.base));
    let mut first = 0;
    for index in 1..=rows.len() {
        let is_end =
            index == rows.len() || rows[index].base - rows[first].base > 0.4 * rows[first].size.max(1.0);
        if is_end {
            rows[first..index].sort_by(|a, b| a.area.from.total_cmp(&b.area.from));
            if is_rtl {
                rows[first..index].reverse();
            }
            first = index;
        }
    }
}

fn typical_size(rows: &[Row]) -> f32 {
    let mut sizes: Vec<f32> = rows.iter().map(|row| row.size).collect();
    let middle = sizes.len() / 2;
    *sizes.select_nth_unstable_by(middle, f32::total_cmp).1
}

/// Where a white strip from top to bottom separates columns that are read one after the other.
fn gutter(rows: &mut [Row]) -> Option<f32> {
    let width_min = GUTTER_MIN * typical_size(rows);
    rows.sort_by(|a, b| a.area.from.total_cmp(&b.area.from));
    let mut best: Option<(f32, f32)> = None;
    let mut end = rows[0].area.to;
    for index in 1..rows.len() {
        let start = rows[index].area.from;
        let width = start - end;
        if width >= width_min
            && best.is_none_or(|(_, widest)| width > widest)
            && are_columns(&rows[..index], &rows[index..])
        {
            best = Some((start, width));
        }
        end = end.max(rows[index].area.to);
    }
    best.map(|(at, _)| at)
}

/// Whether two groups side by side are read one after the other rather than line by line, as a table is.
fn are_columns(left: &[Row], right: &[Row]) -> bool {
    let is_prose = |rows: &[Row]| {
        let words: usize = rows.iter().map(|row| row.words.len()).sum();
        rows.len() >= 3 && words as f32 >= WORDS_PER_LINE * rows.len() as f32
    };
    let (few, many) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let is_beside = |row: &&Row| many.iter().any(|other| (other.base - row.base).abs() <= 0.25 * row.size);
    let aligned = few.iter().filter(is_beside).count();
    (is_prose(left) && is_prose(right)) || (aligned * 2 < few.len() && few.len() >= 2)
}

/// Where the highest band of white from left to right lies.
fn band(rows: &mut [Row]) -> Option<f32> {
    let height_min = BAND_MIN * typical_size(rows);
    rows.sort_by(|a, b| a.area.top.total_cmp(&b.area.top));
    let mut best: Option<(f32, f32)> = None;
    let mut covered = Area::NONE;
    for row in rows.iter() {
        let height = row.area.top - covered.bottom;
        let is_first = covered.bottom == f32::MIN;
        if !is_first && height >= height_min && best.is_none_or(|(_, highest)| height > highest) {
            best = Some((row.area.top, height));
        }
        covered = covered.with(row.area);
    }
    best.map(|(at, _)| at)
}
