//! The one place that knows the PDF parser underneath: it turns a file into marks, page by page.
//!
//! Content streams are walked here rather than by a general interpreter: text needs neither colours nor pictures,
//! the walk must be able to stop at a bound, and the fallbacks for Unicode need each font's own dictionary.

mod actual;
mod attachments;
mod content;
mod decode;
mod encryption;
mod fields;
mod filters;
mod font;
mod layers;
mod numbered;
mod path;
mod place;
mod program;
pub(crate) mod strings;
mod to_unicode;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use hayro_font::kurbo::{Affine, Rect as Area};
use hayro_syntax::object::dict::keys;
use hayro_syntax::page::{Page as Sheet, Resources};
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use crate::layout;
use crate::limits::Limits;
use crate::marks::Marks;
use crate::recognised::{self, Recognised};
use crate::refusal::Refusal;
use crate::text::{Document, Page, Rect};

use self::content::Walk;
use self::decode::Decoder;
use self::fields::{Forms, Hand};
use self::font::Fonts;
use self::layers::Layers;

/// The header may stand behind a little rubbish, such as a mail's or a printer's.
const HEADER_WITHIN_BYTES: usize = 4096;
/// Points per inch are 72 whatever the document says, but no page is wider than this once its unit is applied.
const USER_UNIT_MAX: f64 = 75_000.0;

struct Bytes(Arc<[u8]>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Opens a document and reads every page.
pub(crate) fn read(
    bytes: Arc<[u8]>,
    limits: &Limits,
    recognised: &[Recognised],
) -> Result<Document, Refusal> {
    let pdf = open(bytes, limits)?;
    let mut document = Document::default();
    let decoder = read_pages(
        &pdf,
        limits,
        recognised,
        |_| true,
        |page, is_cut, _, _| {
            if is_cut {
                document.warnings.push(cut_warning(page.number));
            }
            document.pages.push(page);
        },
    );
    document.attachments = attachments::read(&pdf, &decoder, limits, &mut document.warnings);
    if decoder.has_left_out() {
        document.warnings.push("A part of the document unpacks to more than is read: it is left out.".into());
    }
    Ok(document)
}

/// What is said of a page that was not read to its end.
pub(crate) fn cut_warning(number: u32) -> String {
    format!("Page {number} holds more than is read of one page: its end is left out.")
}

/// Reads the wanted pages, counted from nought, with what OCR read of them, and shows each: the page, whether it was cut, its marks, and the glyphs
/// of each of its words.
pub(crate) fn read_pages(
    pdf: &Pdf,
    limits: &Limits,
    recognised: &[Recognised],
    is_wanted: impl Fn(usize) -> bool,
    mut show: impl FnMut(Page, bool, Marks, Vec<Vec<u32>>),
) -> Rc<Decoder> {
    let decoder = Rc::new(Decoder::new(limits));
    let layers = Layers::read(pdf);
    let fonts = Fonts::new(decoder.clone());
    let forms = Forms::read(pdf);
    let reader = Reader {
        decoder: &decoder,
        layers: &layers,
        forms: &forms,
        fonts: &fonts,
        limits,
        operations_left: Cell::new(limits.operations_max),
        glyphs_left: Cell::new(limits.glyphs_max),
    };
    for (index, sheet) in pdf.pages().iter().enumerate().filter(|(index, _)| is_wanted(*index)) {
        let number = index as u32 + 1;
        let recognised = recognised.iter().find(|page| page.page == number);
        let (mut page, mut marks) = read_page(sheet, number, &reader, recognised);
        let is_cut = marks.is_cut;
        let glyphs = layout::lay_out(&mut marks, &mut page);
        show(page, is_cut, marks, glyphs);
    }
    decoder
}

/// What all pages of one document share.
pub(crate) struct Reader<'r, 'a> {
    decoder: &'r Decoder,
    layers: &'r Layers,
    forms: &'r Forms<'a>,
    fonts: &'r Fonts<'a>,
    limits: &'r Limits,
    /// What is left of the document's budgets.
    operations_left: Cell<usize>,
    glyphs_left: Cell<usize>,
}

pub(crate) fn open(bytes: Arc<[u8]>, limits: &Limits) -> Result<Pdf, Refusal> {
    if bytes.len() > limits.bytes_max {
        return Err(Refusal::TooLarge { bytes: bytes.len(), bytes_max: limits.bytes_max });
    }
    if bytes.is_empty() {
        return Err(Refusal::Empty);
    }
    let head = &bytes[..bytes.len().min(HEADER_WITHIN_BYTES)];
    let has_header = head.windows(5).any(|window| window == b"%PDF-");
    let pdf = Pdf::new(Arc::new(Bytes(bytes.clone()))).or_else(|error| {
        encryption::open_unlocked(&bytes).ok_or(match error {
            LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Refusal::Encrypted,
            LoadPdfError::Decryption(_) => Refusal::UnknownEncryption,
            LoadPdfError::Invalid if has_header => Refusal::Damaged,
            LoadPdfError::Invalid => Refusal::NotPdf,
        })
    })?;
    let pages = pdf.pages().len();
    if pages == 0 {
        return Err(Refusal::NoPages);
    }
    if pages > limits.pages_max {
        return Err(Refusal::TooManyPages { pages, pages_max: limits.pages_max });
    }
    Ok(pdf)
}

/// What the forms of a document are written with: its own fonts, and one that stands in for others.
pub(crate) fn form_resources(pdf: &Pdf) -> [Resources<'_>; 2] {
    let forms = Forms::read(pdf);
    [Hand::Own, Hand::StandIn].map(|hand| forms.resources(hand).clone())
}

/// How many points one unit of a page has.
pub(crate) fn user_unit(sheet: &Sheet<'_>) -> f64 {
    let unit = sheet.raw().get::<f64>(keys::USER_UNIT);
    unit.filter(|unit| (0.01..=USER_UNIT_MAX).contains(unit)).unwrap_or(1.0)
}

fn read_page<'a>(
    sheet: &Sheet<'a>,
    number: u32,
    reader: &Reader<'_, 'a>,
    recognised: Option<&Recognised>,
) -> (Page, Marks) {
    let unit = user_unit(sheet);
    let (width, height) = sheet.render_dimensions();
    let transform = Affine::scale(unit) * Affine::new(sheet.initial_transform(true).as_coeffs());
    let media = sheet.media_box();
    let media = transform.transform_rect_bbox(Area::new(media.x0, media.y0, media.x1, media.y1));

    let mut walk = Walk::new(reader, transform, media);
    walk.page(sheet);
    let mut marks = walk.finish();

    let mut page =
        Page { number, width: width * unit as f32, height: height * unit as f32, ..Page::default() };
    page.image_share = image_share(&marks, page.width, page.height);
    if let Some(recognised) = recognised {
        recognised::add(&mut marks, recognised, page.width);
    }
    (page, marks)
}

/// Squares per side of the grid on which the pictures' share of a page is counted.
const GRID: usize = 48;

fn image_share(marks: &Marks, width: f32, height: f32) -> f32 {
    if marks.images.is_empty() || width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let cell = |share: f32| ((share.clamp(0.0, 1.0) * GRID as f32).round() as usize).min(GRID);
    let mut is_covered = [[false; GRID]; GRID];
    for Rect { x0, y0, x1, y1 } in &marks.images {
        let (left, right) = (cell(x0 / width), cell(x1 / width));
        let (top, bottom) = (cell(y0 / height), cell(y1 / height));
        for row in is_covered.iter_mut().take(bottom).skip(top) {
            row.iter_mut().take(right).skip(left).for_each(|is_covered| *is_covered = true);
        }
    }
    let covered = is_covered.iter().flatten().filter(|is_covered| **is_covered).count();
    covered as f32 / (GRID * GRID) as f32
}
