//! One page on its way: drawn, its text found, its lines ready to be written once all fonts are known.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::hayro_syntax::content::TypedIter;
use hayro_interpret::hayro_syntax::page::{Page as Sheet, Resources};
use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, TransformExt as _, interpret, interpret_page,
};
use ode_pdf::trace::{Content, Traced, TracedGlyph};

use crate::config::ConversionConfig;
use crate::document::{Field, Link, Places, fields, links, looks};
use crate::draw::{Canvas, Drawing, Stop, Store};
use crate::font::{Shape, UNITS};
use crate::snapshot::snapshot;
use crate::text::{Faces, Line, Spot, lines};

const BLACK: [u8; 4] = [0, 0, 0, 255];

/// A page whose fonts are not written yet.
#[derive(Debug)]
pub(crate) struct Draft {
    /// From 1.
    pub(crate) number: u32,
    /// Width and height in points.
    pub(crate) size: (f64, f64),
    pub(crate) drawing: Drawing,
    pub(crate) blocks: Vec<Vec<Line>>,
    pub(crate) links: Vec<Link>,
    pub(crate) fields: Vec<Field>,
    /// Glyphs that are seen and whose letters the document does not tell.
    pub(crate) unknown_glyphs: usize,
    /// Glyphs whose font is not in the document.
    pub(crate) missing_glyphs: usize,
    /// A picture of the page, where it could not be drawn within its limits.
    pub(crate) picture: Option<usize>,
}

/// What is needed to draw a page besides the page.
pub(crate) struct Tools<'a> {
    pub(crate) cache: InterpreterCache<'a>,
    pub(crate) settings: InterpreterSettings,
    /// What fields without an appearance are written with.
    pub(crate) forms: [Resources<'a>; 2],
    pub(crate) places: Places,
}

/// From the space of a page's own numbers to points from its top-left corner as shown.
pub(crate) fn to_page(sheet: &Sheet<'_>, traced: &Traced) -> Affine {
    let (width, _) = sheet.render_dimensions();
    let unit = if width > 0.0 { f64::from(traced.page.width / width) } else { 1.0 };
    Affine::scale(unit) * sheet.initial_transform(true).to_kurbo()
}

/// Draws a page and finds its lines.
pub(crate) fn draft<'a>(
    sheet: &'a Sheet<'a>,
    traced: &Traced,
    tools: &Tools<'a>,
    (store, faces): (&mut Store, &mut Faces),
    config: &ConversionConfig,
) -> Draft {
    let (mut blocks, may_be_text) = lines(traced);
    let size = (f64::from(traced.page.width), f64::from(traced.page.height));
    let prefix = format!("p{}-", traced.page.number);
    let mut spots: Vec<Option<(Spot, [u8; 4])>> = vec![None; traced.glyphs.len()];
    let mut missing: Vec<(u32, [u8; 4])> = Vec::new();
    let mut blanks: Vec<u32> = Vec::new();
    let drawn = catch_unwind(AssertUnwindSafe(|| {
        let area = Rect::new(0.0, 0.0, size.0, size.1);
        let mut context =
            Context::new(to_page(sheet, traced), area, &tools.cache, sheet.xref(), tools.settings.clone());
        let mut canvas = Canvas::new(store, &traced.glyphs, size, prefix);
        interpret_page(sheet, &mut context, &mut canvas);
        canvas.markup(looks(sheet, to_page(sheet, traced)));
        let written = [&traced.written.in_own_fonts, &traced.written.in_a_stand_in];
        for (instructions, resources) in written.into_iter().zip(&tools.forms) {
            interpret(TypedIter::new(instructions.as_bytes()), resources, &mut context, &mut canvas);
        }
        missing = canvas.missing();
        blanks = canvas.blanks();
        canvas.finish(|store, glyph| {
            let index = glyph.traced as usize;
            let Some(stretch) = may_be_text[index].filter(|_| config.embed_fonts) else {
                return false;
            };
            let traced = &traced.glyphs[index];
            let advance = (f64::from(traced.end.0 - traced.start.0))
                .hypot(f64::from(traced.end.1 - traced.start.1))
                / f64::from(traced.size * stretch)
                * UNITS;
            let spot = faces.spot((traced, stretch), glyph.key, glyph.place, |fit| {
                let outline = store.outlines.get(&glyph.key)?.as_ref()?;
                let advance = advance.round().clamp(0.0, 16_000.0) as u16;
                Some(Shape { outline: fit * outline.path.clone(), advance })
            });
            spots[index] = spot.map(|spot| (spot, glyph.colour));
            spot.is_some()
        })
    }));
    let (drawing, picture) = match drawn {
        Ok(drawing) => (drawing, None),
        Err(cause) => {
            // A panic in the interpreter is a page that cannot be drawn; the picture of it may still be.
            let _ = cause.downcast::<Stop>();
            spots.fill(None);
            store.drop_drawing();
            (Drawing::default(), snapshot(sheet, size, store).or(Some(usize::MAX)))
        }
    };
    for mark in blocks.iter_mut().flatten().flat_map(|line| &mut line.marks) {
        if let Some((spot, colour)) = mark.traced.and_then(|traced| spots[traced as usize]) {
            (mark.spot, mark.colour) = (Some(spot), colour);
        }
    }
    silence(&mut blocks, &blanks);
    count_pairs(&blocks, faces);
    let to_page = to_page(sheet, traced);
    let fields = fields(sheet, to_page);
    missing.extend(undrawn(traced, &fields));
    let missing_glyphs = show_missing(&mut blocks, &missing, &may_be_text);
    Draft {
        number: traced.page.number,
        size,
        drawing,
        blocks,
        links: links(sheet, to_page, &tools.places),
        fields,
        unknown_glyphs: traced.page.unknown_glyphs.saturating_sub(blanks.len()),
        missing_glyphs,
        picture,
    }
}

/// Takes away the text of glyphs that neither say nor show anything.
fn silence(blocks: &mut [Vec<Line>], blanks: &[u32]) {
    let blanks: HashSet<u32> = blanks.iter().copied().collect();
    let marks = blocks.iter_mut().flatten().flat_map(|line| &mut line.marks);
    for mark in marks.filter(|mark| mark.traced.is_some_and(|traced| blanks.contains(&traced))) {
        mark.text.clear();
    }
}

/// Letters that somebody wrote on the page or into a field and that nothing draws.
fn undrawn(traced: &Traced, fields: &[Field]) -> impl Iterator<Item = (u32, [u8; 4])> {
    let glyphs = traced.glyphs.iter().enumerate();
    let is_shown = |field: &Field, (x, y): (f32, f32)| {
        field.is_on_page() && field.area.contains((f64::from(x), f64::from(y)))
    };
    let is_undrawn = move |glyph: &TracedGlyph| match glyph.content {
        Content::Note => glyph.code.is_none(),
        Content::Field => glyph.code.is_none() && fields.iter().any(|field| is_shown(field, glyph.start)),
        Content::Unmarked | Content::Artifact | Content::Marked { .. } => false,
    };
    glyphs.filter(move |(_, glyph)| is_undrawn(glyph)).map(|(index, _)| (index as u32, BLACK))
}

/// Lets letters whose font is not in the document be shown in one that the reader has.
fn show_missing(blocks: &mut [Vec<Line>], missing: &[(u32, [u8; 4])], may_be_text: &[Option<f32>]) -> usize {
    let missing: HashMap<u32, [u8; 4]> = missing.iter().copied().collect();
    let mut count = 0;
    for mark in blocks.iter_mut().flatten().flat_map(|line| &mut line.marks) {
        let colour = mark.traced.and_then(|traced| missing.get(&traced));
        if let (Some(colour), Some(traced)) = (colour, mark.traced)
            && may_be_text[traced as usize].is_some()
        {
            (mark.is_foreign, mark.colour) = (true, *colour);
            count += 1;
        }
    }
    count
}

/// Tells the fonts how far apart their glyphs stand.
fn count_pairs(blocks: &[Vec<Line>], faces: &mut Faces) {
    // From the right, what moves a glyph away from the next moves it towards the last.
    for line in blocks.iter().flatten().filter(|line| !line.is_from_right) {
        for pair in line.marks.windows(2) {
            let [one, two] = pair else { continue };
            let (Some(first), Some(second)) = (one.spot, two.spot) else {
                continue;
            };
            if two.from > one.from
                && !two.is_after_space
                && one.size == two.size
                && (one.down - two.down).abs() < 0.05
            {
                let step = f64::from(two.from - one.from) / f64::from(one.size) * UNITS;
                let by = step - faces.advance(first);
                faces.count_pair(first, second, by);
            }
        }
    }
}
