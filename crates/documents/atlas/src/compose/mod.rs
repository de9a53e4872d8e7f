//! From a specification to a picture: what is drawn, where, and in which order.

mod base_map;
mod frame;
mod furniture;
mod labels;
mod layers;
mod markers;
mod oceans;
mod sheet;
mod sight;
mod view;

use crate::base::BaseMap;
use crate::draw::{Brush, Color, Path, Picture, Pixel, Shape, Window};
use crate::lettering::Lettering;
use crate::spec::{Page, Spec};
use crate::theme::Look;
use std::sync::Arc;

/// A picture, and what the maker of the map should know about it.
pub(crate) struct Composed {
    pub(crate) picture: Picture,
    pub(crate) warnings: Vec<String>,
}

/// How far labels are from the line around the world.
const RIM_ROOM_MM: f32 = 0.8;

/// Composes a map on a page, which may be the specification's own or a smaller one to look at.
pub(crate) fn compose(spec: &Spec, page: &Page) -> Composed {
    let look = Look::new(&spec.style);
    let mut canvas = Canvas::new(page, &look);
    let sheet = sheet::Sheet::new(spec, page, &mut canvas);
    let view = view::View::new(spec, &sheet, &mut canvas);
    let base = BaseMap::load(view.detail);
    base_map::draw(&mut canvas, spec, &view, &base);
    let mut labels = labels::Labels::new(view.window_area());
    labels.bar(&frame::rim(&view), frame::overhang(&canvas) + RIM_ROOM_MM * canvas.mm);
    layers::draw(&mut canvas, spec, &view, &mut labels);
    sight::tell(&mut canvas, spec, &view);
    labels::name_places(&mut canvas, spec, &view, &base, labels);
    drop(base);
    frame::draw(&mut canvas, &view);
    furniture::draw(&mut canvas, spec, &sheet, &view);
    canvas.finish()
}

/// A picture under way, with what everything that draws needs.
pub(crate) struct Canvas<'a> {
    look: &'a Look,
    /// Pixels in a millimetre.
    mm: f32,
    lettering: Lettering,
    picture: Picture,
    warnings: Vec<String>,
}

impl<'a> Canvas<'a> {
    fn new(page: &Page, look: &'a Look) -> Self {
        let [width, height] = page.pixels();
        Self {
            look,
            mm: page.pixels_per_mm() as f32,
            lettering: Lettering::new(),
            picture: Picture { width, height, paper: look.paper.rgb, shapes: Vec::new() },
            warnings: Vec::new(),
        }
    }

    fn page(&self) -> Window {
        Window { left: 0, top: 0, right: self.picture.width, bottom: self.picture.height }
    }

    /// Adds a shape on top of what is there, if there is anything to see of it.
    fn add(&mut self, path: &Arc<Path>, brush: Brush, color: Color, window: Window) {
        let is_seen = !path.is_empty() && color.alpha > 0 && brush != Brush::Stroke(0.0);
        if is_seen {
            self.picture.shapes.push(Shape { path: Arc::clone(path), brush, color, window });
        }
    }

    fn finish(mut self) -> Composed {
        if !self.lettering.missing.is_empty() {
            let letters: String = self.lettering.missing.iter().take(20).collect();
            self.warnings.push(format!(
                "The bundled fonts have no letters for {letters:?}, and they were left out. Write these names in Latin, Greek \
                 or Cyrillic letters."
            ));
        }
        Composed { picture: self.picture, warnings: self.warnings }
    }
}

/// A part of the page in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
}

impl Area {
    /// One spot.
    fn at([x, y]: Pixel) -> Self {
        Self { left: x, top: y, right: x, bottom: y }
    }

    /// What two spots span.
    fn between(a: Pixel, b: Pixel) -> Self {
        Self { left: a[0].min(b[0]), top: a[1].min(b[1]), right: a[0].max(b[0]), bottom: a[1].max(b[1]) }
    }

    fn width(&self) -> f32 {
        self.right - self.left
    }

    fn height(&self) -> f32 {
        self.bottom - self.top
    }

    fn middle(&self) -> [f32; 2] {
        [(self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0]
    }

    /// Larger by `by` pixels on every side.
    fn grown(&self, by: f32) -> Self {
        Self { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Its four sides as a closed line.
    fn corners(&self) -> [[f32; 2]; 4] {
        [[self.left, self.top], [self.right, self.top], [self.right, self.bottom], [self.left, self.bottom]]
    }
}
