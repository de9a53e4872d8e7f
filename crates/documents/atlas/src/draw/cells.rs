//! The pixels that edges touch, with their exact share of each.

use super::Pixel;

/// A pixel that at least one edge of a shape touches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) shape: u32,
    pub(super) x: u32,
    /// How much of every later pixel of the row the edges to the left cover.
    pub(super) cover: f32,
    /// How much of this pixel they cover.
    pub(super) area: f32,
}

/// The touched pixels of a band, row by row, in the order they were touched.
#[derive(Debug)]
pub(super) struct Cells {
    top: f32,
    width: f32,
    rows: Vec<Row>,
    shape: u32,
    /// More cells than this of one shape in one row are put together, one for each pixel: thousands of lines across the
    /// page would else take memory for every crossing. Two for each pixel, so that as many must come before the next time.
    crowd: usize,
    sums: Vec<[f32; 2]>,
}

#[derive(Debug, Default)]
struct Row {
    cells: Vec<Cell>,
    /// Where the cells of the last shape begin.
    start: usize,
}

impl Row {
    /// Makes the cells of the last shape into one for each pixel.
    fn gather(&mut self, sums: &mut [[f32; 2]]) {
        let shape = self.cells[self.start].shape;
        for cell in self.cells.drain(self.start..) {
            let [cover, area] = &mut sums[cell.x as usize];
            *cover += cell.cover;
            *area += cell.area;
        }
        for (x, sum) in sums.iter_mut().enumerate().filter(|(_, sum)| **sum != [0.0; 2]) {
            let [cover, area] = std::mem::take(sum);
            self.cells.push(Cell { shape, x: x as u32, cover, area });
        }
    }
}

impl Cells {
    pub(super) fn new(width: u32) -> Self {
        let pixels = width as usize;
        // Rounding may bring an edge at the right border just beyond it.
        let sums = vec![[0.0; 2]; pixels + 1];
        Self { top: 0.0, width: width as f32, rows: Vec::new(), shape: 0, crowd: 2 * pixels + 1024, sums }
    }

    /// Makes ready for the `count` rows from `top` on.
    pub(super) fn start(&mut self, top: u32, count: usize) {
        self.top = top as f32;
        self.rows.resize_with(count, Row::default);
        self.rows.iter_mut().for_each(|row| row.cells.clear());
    }

    /// Edges from now on belong to this shape.
    pub(super) fn set_shape(&mut self, shape: u32) {
        self.shape = shape;
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut Vec<Cell> {
        &mut self.rows[row].cells
    }

    /// Adds an edge. The inside of a shape is where its edges, all taken together, go around.
    pub(super) fn edge(&mut self, from: Pixel, to: Pixel) {
        let (a, b, sign) = if from[1] < to[1] { (from, to, 1.0) } else { (to, from, -1.0) };
        let height = self.rows.len() as f32;
        let (y0, y1) = (a[1] - self.top, b[1] - self.top);
        // Also false for what is not a number.
        if !(y0 < height && y1 > 0.0 && y0 < y1) {
            return;
        }
        let slope = (b[0] - a[0]) / (y1 - y0);
        let x_at = |y: f32| a[0] + (y - y0) * slope;
        let (first, last) = (y0.max(0.0), y1.min(height));
        let (x_first, x_last) =
            (if y0 < 0.0 { x_at(0.0) } else { a[0] }, if y1 > height { x_at(height) } else { b[0] });
        if x_first.min(x_last) >= 0.0 && x_first.max(x_last) < self.width {
            return self.inside([x_first, first], [x_last, last], slope, sign);
        }
        self.across([x_first, first], [x_last, last], slope, sign);
    }

    /// An edge that leaves the page at a side: what is to the left of it counts as its left border, what is to the right
    /// covers nothing that can be seen.
    fn across(&mut self, from: Pixel, to: Pixel, slope: f32, sign: f32) {
        let right = self.width - 0.001;
        let y_at = |x: f32| (from[1] + (x - from[0]) / slope).clamp(from[1], to[1]);
        let mut cuts = [from[1], to[1], to[1], to[1]];
        if slope != 0.0 {
            let (left_y, right_y) = (y_at(0.0), y_at(right));
            cuts[1] = left_y.min(right_y);
            cuts[2] = left_y.max(right_y);
        }
        for pair in cuts.windows(2).filter(|pair| pair[0] < pair[1]) {
            let x_of = |y: f32| from[0] + (y - from[1]) * slope;
            let middle = x_of((pair[0] + pair[1]) / 2.0);
            if middle >= right {
                continue;
            }
            let (x0, x1) = (x_of(pair[0]).clamp(0.0, right), x_of(pair[1]).clamp(0.0, right));
            let is_left = middle < 0.0;
            let (x0, x1, slope) = if is_left { (0.0, 0.0, 0.0) } else { (x0, x1, slope) };
            self.inside([x0, pair[0]], [x1, pair[1]], slope, sign);
        }
    }

    /// An edge that is on the page, downwards.
    fn inside(&mut self, from: Pixel, to: Pixel, slope: f32, sign: f32) {
        let mut y = from[1];
        let mut x = from[0];
        let last_row = (self.rows.len() - 1).min(to[1] as usize);
        let (low, high) = if from[0] < to[0] { (from[0], to[0]) } else { (to[0], from[0]) };
        for row in (from[1] as usize)..=last_row {
            let bottom = (row + 1) as f32;
            let (next_y, next_x) = if bottom < to[1] {
                (bottom, (from[0] + (bottom - from[1]) * slope).clamp(low, high))
            } else {
                (to[1], to[0])
            };
            self.row_piece(row, [x, next_x], (next_y - y) * sign);
            (x, y) = (next_x, next_y);
        }
    }

    /// The part of an edge within one row: between two x, covering `cover` of the row's height.
    fn row_piece(&mut self, row: usize, [from, to]: [f32; 2], cover: f32) {
        let (left, right) = if from < to { (from, to) } else { (to, from) };
        let (first, last) = (left as u32, right as u32);
        if first == last {
            let area = cover * (first as f32 + 1.0 - (left + right) * 0.5);
            return self.touch(row, first, cover, area);
        }
        let each = cover / (right - left);
        for x in first..=last {
            let (start, end) = (left.max(x as f32), right.min((x + 1) as f32));
            let share = (end - start) * each;
            self.touch(row, x, share, share * (x as f32 + 1.0 - (start + end) * 0.5));
        }
    }

    fn touch(&mut self, row: usize, x: u32, cover: f32, area: f32) {
        let shape = self.shape;
        let row = &mut self.rows[row];
        match row.cells.last_mut() {
            Some(cell) if cell.shape == shape => {
                if cell.x == x {
                    cell.cover += cover;
                    cell.area += area;
                    return;
                }
            }
            Some(_) | None => row.start = row.cells.len(),
        }
        row.cells.push(Cell { shape, x, cover, area });
        if row.cells.len() - row.start > self.crowd {
            row.gather(&mut self.sums);
        }
    }
}
