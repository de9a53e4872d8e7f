//! The device that is told what a page draws.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Shape as _};
use hayro_interpret::{
    BlendMode, CacheKey, ClipPath, Device, DrawMode, DrawProps, FillRule, Image, ImageDrawProps, MaskType,
    Paint, SoftMask, StrokeProps,
};
use ode_pdf::trace::TracedGlyph;

use super::cover::{self, Covered};
use super::path::{Pen, UNIT, short, units};
use super::record;
use super::store::{Outline, Store};

/// Masks, patterns and glyphs within each other.
const DEPTH_MAX: u32 = 12;
/// Glyphs ahead of the expected one that are searched for the one that is drawn.
const LOOK_AHEAD: usize = 64;
/// Searches of a whole page for a glyph that was not where it was expected.
const SEARCHES_MAX: u32 = 2_000;
/// A line without a width, or a thinner one than this, is drawn this wide, in points.
const STROKE_MIN: f64 = 0.3;
/// How the look of a stroke begins.
const STROKED: &str = "fill:none;";
/// A stroke is drawn as such where it is stretched by less than this in one direction.
const STRETCH_MAX: f64 = 1.02;

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
        let mut stays: Vec<bool> = vec![false; self.text.len()];
        for item in self.items.iter().rev() {
            match item {
                Item::Shape { covers, .. } => covered.add(covers),
                Item::Text(range) => {
                    for index in range.clone() {
                        let bounds = self.bounds_of(&self.text[index]);
                        stays[index] = !covered.touches(bounds) && is_wanted(self.store, &self.text[index]);
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
        let steps = steps as u64 + 1;
        if self.store.steps_left < steps || self.store.bytes_left < bytes {
            std::panic::resume_unwind(Box::new(Stop));
        }
        self.store.steps_left -= steps;
        self.store.bytes_left -= bytes;
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

    fn with_effects(&mut self, mask: Option<SoftMask<'_>>, blend: BlendMode, draw: impl FnOnce(&mut Self)) {
        let is_group = mask.is_some() || blend != BlendMode::Normal;
        if is_group {
            self.push_group(1.0, mask, blend);
        }
        draw(self);
        if is_group {
            self.pop_group();
        }
    }

    fn push_group(&mut self, opacity: f32, mask: Option<SoftMask<'_>>, blend: BlendMode) {
        self.flush();
        let is_plain = mask.is_none() && blend == BlendMode::Normal && opacity >= 0.999;
        if is_plain {
            self.groups.push((false, self.clips_base));
            return;
        }
        let mut markup = String::from("<g");
        if let Some(clip) = self.clip_for(Rect::new(-1e9, -1e9, 1e9, 1e9)) {
            let _ = write!(markup, " clip-path=\"{}\"", self.url(clip));
        }
        if let Some(mask) = mask {
            let id = self.mask(&mask);
            let _ = write!(markup, " mask=\"{}\"", self.url(id));
        }
        if blend != BlendMode::Normal {
            let _ = write!(markup, " class=\"{}\"", blend_class(blend));
        }
        if opacity < 0.999 {
            let _ = write!(markup, " opacity=\"{}\"", short(opacity.into(), 3));
        }
        markup.push('>');
        self.items.push(Item::Group(markup));
        self.groups.push((true, self.clips_base));
        self.clips_base = self.clips.len();
    }

    fn pop_group(&mut self) {
        self.flush();
        if let Some((is_real, base)) = self.groups.pop() {
            if is_real {
                self.items.push(Item::Group("</g>".into()));
            }
            self.clips_base = base.min(self.clips.len());
        }
    }

    fn is_in_group(&self) -> bool {
        self.groups.iter().any(|(is_real, _)| *is_real)
    }

    fn mask(&mut self, mask: &SoftMask<'_>) -> u32 {
        let (id, is_new) = self.name(hash(&("mask", mask.cache_key())));
        if !is_new {
            return id;
        }
        let page = self.page;
        let inner = self.apart(|canvas| mask.interpret(canvas));
        let area = if self.depth == 0 { page } else { Rect::new(-1e4, -1e4, 1e4, 1e4) };
        let place = format!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            units(area.x0),
            units(area.y0),
            units(area.width()),
            units(area.height())
        );
        let back = mask.background_color().to_rgba().to_rgba8();
        let is_alpha = mask.mask_type() == MaskType::Alpha;
        let kind = if is_alpha { " mask-type=\"alpha\"" } else { "" };
        let back = if is_alpha || back[..3] == [0, 0, 0] {
            String::new()
        } else {
            format!("<rect {place}{}/>", class(self.store, &fill(back)))
        };
        let name = self.id(id);
        let filter = mask.transfer_function().map(|function| {
            let mut values: [u8; 17] = std::array::from_fn(|step| (step * 255 / 16) as u8);
            function.apply_to(&mut values);
            let table: Vec<String> = values.iter().map(|value| short(f64::from(*value) / 255.0, 3)).collect();
            let table = table.join(" ");
            let channels = if is_alpha { &["A"][..] } else { &["R", "G", "B"] };
            let functions: String = channels
                .iter()
                .map(|channel| format!("<feFunc{channel} type=\"table\" tableValues=\"{table}\"/>"))
                .collect();
            let _ = write!(
                self.defs,
                "<filter id=\"{name}f\" filterUnits=\"userSpaceOnUse\" {place} \
                 color-interpolation-filters=\"sRGB\"><feComponentTransfer>{functions}</feComponentTransfer></filter>"
            );
            format!(" filter=\"url(#{name}f)\"")
        });
        // A filter changes the black around what is drawn as well, so there must be something to change.
        let (open, close) = match filter {
            Some(filter) => (
                format!("<g{filter}><rect {place} fill=\"{}\"/>", if is_alpha { "none" } else { "#000" }),
                "</g>",
            ),
            None => (String::new(), ""),
        };
        let _ = write!(
            self.defs,
            "<mask id=\"{name}\" maskUnits=\"userSpaceOnUse\" {place}{kind}>{open}{back}{inner}{close}</mask>"
        );
        self.charge(0, inner.len());
        id
    }

    fn fill_path<'a>(&mut self, path: &BezPath, transform: Affine, rule: FillRule, paint: &Paint<'a>) {
        let bounds = transform.transform_rect_bbox(path.control_box());
        if !self.is_seen(bounds) {
            return;
        }
        match paint {
            Paint::Color(colour) => {
                let colour = colour.to_rgba().to_rgba8();
                if colour[3] == 0 {
                    return;
                }
                let is_even_odd = rule == FillRule::EvenOdd;
                let rule = if is_even_odd { ";fill-rule:evenodd" } else { "" };
                let mut shown = transform * path.clone();
                let is_rect = is_rect(&shown);
                if is_rect {
                    // Rectangles that all run the same way around may be one path without cutting holes.
                    shown = bounds.to_path(0.1);
                }
                let covers = cover::filled(&shown);
                self.shape(format!("{}{rule}", fill(colour)), colour[3] == 255 && is_rect, &shown, covers);
            }
            Paint::Pattern(pattern) => {
                let shown = transform * path.clone();
                self.fill_with_pattern(&shown, rule, pattern, false);
            }
        }
    }

    fn stroke_path<'a>(&mut self, path: &BezPath, transform: Affine, props: &StrokeProps, paint: &Paint<'a>) {
        let scale = transform.determinant().abs().sqrt();
        let width = (f64::from(props.line_width) * scale).abs();
        let reach = width.max(STROKE_MIN) * 2.0;
        if !self.is_seen(transform.transform_rect_bbox(path.control_box()).inflate(reach, reach)) {
            return;
        }
        let Paint::Color(colour) = paint else {
            let Paint::Pattern(pattern) = paint else { return };
            let outline = transform * record::outline_of_stroke(path, props, 0.05 / scale.max(1e-6));
            self.fill_with_pattern(&outline, FillRule::NonZero, pattern, true);
            return;
        };
        let [a, b, c, d, ..] = transform.as_coeffs();
        let (across, down) = (a.hypot(b), c.hypot(d));
        let is_even = (a * c + b * d).abs() <= 0.02 * across * down
            && across <= down * STRETCH_MAX
            && down <= across * STRETCH_MAX;
        let colour = colour.to_rgba().to_rgba8();
        if colour[3] == 0 {
            return;
        }
        if !is_even && width > STROKE_MIN {
            let outline = record::outline_of_stroke(path, props, 0.05 / scale.max(1e-6));
            let outline = transform * outline;
            let covers = cover::filled(&outline);
            self.shape(fill(colour), false, &outline, covers);
            return;
        }
        let look = stroke_look(props, width.max(STROKE_MIN), scale, colour);
        let shown = transform * path.clone();
        let covers = cover::stroked(&shown, width);
        self.shape(look, colour[3] == 255, &shown, covers);
    }

    fn shape(&mut self, look: String, can_join: bool, path: &BezPath, covers: Vec<Rect>) {
        let bounds = covers.iter().copied().reduce(|all, one| all.union(one)).unwrap_or(Rect::ZERO);
        let clip = self.clip_for(bounds);
        if let Some(pending) = &mut self.pending
            && can_join
            && pending.can_grow
            && pending.look == look
            && pending.clip == clip
            && pending.pen.data.len() < 50_000
        {
            let before = pending.pen.data.len();
            pending.pen.path(path, Affine::IDENTITY);
            pending.covers.extend(covers);
            let written = pending.pen.data.len() - before;
            self.charge(path.elements().len(), written);
            return;
        }
        let mut pen = Pen::default();
        pen.path(path, Affine::IDENTITY);
        // A path that is filled and then stroked is one element.
        if let Some(pending) = &mut self.pending
            && let Some(stroke) = look.strip_prefix(STROKED)
            && !pending.look.starts_with(STROKED)
            && pending.clip == clip
            && pending.pen.data == pen.data
        {
            pending.look = if pending.look.is_empty() { "fill:#000;" } else { &pending.look }
                .trim_end_matches(';')
                .to_owned()
                + ";"
                + stroke;
            pending.can_grow = false;
            pending.covers.extend(covers);
            return;
        }
        self.flush();
        self.charge(path.elements().len(), pen.data.len() + 20);
        self.pending = Some(Pending { look, can_grow: can_join, pen, clip, covers });
    }

    fn glyph_run<'a>(&mut self, run: &GlyphRun<'_, 'a>, props: &DrawProps<'a>, mode: &DrawMode) {
        let is_vertical = run.writing_mode() == hayro_interpret::hayro_cmap::WritingMode::Vertical;
        let first = self.text.len();
        for glyph in run.glyphs() {
            self.charge(4, 0);
            let place = props.transform * glyph.transform();
            let is_plain = matches!(mode, DrawMode::Fill(_)) && self.depth == 0;
            let traced = if is_plain || (matches!(mode, DrawMode::Invisible) && self.depth == 0) {
                self.traced(glyph, place, is_vertical)
            } else {
                None
            };
            if matches!(mode, DrawMode::Invisible) {
                continue;
            }
            let Some((key, outline)) = self.outline(glyph) else {
                if let Glyph::Type3(drawn) = &**glyph {
                    self.end_run(first);
                    self.replay(drawn, glyph.transform(), props);
                }
                return self.glyph_rest(run, props, mode, glyph);
            };
            if outline.path.elements().is_empty() || self.is_misdrawn(traced, glyph) {
                self.note_missing(traced, props);
                continue;
            }
            let bounds = place.transform_rect_bbox(outline.bounds);
            let colour = match &props.paint {
                Paint::Color(colour) => Some(colour.to_rgba().to_rgba8()),
                Paint::Pattern(_) => None,
            };
            match (traced, colour) {
                (Some(traced), Some(colour))
                    if !self.is_in_group()
                        && props.soft_mask.is_none()
                        && props.blend_mode == BlendMode::Normal
                        && self.is_whole(bounds)
                        && colour[3] > 0 =>
                {
                    if self.text.len() == first {
                        self.flush();
                    }
                    self.text.push(Drawn { traced, key, place, colour });
                }
                _ => self.glyph_shape(&outline, glyph.transform(), props, mode),
            }
        }
        self.end_run(first);
    }

    /// Whether a shape was taken from a font that stands in for the right one, by a number that means something else there.
    fn is_misdrawn(&self, traced: Option<u32>, glyph: &Glyph<'_>) -> bool {
        let Some(traced) = traced.map(|traced| &self.glyphs[traced as usize]) else {
            return false;
        };
        if !traced.is_substitute || traced.text.is_empty() || self.is_in_group() {
            return false;
        }
        let told = match glyph {
            Glyph::Outline(glyph) => glyph.as_unicode(),
            Glyph::Type3(_) => return false,
        };
        let is_told = match told {
            Some(BfString::Char(letter)) => traced.text.chars().eq([letter]),
            Some(BfString::String(letters)) => traced.text == letters,
            None => false,
        };
        !is_told || is_foreign(&traced.text)
    }

    /// Remembers a glyph that should be seen and has no shape: its font is not in the document.
    fn note_missing(&mut self, traced: Option<u32>, props: &DrawProps<'_>) {
        if let (Some(index), Paint::Color(colour)) = (traced, &props.paint) {
            let traced = &self.glyphs[index as usize];
            if traced.text.is_empty() {
                self.blanks.push(index);
            }
            let is_seen = traced.is_substitute && !traced.text.trim().is_empty();
            if (is_seen || is_foreign(&traced.text)) && !self.is_in_group() {
                self.missing.push((index, colour.to_rgba().to_rgba8()));
            }
        }
    }

    /// The glyphs that have letters but no shape, and their colours.
    pub(crate) fn missing(&mut self) -> Vec<(u32, [u8; 4])> {
        std::mem::take(&mut self.missing)
    }

    /// The glyphs that have neither letters nor a shape.
    pub(crate) fn blanks(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.blanks)
    }

    /// The glyphs after one that was drawn by instructions, each as a run of its own.
    fn glyph_rest<'a>(
        &mut self,
        run: &GlyphRun<'_, 'a>,
        props: &DrawProps<'a>,
        mode: &DrawMode,
        last: &PositionedGlyph<'a>,
    ) {
        let is_vertical = run.writing_mode() == hayro_interpret::hayro_cmap::WritingMode::Vertical;
        let after = run.glyphs().iter().position(|glyph| std::ptr::eq(glyph, last)).map_or(0, |at| at + 1);
        for glyph in &run.glyphs()[after..] {
            self.charge(4, 0);
            if self.depth == 0 && matches!(mode, DrawMode::Fill(_)) {
                self.traced(glyph, props.transform * glyph.transform(), is_vertical);
            }
            match (self.outline(glyph), &**glyph) {
                (Some((_, outline)), _) => self.glyph_shape(&outline, glyph.transform(), props, mode),
                (None, Glyph::Type3(drawn)) => self.replay(drawn, glyph.transform(), props),
                (None, Glyph::Outline(_)) => {}
            }
        }
    }

    fn replay<'a>(
        &mut self,
        glyph: &hayro_interpret::font::Type3Glyph<'a>,
        transform: Affine,
        props: &DrawProps<'a>,
    ) {
        if self.depth >= DEPTH_MAX {
            return;
        }
        self.depth += 1;
        self.with_effects(props.soft_mask.clone(), props.blend_mode, |canvas| {
            glyph.interpret(canvas, props.transform, transform, &props.paint);
        });
        self.depth -= 1;
    }

    fn end_run(&mut self, first: usize) {
        // A run may be split by shapes; each piece is an item of its own.
        let from = match self.items.iter().rev().find_map(|item| match item {
            Item::Text(range) => Some(range.end),
            _ => None,
        }) {
            Some(end) => end.max(first),
            None => first,
        };
        if self.text.len() > from {
            self.items.push(Item::Text(from..self.text.len()));
        }
    }

    fn glyph_shape<'a>(
        &mut self,
        outline: &Outline,
        transform: Affine,
        props: &DrawProps<'a>,
        mode: &DrawMode,
    ) {
        self.end_run(0);
        let path = transform * outline.path.clone();
        self.with_effects(props.soft_mask.clone(), props.blend_mode, |canvas| match mode {
            DrawMode::Fill(rule) => canvas.fill_path(&path, props.transform, *rule, &props.paint),
            DrawMode::Stroke(stroke) => canvas.stroke_path(&path, props.transform, stroke, &props.paint),
            DrawMode::FillAndStroke(rule, stroke) => {
                canvas.fill_path(&path, props.transform, *rule, &props.paint);
                canvas.stroke_path(&path, props.transform, stroke, &props.paint);
            }
            DrawMode::Invisible => {}
        });
    }

    /// The glyph's shape, made once for the whole document.
    fn outline(&mut self, glyph: &Glyph<'_>) -> Option<(u128, Rc<Outline>)> {
        let key = match glyph {
            Glyph::Outline(glyph) => glyph.identifier().cache_key(),
            Glyph::Type3(glyph) => glyph.cache_key(),
        };
        let outline = self.store.outlines.entry(key).or_insert_with(|| {
            let path = match glyph {
                Glyph::Outline(glyph) => Some(glyph.outline()),
                Glyph::Type3(glyph) => record::shape(glyph),
            };
            path.filter(|path| path.is_finite()).map(|path| Rc::new(Outline::new(path)))
        });
        outline.clone().map(|outline| (key, outline))
    }

    /// Which of the page's traced glyphs this is: the next one with its code at its place.
    fn traced(&mut self, glyph: &Glyph<'_>, place: Affine, is_vertical: bool) -> Option<u32> {
        let code = Some(glyph.char_code());
        let origin = place * Point::ORIGIN;
        let is_it = |index: &usize| {
            let traced = &self.glyphs[*index];
            let reach = f64::from(traced.size) * if is_vertical { 1.6 } else { 0.06 } + 0.2;
            !self.is_matched[*index]
                && traced.code == code
                && (f64::from(traced.start.0) - origin.x).abs() <= reach
                && (f64::from(traced.start.1) - origin.y).abs() <= reach
        };
        let ahead = self.next_glyph..(self.next_glyph + LOOK_AHEAD).min(self.glyphs.len());
        let mut found = ahead.into_iter().find(is_it);
        if found.is_none() && self.searches_left > 0 {
            self.searches_left -= 1;
            found = (0..self.glyphs.len()).find(is_it);
        }
        let index = found?;
        self.is_matched[index] = true;
        self.next_glyph = index + 1;
        Some(index as u32)
    }
}

impl<'a> Device<'a> for Canvas<'_> {
    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.charge(path.elements().len(), 0);
        if path.elements().is_empty() || !path.is_finite() || !props.transform.is_finite() {
            return;
        }
        self.with_effects(props.soft_mask.clone(), props.blend_mode, |canvas| match mode {
            DrawMode::Fill(rule) => canvas.fill_path(path, props.transform, *rule, &props.paint),
            DrawMode::Stroke(stroke) => canvas.stroke_path(path, props.transform, stroke, &props.paint),
            DrawMode::FillAndStroke(rule, stroke) => {
                canvas.fill_path(path, props.transform, *rule, &props.paint);
                canvas.stroke_path(path, props.transform, stroke, &props.paint);
            }
            DrawMode::Invisible => {}
        });
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

/// The class of a look, as an attribute; nothing for plain black.
fn class(store: &mut Store, look: &str) -> String {
    let look = look.trim_start_matches(';');
    if look.is_empty() { String::new() } else { format!(" class=\"s{}\"", store.look(look)) }
}

/// The declarations of a fill.
pub(super) fn fill([red, green, blue, alpha]: [u8; 4]) -> String {
    let mut look = String::new();
    if (red, green, blue) != (0, 0, 0) {
        let _ = write!(look, "fill:{}", colour(red, green, blue));
    }
    if alpha != 255 {
        let _ = write!(look, ";fill-opacity:{}", short(f64::from(alpha) / 255.0, 3));
    }
    look
}

/// A colour as short as it may be.
pub(crate) fn colour(red: u8, green: u8, blue: u8) -> String {
    let is_short = [red, green, blue].iter().all(|part| part >> 4 == part & 15);
    if is_short {
        format!("#{:x}{:x}{:x}", red & 15, green & 15, blue & 15)
    } else {
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

fn stroke_look(props: &StrokeProps, width: f64, scale: f64, [red, green, blue, alpha]: [u8; 4]) -> String {
    use hayro_interpret::kurbo::{Cap, Join};
    let mut look = format!("{STROKED}stroke:{}", colour(red, green, blue));
    let _ = write!(look, ";stroke-width:{}", short(width * UNIT, 1));
    if alpha != 255 {
        let _ = write!(look, ";stroke-opacity:{}", short(f64::from(alpha) / 255.0, 3));
    }
    match props.line_cap {
        Cap::Butt => {}
        Cap::Round => look.push_str(";stroke-linecap:round"),
        Cap::Square => look.push_str(";stroke-linecap:square"),
    }
    match props.line_join {
        Join::Miter => {
            let _ = write!(look, ";stroke-miterlimit:{}", short(f64::from(props.miter_limit).max(1.0), 2));
        }
        Join::Round => look.push_str(";stroke-linejoin:round"),
        Join::Bevel => look.push_str(";stroke-linejoin:bevel"),
    }
    if props.dash_array.iter().any(|dash| *dash > 0.0) {
        let dashes: Vec<String> =
            props.dash_array.iter().map(|dash| short(f64::from(*dash).abs() * scale * UNIT, 1)).collect();
        let _ = write!(look, ";stroke-dasharray:{}", dashes.join(" "));
        if props.dash_offset != 0.0 {
            let offset = short(f64::from(props.dash_offset) * scale * UNIT, 1);
            let _ = write!(look, ";stroke-dashoffset:{offset}");
        }
    }
    look
}

/// The rules of all ways of blending.
pub(crate) fn blends() -> String {
    let names = [
        "multiply",
        "screen",
        "overlay",
        "darken",
        "lighten",
        "color-dodge",
        "color-burn",
        "hard-light",
        "soft-light",
        "difference",
        "exclusion",
        "hue",
        "saturation",
        "color",
        "luminosity",
    ];
    let rule = |(index, name): (usize, &&str)| format!(".b{}{{mix-blend-mode:{name}}}\n", index + 1);
    names.iter().enumerate().map(rule).collect()
}

fn blend_class(blend: BlendMode) -> &'static str {
    match blend {
        BlendMode::Normal => "",
        BlendMode::Multiply => "b1",
        BlendMode::Screen => "b2",
        BlendMode::Overlay => "b3",
        BlendMode::Darken => "b4",
        BlendMode::Lighten => "b5",
        BlendMode::ColorDodge => "b6",
        BlendMode::ColorBurn => "b7",
        BlendMode::HardLight => "b8",
        BlendMode::SoftLight => "b9",
        BlendMode::Difference => "b10",
        BlendMode::Exclusion => "b11",
        BlendMode::Hue => "b12",
        BlendMode::Saturation => "b13",
        BlendMode::Color => "b14",
        BlendMode::Luminosity => "b15",
    }
}

/// Whether the fonts that stand in for others lack these letters: they know those of the West.
fn is_foreign(text: &str) -> bool {
    text.chars().any(|letter| letter >= '\u{370}')
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
