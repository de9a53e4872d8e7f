//! A band of rows: the cells of every shape in it, and the rows of pixels they make.

use super::cells::{Cell, Cells};
use super::stroke::Pen;
use super::{Brush, Color, Picture, Shape};

/// Less than this covers nothing: half of what changes a byte.
const NOTHING: f32 = 1.0 / 512.0;

/// Draws a picture band by band; keeps its buffers from one band to the next.
#[derive(Debug)]
pub(crate) struct Band<'a> {
    picture: &'a Picture,
    cells: Cells,
    row: Vec<u32>,
    top: u32,
    is_blank: bool,
}

/// A row of pixels, or the news that it is the one before over again.
#[derive(Debug)]
pub(crate) enum Row<'a> {
    /// Red, green and blue of each pixel.
    New(&'a [u32]),
    Same,
}

impl<'a> Band<'a> {
    pub(crate) fn new(picture: &'a Picture) -> Self {
        let cells = Cells::new(picture.width);
        Self { picture, cells, row: vec![picture.paper; picture.width as usize], top: 0, is_blank: false }
    }

    /// Collects what the rows from `top` on, `count` of them, show.
    pub(crate) fn start(&mut self, top: u32, count: usize) {
        self.top = top;
        self.is_blank = false;
        self.cells.start(top, count);
        let bottom = top + count as u32;
        for (index, shape) in self.picture.shapes.iter().enumerate() {
            if shape.window.bottom > top && shape.window.top < bottom {
                self.cells.set_shape(index as u32);
                add(shape, [top as f32, bottom as f32], &mut self.cells);
            }
        }
    }

    /// One row of the band; to be asked for in order.
    pub(crate) fn row(&mut self, index: usize) -> Row<'_> {
        let was_blank = std::mem::take(&mut self.is_blank);
        let cells = self.cells.row_mut(index);
        if cells.is_empty() {
            self.is_blank = true;
            if was_blank {
                return Row::Same;
            }
        }
        self.row.fill(self.picture.paper);
        let y = self.top + index as u32;
        for group in cells.chunk_by_mut(|a, b| a.shape == b.shape) {
            let shape = &self.picture.shapes[group[0].shape as usize];
            if (shape.window.top..shape.window.bottom).contains(&y) {
                paint(&mut self.row, group, shape);
            }
        }
        Row::New(&self.row)
    }
}

/// Adds the edges of a shape that reach between two heights.
fn add(shape: &Shape, [top, bottom]: [f32; 2], cells: &mut Cells) {
    let half = match shape.brush {
        Brush::Fill => 0.0,
        Brush::Stroke(width) => width / 2.0,
    };
    let (path_top, path_bottom) = shape.path.reach();
    if path_bottom + half < top || path_top - half > bottom {
        return;
    }
    match shape.brush {
        Brush::Fill => shape.path.each_segment(top, bottom, |line, index| {
            let next = if index + 1 == line.points.len() { 0 } else { index + 1 };
            cells.edge(line.points[index], line.points[next]);
        }),
        Brush::Stroke(width) => {
            let pen = Pen::new(width);
            let (top, bottom) = (top - half, bottom + half);
            shape.path.each_segment(top, bottom, |line, index| {
                // Most segments of a piece that comes by are elsewhere, and an outline costs much more than a look.
                if line.comes_between(index, top, bottom) {
                    pen.segment(line, index, cells);
                }
            });
        }
    }
}

/// Lays a shape over a row.
fn paint(row: &mut [u32], cells: &mut [Cell], shape: &Shape) {
    cells.sort_unstable_by_key(|cell| cell.x);
    let (left, right) = (shape.window.left as usize, (shape.window.right as usize).min(row.len()));
    let mut cover = 0.0_f32;
    let mut rest = &*cells;
    while let Some(first) = rest.first() {
        let x = first.x as usize;
        let mut area = cover;
        while let Some(cell) = rest.first().filter(|cell| cell.x as usize == x) {
            area += cell.area;
            cover += cell.cover;
            rest = &rest[1..];
        }
        if (left..right).contains(&x) {
            blend(&mut row[x..=x], area.abs(), shape.color);
        }
        // Edges beyond the right side were left out, so a row may end inside a shape.
        let next = rest.first().map_or(right, |cell| (cell.x as usize).min(right));
        let start = (x + 1).max(left);
        if start < next && cover.abs() > NOTHING {
            blend(&mut row[start..next], cover.abs(), shape.color);
        }
    }
}

fn blend(pixels: &mut [u32], cover: f32, color: Color) {
    let alpha = (cover.min(1.0) * f32::from(color.alpha) + 0.5) as u32;
    match alpha {
        0 => {}
        255 => pixels.fill(color.rgb),
        _ => pixels.iter_mut().for_each(|pixel| *pixel = mix(*pixel, color.rgb, alpha)),
    }
}

/// `alpha` 255ths of one colour over another, each channel rounded.
fn mix(under: u32, over: u32, alpha: u32) -> u32 {
    let channel = |shift: u32| {
        let (a, b) = ((under >> shift) & 0xFF, (over >> shift) & 0xFF);
        ((a * (255 - alpha) + b * alpha + 127) / 255) << shift
    };
    channel(16) | channel(8) | channel(0)
}
