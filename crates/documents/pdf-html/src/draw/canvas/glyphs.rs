//! Runs of glyphs: which are set as text, and which are drawn.

use super::{Canvas, DEPTH_MAX, Drawn, Item};
use crate::draw::record;
use crate::draw::store::Outline;
use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::kurbo::{Affine, Point};
use hayro_interpret::{BlendMode, CacheKey as _, DrawMode, DrawProps, Paint};
use ode_pdf::trace::Content;
use std::rc::Rc;

/// Glyphs ahead of the expected one that are searched for the one that is drawn.
const LOOK_AHEAD: usize = 64;

impl Canvas<'_> {
    pub(super) fn glyph_run<'a>(&mut self, run: &GlyphRun<'_, 'a>, props: &DrawProps<'a>, mode: &DrawMode) {
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
            // Fields are filled in with letters that their fonts were never cut down for.
            let is_written = matches!(traced.content, Content::Field | Content::Note);
            let is_seen = (traced.is_substitute || is_written) && !traced.text.trim().is_empty();
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
        self.paint_path(&path, props, mode);
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

/// Whether the fonts that stand in for others lack these letters: they know those of the West.
fn is_foreign(text: &str) -> bool {
    text.chars().any(|letter| letter >= '\u{370}')
}
