//! The line around the map: the world's own rim, or a frame around a part of it.

use super::base_map::paint;
use super::view::View;
use super::{Area, Canvas};
use crate::draw::{Brush, Path};
use std::sync::Arc;

/// How far the outer line of a double frame is from the inner one, in widths of the rim.
const DOUBLE_GAP: f32 = 3.0;

/// How far the outer line of a double frame reaches beyond the map.
pub(super) fn overhang(canvas: &Canvas<'_>) -> f32 {
    let look = canvas.look;
    if look.has_double_frame { (DOUBLE_GAP + 0.5) * look.rim_mm as f32 * canvas.mm } else { 0.0 }
}

/// The line around the world.
pub(super) fn rim(view: &View) -> Path {
    let mut path = Path::default();
    view.chart.add_outline(&mut path);
    path.finish()
}

pub(super) fn draw(canvas: &mut Canvas<'_>, view: &View) {
    let look = canvas.look;
    let width = look.rim_mm as f32 * canvas.mm;
    let (page, rim) = (canvas.page(), paint(look.rim));
    if view.is_world {
        let path = Arc::new(self::rim(view));
        if look.has_double_frame {
            canvas.add(&path, Brush::Stroke(width * (2.0 * DOUBLE_GAP + 1.0)), rim, page);
            canvas.add(&path, Brush::Stroke(width * (2.0 * DOUBLE_GAP - 0.2)), paint(look.paper), page);
        }
        return canvas.add(&path, Brush::Stroke(width), rim, page);
    }
    // A frame may be larger than the world, which then ends within it.
    canvas.add(&Arc::new(self::rim(view)), Brush::Stroke(width), rim, view.window);
    let mut path = Path::default();
    path.add(inner(view.area).corners(), true);
    canvas.add(&Arc::new(path.finish()), Brush::Stroke(width), rim, page);
    if look.has_double_frame {
        let mut outer = Path::default();
        outer.add(inner(view.area).grown(width * DOUBLE_GAP).corners(), true);
        canvas.add(&Arc::new(outer.finish()), Brush::Stroke(width / 2.0), rim, page);
    }
}

/// On whole pixels, as the map itself ends.
fn inner(area: Area) -> Area {
    Area {
        left: area.left.round(),
        top: area.top.round(),
        right: area.right.round(),
        bottom: area.bottom.round(),
    }
}
