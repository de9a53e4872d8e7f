//! Dashed lines.

use super::{Line, Path, Pixel};

/// Dashes and gaps of one path; what is left after that many is drawn whole. Nobody could count them on a page, but lines
/// that go on far beyond it have more.
const STEPS_MAX: u32 = 2_000_000;

/// The dashes of a path: `on` pixels drawn, `off` pixels left out. Both must be greater than 0.
pub(crate) fn dashed(path: &Path, on: f32, off: f32) -> Path {
    let mut dashes = Path::default();
    let mut steps = STEPS_MAX;
    path.lines().for_each(|line| dash_line(line, [on, off], &mut steps, &mut dashes));
    dashes.finish()
}

fn dash_line(line: Line<'_>, [on, off]: [f32; 2], steps: &mut u32, out: &mut Path) {
    let closing = line.is_closed.then(|| line.points[0]);
    let mut piece: Vec<Pixel> = vec![line.points[0]];
    let mut is_on = true;
    let mut left = on;
    let mut from = line.points[0];
    for &to in line.points[1..].iter().chain(closing.iter()) {
        let (x, y) = (to[0] - from[0], to[1] - from[1]);
        let mut length = (x * x + y * y).sqrt();
        while length > left && *steps > 0 {
            *steps -= 1;
            let t = left / length;
            from = [from[0] + (to[0] - from[0]) * t, from[1] + (to[1] - from[1]) * t];
            length -= left;
            piece.push(from);
            if is_on {
                out.add(piece.drain(..), false);
            }
            piece.clear();
            piece.push(from);
            is_on = !is_on;
            left = if is_on { on } else { off };
        }
        if *steps == 0 {
            (is_on, left) = (true, f32::MAX);
        }
        left -= length;
        piece.push(to);
        from = to;
    }
    if is_on && piece.len() > 1 {
        out.add(piece, false);
    }
}
