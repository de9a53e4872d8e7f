//! The outlines of a font as a CFF table: cubic curves as they come, no hints.

use hayro_interpret::kurbo::{BezPath, PathEl, Point};

/// Coordinates further out than this are not a letter's.
const COORDINATE_MAX: f64 = 16_000.0;
/// Numbers that one instruction may take at once.
const OPERANDS_MAX: usize = 48;

const LINES: u8 = 5;
const CURVES: u8 = 8;
const END: u8 = 14;
const MOVE: u8 = 21;

/// The strings that every number below 391 already stands for are not written; these two come after them.
const STRINGS: [&[u8]; 2] = [b"Adobe", b"Identity"];
const FIRST_STRING: i32 = 391;

/// The table for these outlines; the first is the glyph for what is not known.
pub(super) fn table<'o>(outlines: impl ExactSizeIterator<Item = &'o BezPath>) -> Vec<u8> {
    let count = outlines.len();
    let programs: Vec<Vec<u8>> = outlines.map(program).collect();
    let mut head = vec![1, 0, 4, 4];
    head.extend(index(&[b"O".to_vec()]));
    let strings = index(&STRINGS.map(<[u8]>::to_vec));
    let no_routines = index(&[]);
    // The offsets have a fixed width, so that their own place does not depend on them.
    let top_length = index(&[top(count, [0; 4])]).len();
    let charset_at = head.len() + top_length + strings.len() + no_routines.len();
    let charset = charset(count);
    let select_at = charset_at + charset.len();
    let select = select(count);
    let programs_at = select_at + select.len();
    let programs = index(&programs);
    let fonts_at = programs_at + programs.len();
    // The only font inside has no private values at all: its dictionary says so.
    let mut font = Vec::new();
    offset(&mut font, 0);
    offset(&mut font, fonts_at as i32);
    font.push(18);

    let mut table = head;
    table.extend(index(&[top(count, [charset_at, select_at, programs_at, fonts_at])]));
    table.extend(strings);
    table.extend(no_routines);
    table.extend(charset);
    table.extend(select);
    table.extend(programs);
    table.extend(index(&[font]));
    table
}

fn top(count: usize, [charset, select, programs, fonts]: [usize; 4]) -> Vec<u8> {
    let mut top = Vec::new();
    number(&mut top, FIRST_STRING);
    number(&mut top, FIRST_STRING + 1);
    number(&mut top, 0);
    top.extend([12, 30]);
    offset(&mut top, count as i32);
    top.extend([12, 34]);
    offset(&mut top, charset as i32);
    top.push(15);
    offset(&mut top, programs as i32);
    top.push(17);
    offset(&mut top, fonts as i32);
    top.extend([12, 36]);
    offset(&mut top, select as i32);
    top.extend([12, 37]);
    top
}

/// All glyphs but the first are numbered through.
fn charset(count: usize) -> Vec<u8> {
    if count < 2 {
        return vec![0];
    }
    let mut charset = vec![2, 0, 1];
    charset.extend((count as u16 - 2).to_be_bytes());
    charset
}

/// All glyphs belong to the only font inside.
fn select(count: usize) -> Vec<u8> {
    let mut select = vec![3, 0, 1, 0, 0, 0];
    select.extend((count as u16).to_be_bytes());
    select
}

fn index(items: &[Vec<u8>]) -> Vec<u8> {
    let mut index = (items.len() as u16).to_be_bytes().to_vec();
    if items.is_empty() {
        return index;
    }
    index.push(4);
    let mut at = 1_u32;
    index.extend(at.to_be_bytes());
    for item in items {
        at += item.len() as u32;
        index.extend(at.to_be_bytes());
    }
    items.iter().for_each(|item| index.extend(item));
    index
}

/// A number of fixed width.
fn offset(out: &mut Vec<u8>, value: i32) {
    out.push(29);
    out.extend(value.to_be_bytes());
}

fn number(out: &mut Vec<u8>, value: i32) {
    match value {
        -107..=107 => out.push((value + 139) as u8),
        108..=1131 => {
            let value = value - 108;
            out.extend([(value >> 8) as u8 + 247, value as u8]);
        }
        -1131..=-108 => {
            let value = -value - 108;
            out.extend([(value >> 8) as u8 + 251, value as u8]);
        }
        _ => {
            out.push(28);
            out.extend((value as i16).to_be_bytes());
        }
    }
}

/// Writes one outline's instructions, consecutive ones of a kind together.
struct Program {
    bytes: Vec<u8>,
    operands: Vec<i32>,
    pending: u8,
    x: i32,
    y: i32,
}

fn program(outline: &BezPath) -> Vec<u8> {
    let mut program = Program { bytes: Vec::new(), operands: Vec::new(), pending: MOVE, x: 0, y: 0 };
    let mut last = Point::ORIGIN;
    for element in outline.elements() {
        match *element {
            PathEl::MoveTo(to) => program.push(MOVE, &[to]),
            PathEl::LineTo(to) => program.push(LINES, &[to]),
            PathEl::QuadTo(by, to) => {
                let toward = |end: Point| end + (by - end) * (2.0 / 3.0);
                program.push(CURVES, &[toward(last), toward(to), to]);
            }
            PathEl::CurveTo(one, two, to) => program.push(CURVES, &[one, two, to]),
            // Every contour is closed by whatever follows it.
            PathEl::ClosePath => continue,
        }
        last = element.end_point().unwrap_or(last);
    }
    program.flush();
    program.bytes.push(END);
    program.bytes
}

impl Program {
    fn push(&mut self, kind: u8, points: &[Point]) {
        let is_full = self.operands.len() + points.len() * 2 > OPERANDS_MAX;
        if kind != self.pending || kind == MOVE || is_full {
            self.flush();
            self.pending = kind;
        }
        for point in points {
            let round = |value: f64| value.clamp(-COORDINATE_MAX, COORDINATE_MAX).round() as i32;
            let (x, y) = (round(point.x), round(point.y));
            self.operands.extend([x - self.x, y - self.y]);
            (self.x, self.y) = (x, y);
        }
    }

    fn flush(&mut self) {
        if self.operands.is_empty() {
            return;
        }
        for operand in self.operands.drain(..) {
            number(&mut self.bytes, operand);
        }
        self.bytes.push(self.pending);
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_take_as_little_room_as_they_may() {
        let check = |value: i32, expected: &[u8]| {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(out, expected, "{value}");
        };
        check(0, &[139]);
        check(-107, &[32]);
        check(108, &[247, 0]);
        check(1131, &[250, 255]);
        check(-108, &[251, 0]);
        check(-1131, &[254, 255]);
        check(2000, &[28, 7, 208]);
    }
}
