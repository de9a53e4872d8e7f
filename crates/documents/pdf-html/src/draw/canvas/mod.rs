//! The device that is told what a page draws: items in order, the clips around them, and what they refer to.

mod glyphs;
mod groups;
mod shapes;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use hayro_interpret::font::GlyphRun;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Shape as _};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, FillRule, Image, ImageDrawProps, SoftMask,
};
use ode_pdf::trace::TracedGlyph;

use super::cover::{Covered, Letters};
use super::looks::{class, fill};
use super::path::Pen;
use super::store::Store;

/// Masks, patterns and glyphs within each other.
const DEPTH_MAX: u32 = 12;
/// Searches of a whole page for a glyph that was not where it was expected.
const SEARCHES_MAX: u32 = 2_000;

/// Thrown through the interpreter to end a page that has used up what it may.
pub(crate) struct Stop;

/// A glyph that can be set as text.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    /// Which of the page's traced glyphs it is.
    pub(crate) traced: u32,
    /// Its outline.
    pub(crate) key: u128,
    /// From outline to page.
    pub(crate) place: Affine,
    /// Red, green, blue, alpha.
    pub(crate) colour: [u8; 4],
}

/// A page as it was drawn.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// What SVG holds besides definitions.
    pub(crate) body: String,
    /// What it refers to.
    pub(crate) defs: String,
}

enum Item {
    /// Begins or ends a group.
    Group(String),
    Shape {
        markup: String,
        clip: Option<u32>,
        covers: Vec<Rect>,
    },
    /// Plain text so far, as indexes into the glyphs.
    Text(std::ops::Range<usize>),
}

struct Clip {
    bounds: Rect,
    /// The path, unless the bounds say it all.
    path: Option<(Rc<str>, FillRule)>,
}

/// Consecutive shapes of one look.
struct Pending {
    look: String,
    /// Whether another shape of this look may join.
    can_grow: bool,
    pen: Pen,
    clip: Option<u32>,
    covers: Vec<Rect>,
}

pub(crate) struct Canvas<'c> {
    pub(super) store: &'c mut Store,
    glyphs: &'c [TracedGlyph],
    next_glyph: usize,
    searches_left: u32,
    is_matched: Vec<bool>,
    page: Rect,
    prefix: String,
    items: Vec<Item>,
    pub(super) defs: String,
    known: HashMap<u128, u32>,
    next_id: u32,
    clips: Vec<Clip>,
    /// Clips below this one are already applied by the group that is open.
    clips_base: usize,
    /// For each open group whether it is one in SVG, and the base of clips around it.
    groups: Vec<(bool, usize)>,
    pending: Option<Pending>,
    text: Vec<Drawn>,
    /// Glyphs that have letters but no shape, and their colours.
    missing: Vec<(u32, [u8; 4])>,
    /// Glyphs that have neither letters nor a shape.
    blanks: Vec<u32>,
    depth: u32,
}

impl<'c> Canvas<'c> {
    /// A canvas for a page of this size. `prefix` sets its names apart from those of other pages.
    pub(crate) fn new(
        store: &'c mut Store,
        glyphs: &'c [TracedGlyph],
        size: (f64, f64),
        prefix: String,
    ) -> Self {
        Self {
            store,
            is_matched: vec![false; glyphs.len()],
            glyphs,
            next_glyph: 0,
            searches_left: SEARCHES_MAX,
            page: Rect::new(0.0, 0.0, size.0, size.1),
            prefix,
            items: Vec::new(),
            defs: String::new(),
            known: HashMap::new(),
            next_id: 0,
            clips: Vec::new(),
            clips_base: 0,
            groups: Vec::new(),
            pending: None,
            text: Vec::new(),
            missing: Vec::new(),
            blanks: Vec::new(),
            depth: 0,
        }
    }

    /// Ends the page. Text stays text where `is_wanted`, asked with its glyph, agrees.
    pub(crate) fn finish(mut self, mut is_wanted: impl FnMut(&Store, &Drawn) -> bool) -> Drawing {
        self.flush();
        while !self.groups.is_empty() {
            self.pop_transparency_group();
        }
        let mut covered = Covered::default();
        let mut letters = Letters::default();
        let is_coloured = self.text.windows(2).any(|pair| pair[0].colour != pair[1].colour);
        let mut stays: Vec<bool> = vec![false; self.text.len()];
        for item in self.items.iter().rev() {
            match item {
                Item::Shape { covers, .. } => covered.add(covers),
                Item::Text(range) => {
                    for index in range.clone() {
                        let glyph = &self.text[index];
                        let bounds = self.bounds_of(glyph);
                        // What stays text lies over all that is drawn, in the order of reading.
                        let is_hidden =
                            covered.touches(bounds) || is_coloured && letters.hide(bounds, glyph.colour);
                        stays[index] = !is_hidden && is_wanted(self.store, glyph);
                        if is_coloured {
                            letters.add(bounds, glyph.colour);
                        }
                    }
                }
                Item::Group(_) => {}
            }
        }
        let items = std::mem::take(&mut self.items);
        let body = self.join(items, &stays);
        Drawing { body, defs: self.defs }
    }

    fn join(&mut self, items: Vec<Item>, stays: &[bool]) -> String {
        let prefix = self.prefix.clone();
        let mut body = String::new();
        let mut open: Option<u32> = None;
        let mut set_clip = |body: &mut String, clip: Option<u32>| {
            if open == clip {
                return;
            }
            if open.is_some() {
                body.push_str("</g>");
            }
            if let Some(clip) = clip {
                let _ = write!(body, "<g clip-path=\"url(#{prefix}{clip})\">");
            }
            open = clip;
        };
        for item in items {
            match item {
                Item::Group(markup) => {
                    set_clip(&mut body, None);
                    body.push_str(&markup);
                }
                Item::Shape { markup, clip, .. } => {
                    set_clip(&mut body, clip);
                    body.push_str(&markup);
                }
                Item::Text(range) => {
                    set_clip(&mut body, None);
                    self.shapes(range.filter(|index| !stays[*index]), &mut body);
                }
            }
        }
        set_clip(&mut body, None);
        body
    }

    /// Glyphs as shapes, those of one colour together.
    fn shapes(&mut self, glyphs: impl Iterator<Item = usize>, body: &mut String) {
        let mut pen = Pen::default();
        let mut last: Option<[u8; 4]> = None;
        let write = |store: &mut Store, pen: Pen, colour: Option<[u8; 4]>, body: &mut String| {
            if let Some(colour) = colour.filter(|_| !pen.data.is_empty()) {
                let _ = write!(body, "<path{} d=\"{}\"/>", class(store, &fill(colour)), pen.data);
            }
        };
        for glyph in glyphs.map(|index| self.text[index].clone()) {
            if last != Some(glyph.colour) {
                write(self.store, std::mem::take(&mut pen), last, body);
                last = Some(glyph.colour);
            }
            if let Some(Some(outline)) = self.store.outlines.get(&glyph.key) {
                pen.path(&outline.path, glyph.place);
            }
        }
        write(self.store, pen, last, body);
    }

    fn bounds_of(&self, glyph: &Drawn) -> Rect {
        match self.store.outlines.get(&glyph.key) {
            Some(Some(outline)) => glyph.place.transform_rect_bbox(outline.bounds),
            _ => Rect::ZERO,
        }
    }

    /// Counts a step, and ends the page when there were too many.
    fn charge(&mut self, steps: usize, bytes: usize) {
        if !self.store.charge(steps as u64 + 1, bytes) {
            std::panic::resume_unwind(Box::new(Stop));
        }
    }

    /// A new name for a definition, or the one that an equal definition has.
    pub(super) fn name(&mut self, key: u128) -> (u32, bool) {
        if let Some(id) = self.known.get(&key) {
            return (*id, false);
        }
        self.next_id += 1;
        self.known.insert(key, self.next_id);
        (self.next_id, true)
    }

    /// A reference to a definition.
    pub(super) fn url(&self, id: u32) -> String {
        format!("url(#{}{id})", self.prefix)
    }

    /// A definition's name in full.
    pub(super) fn id(&self, id: u32) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Draws into a string of its own.
    pub(super) fn apart(&mut self, draw: impl FnOnce(&mut Self)) -> String {
        if self.depth >= DEPTH_MAX {
            return String::new();
        }
        self.flush();
        let items = std::mem::take(&mut self.items);
        let clips = std::mem::take(&mut self.clips);
        let groups = std::mem::take(&mut self.groups);
        let base = std::mem::take(&mut self.clips_base);
        let page = std::mem::replace(&mut self.page, Rect::new(-1e6, -1e6, 1e6, 1e6));
        self.depth += 1;
        draw(self);
        self.flush();
        while !self.groups.is_empty() {
            self.pop_transparency_group();
        }
        self.depth -= 1;
        let inner = std::mem::replace(&mut self.items, items);
        (self.clips, self.groups, self.clips_base, self.page) = (clips, groups, base, page);
        self.join(inner, &[])
    }

    fn flush(&mut self) {
        if let Some(pending) = self.pending.take() {
            let markup = format!("<path{} d=\"{}\"/>", class(self.store, &pending.look), pending.pen.data);
            self.items.push(Item::Shape { markup, clip: pending.clip, covers: pending.covers });
        }
    }

    /// Adds markup that is drawn within `bounds`.
    pub(super) fn add(&mut self, markup: String, bounds: Rect) {
        self.charge(0, markup.len());
        self.flush();
        let clip = self.clip_for(bounds);
        self.items.push(Item::Shape { markup, clip, covers: vec![bounds] });
    }

    /// Draws shapes that are markup already; text below them stays text.
    pub(crate) fn markup(&mut self, markup: String) {
        if !markup.is_empty() {
            self.charge(0, markup.len());
            self.flush();
            self.items.push(Item::Shape { markup, clip: None, covers: Vec::new() });
        }
    }

    /// The part of the page that can be seen here.
    pub(super) fn seen(&self) -> Rect {
        self.clips.iter().fold(self.page, |seen, clip| seen.intersect(clip.bounds))
    }

    /// Whether any of it can be seen.
    pub(super) fn is_seen(&self, bounds: Rect) -> bool {
        let seen = self.seen();
        seen.width() > 0.0
            && seen.height() > 0.0
            && bounds.x1 >= seen.x0
            && bounds.x0 <= seen.x1
            && bounds.y1 >= seen.y0
            && bounds.y0 <= seen.y1
    }

    /// Whether no clip cuts into it.
    fn is_whole(&self, bounds: Rect) -> bool {
        self.clips.iter().all(|clip| clip.path.is_none() && contains(clip.bounds, bounds))
    }

    /// The clip that something within `bounds` needs.
    fn clip_for(&mut self, bounds: Rect) -> Option<u32> {
        let mut area: Option<Rect> = None;
        let mut paths: Vec<(Rc<str>, FillRule)> = Vec::new();
        for clip in &self.clips[self.clips_base..] {
            match &clip.path {
                Some(path) => paths.push(path.clone()),
                None if contains(clip.bounds, bounds) => {}
                None => area = Some(area.map_or(clip.bounds, |area| area.intersect(clip.bounds))),
            }
        }
        let mut id = None;
        if let Some(area) = area {
            let mut pen = Pen::default();
            pen.rect(Rect::new(area.x0, area.y0, area.x1.max(area.x0), area.y1.max(area.y0)));
            id = Some(self.clip_path(&pen.data, FillRule::NonZero, None));
        }
        for (data, rule) in paths {
            id = Some(self.clip_path(&data, rule, id));
        }
        id
    }

    fn clip_path(&mut self, data: &str, rule: FillRule, parent: Option<u32>) -> u32 {
        let (id, is_new) = self.name(hash(&("clip", data, rule, parent)));
        if is_new {
            let parent =
                parent.map(|parent| format!(" clip-path=\"{}\"", self.url(parent))).unwrap_or_default();
            let rule = if rule == FillRule::EvenOdd { " clip-rule=\"evenodd\"" } else { "" };
            let name = self.id(id);
            let _ =
                write!(self.defs, "<clipPath id=\"{name}\"{parent}><path{rule} d=\"{data}\"/></clipPath>");
            self.charge(0, data.len());
        }
        id
    }

    /// A clip for a path that is not on the stack.
    pub(super) fn clip_of(&mut self, path: &BezPath, rule: FillRule) -> u32 {
        let mut pen = Pen::default();
        pen.path(path, Affine::IDENTITY);
        self.clip_path(&pen.data, rule, None)
    }
}

impl<'a> Device<'a> for Canvas<'_> {
    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.charge(path.elements().len(), 0);
        if path.elements().is_empty() || !path.is_finite() || !props.transform.is_finite() {
            return;
        }
        self.paint_path(path, &props, mode);
    }

    fn push_clip_path(&mut self, clip: &ClipPath) {
        self.charge(clip.path.elements().len(), 0);
        let bounds = if clip.path.elements().is_empty() { Rect::ZERO } else { clip.path.bounding_box() };
        if is_rect(&clip.path) {
            self.clips.push(Clip { bounds, path: None });
            return;
        }
        let mut pen = Pen::default();
        pen.path(&clip.path, Affine::IDENTITY);
        self.clips.push(Clip { bounds, path: Some((pen.data.into(), clip.fill)) });
    }

    fn push_clip_rect(&mut self, rect: &Rect) {
        self.charge(1, 0);
        self.clips.push(Clip { bounds: *rect, path: None });
    }

    fn push_transparency_group(&mut self, opacity: f32, mask: Option<SoftMask<'a>>, blend: BlendMode) {
        self.charge(1, 32);
        self.push_group(opacity, mask, blend);
    }

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        self.charge(1, 0);
        self.glyph_run(run, &props, mode);
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.charge(16, 0);
        self.with_effects(props.soft_mask.clone(), props.blend_mode, |canvas| {
            canvas.image(&image, props.transform);
        });
    }

    fn pop_clip(&mut self) {
        self.clips.pop();
        self.clips_base = self.clips_base.min(self.clips.len());
    }

    fn pop_transparency_group(&mut self) {
        self.pop_group();
    }
}

fn contains(outer: Rect, inner: Rect) -> bool {
    const SLACK: f64 = 0.02;
    outer.x0 - SLACK <= inner.x0
        && outer.y0 - SLACK <= inner.y0
        && outer.x1 + SLACK >= inner.x1
        && outer.y1 + SLACK >= inner.y1
}

/// Whether a path is one upright rectangle.
fn is_rect(path: &BezPath) -> bool {
    let points: Vec<Point> = path.elements().iter().filter_map(|element| element.end_point()).collect();
    let is_straight = path.elements().iter().all(|element| {
        !matches!(
            element,
            hayro_interpret::kurbo::PathEl::CurveTo(..) | hayro_interpret::kurbo::PathEl::QuadTo(..)
        )
    });
    let is_upright = points.windows(2).all(|pair| pair[0].x == pair[1].x || pair[0].y == pair[1].y);
    // What is upright and as large as its box fills it.
    let area = path.control_box().area();
    is_straight
        && (4..=5).contains(&points.len())
        && is_upright
        && area > 0.0
        && (path.area().abs() - area).abs() <= area * 1e-9
}

/// A key for what is equal by value.
pub(super) fn hash(value: &impl std::hash::Hash) -> u128 {
    use std::hash::Hasher as _;
    // Two runs of one hasher with different starts: no fast hash of this width is at hand, and keys are few.
    let mut one = std::collections::hash_map::DefaultHasher::new();
    let mut two = std::collections::hash_map::DefaultHasher::new();
    two.write_u8(1);
    value.hash(&mut one);
    value.hash(&mut two);
    u128::from(one.finish()) << 64 | u128::from(two.finish())
}
