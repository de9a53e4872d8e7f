//! The order in which a person reads: the page is cut along its white space into columns and bands.

use super::{Area, Row};

/// A white strip between columns is at least this wide, in sizes.
const GUTTER_MIN: f32 = 0.8;
/// A band of white that separates blocks is at least this high, in sizes.
const BAND_MIN: f32 = 0.55;
/// Cells of one row stand on one base line, up to this, in sizes.
const SAME_BASE: f32 = 0.15;
/// Text that stands further away than this must meet it more closely, for it meets it by chance as well; in sizes.
const FAR: f32 = 12.0;
const SAME_BASE_FAR: f32 = 0.08;
/// White strips that are looked at, the widest first: a page of dots has strips without end.
const STRIPS_MAX: usize = 8;
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
        // Columns of prose are read to their end; elsewhere what stands in one band belongs together.
        if let Some(at) = gutter(&mut rows, are_prose) {
            return cut_columns(rows, at, depth, blocks);
        }
        if let Some(at) = band(&mut rows) {
            let (above, below) = rows.into_iter().partition(|row| row.area.top < at);
            cut(above, depth + 1, blocks);
            return cut(below, depth + 1, blocks);
        }
        if let Some(at) = gutter(&mut rows, are_unaligned) {
            return cut_columns(rows, at, depth, blocks);
        }
    }
    sort_rows(&mut rows);
    blocks.push(rows);
}

fn cut_columns(rows: Vec<Row>, at: f32, depth: u32, blocks: &mut Vec<Vec<Row>>) {
    let is_rtl = is_rtl(&rows);
    let (left, right) = rows.into_iter().partition(|row| row.area.from < at);
    let (first, second) = if is_rtl { (right, left) } else { (left, right) };
    cut(first, depth + 1, blocks);
    cut(second, depth + 1, blocks);
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

/// Where the widest white strip from top to bottom lies, among those whose two sides are columns.
fn gutter(rows: &mut [Row], are_columns: fn(&[Row], &[Row], f32) -> bool) -> Option<f32> {
    let size = typical_size(rows);
    rows.sort_by(|a, b| a.area.from.total_cmp(&b.area.from));
    let mut strips: Vec<(usize, f32)> = Vec::new();
    let mut end = rows[0].area.to;
    for (index, row) in rows.iter().enumerate().skip(1) {
        let width = row.area.from - end;
        if width >= GUTTER_MIN * size {
            strips.push((index, width));
        }
        end = end.max(row.area.to);
    }
    strips.sort_by(|a, b| b.1.total_cmp(&a.1));
    let is_gutter =
        |(index, width): &&(usize, f32)| are_columns(&rows[..*index], &rows[*index..], width / size);
    strips.iter().take(STRIPS_MAX).find(is_gutter).map(|(index, _)| rows[*index].area.from)
}

/// Whether both sides are running text.
fn are_prose(left: &[Row], right: &[Row], _width: f32) -> bool {
    let is_prose = |rows: &[Row]| {
        let words: usize = rows.iter().map(|row| row.words.len()).sum();
        rows.len() >= 3 && words as f32 >= WORDS_PER_LINE * rows.len() as f32
    };
    is_prose(left) && is_prose(right)
}

/// Whether the lines of the two sides do not stand at the same heights, as the cells of a table do.
fn are_unaligned(left: &[Row], right: &[Row], width: f32) -> bool {
    let (few, many) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let same_base = if width >= FAR { SAME_BASE_FAR } else { SAME_BASE };
    let mut bases: Vec<f32> = many.iter().map(|row| row.base).collect();
    bases.sort_by(f32::total_cmp);
    let is_beside = |row: &&Row| {
        let at = bases.partition_point(|base| *base < row.base - same_base * row.size);
        bases.get(at).is_some_and(|base| *base <= row.base + same_base * row.size)
    };
    few.len() >= 2 && few.iter().filter(is_beside).count() * 2 < few.len()
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
