//! Stencils as outlines: the letters of old documents are small bitmaps, and become shapes again here.

use hayro_interpret::kurbo::{BezPath, Point};

/// Pixels on a side of a bitmap that may be a letter.
const SIDE_MAX: u32 = 512;

/// The outline of the set pixels of a bitmap, in pixels from its top-left corner; nothing for one too large.
pub(crate) fn outline(data: &[u8], width: u32, height: u32) -> Option<BezPath> {
    if width > SIDE_MAX || height > SIDE_MAX || data.len() != (width * height) as usize {
        return None;
    }
    let (columns, rows) = (width as i32, height as i32);
    let is_set = |x: i32, y: i32| {
        (0..columns).contains(&x) && (0..rows).contains(&y) && data[(y * columns + x) as usize] >= 128
    };
    // An edge to walk along begins at the top-left corner of a set pixel with nothing above it.
    let mut is_walked = vec![false; data.len()];
    let mut path = BezPath::new();
    for y in 0..rows {
        for x in 0..columns {
            let is_start = is_set(x, y) && !is_set(x, y - 1) && !is_walked[(y * columns + x) as usize];
            if is_start {
                walk(&is_set, (x, y), columns, &mut is_walked, &mut path);
            }
        }
    }
    Some(path)
}

/// Walks once around, with the set pixels to the right of the way.
fn walk(
    is_set: &impl Fn(i32, i32) -> bool,
    start: (i32, i32),
    columns: i32,
    is_walked: &mut [bool],
    path: &mut BezPath,
) {
    let (mut x, mut y) = start;
    // Eastwards along the top edge of the first pixel.
    let (mut dx, mut dy) = (1, 0);
    path.move_to(Point::new(f64::from(x), f64::from(y)));
    loop {
        if (dx, dy) == (1, 0) {
            is_walked[(y * columns + x) as usize] = true;
        }
        (x, y) = (x + dx, y + dy);
        // The pixels ahead, to the left and to the right of the way.
        let (left, right) = match (dx, dy) {
            (1, 0) => (is_set(x, y - 1), is_set(x, y)),
            (0, 1) => (is_set(x, y), is_set(x - 1, y)),
            (-1, 0) => (is_set(x - 1, y), is_set(x - 1, y - 1)),
            _ => (is_set(x - 1, y - 1), is_set(x, y - 1)),
        };
        let turned = match (left, right) {
            (_, false) => (-dy, dx),
            (true, true) => (dy, -dx),
            (false, true) => (dx, dy),
        };
        if (x, y) == start && turned == (1, 0) {
            path.close_path();
            return;
        }
        if turned != (dx, dy) {
            path.line_to(Point::new(f64::from(x), f64::from(y)));
        }
        (dx, dy) = turned;
    }
}

#[cfg(test)]
mod tests {
    use super::outline;

    fn check(picture: &[&str], expected: &str) {
        let width = picture[0].len() as u32;
        let data: Vec<u8> =
            picture.iter().flat_map(|row| row.bytes()).map(|dot| if dot == b'#' { 255 } else { 0 }).collect();
        assert_eq!(outline(&data, width, picture.len() as u32).unwrap().to_svg(), expected);
    }

    #[test]
    fn bitmap_becomes_its_outline() {
        check(&["##", "##"], "M0,0 L2,0 L2,2 L0,2 Z");
        check(&["#.", ".#"], "M0,0 L1,0 L1,1 L0,1 Z M1,1 L2,1 L2,2 L1,2 Z");
        check(&["###", "#.#", "###"], "M0,0 L3,0 L3,3 L0,3 Z M1,2 L2,2 L2,1 L1,1 Z");
        check(&["..", ".."], "");
    }
}
