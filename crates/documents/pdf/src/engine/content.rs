//! Walks the content of a page and collects its marks: glyphs, straight strokes, pictures.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use hayro_font::kurbo::{Affine, Point as Spot, Rect as Area, Vec2};
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction as Op;
use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};
use hayro_syntax::page::{Page as Sheet, Resources};

use super::Reader;
use super::fields::{self, Hand, INVISIBLE};
use super::font::Font;
use super::path::Path;
use super::strings::text_string;
use crate::marks::{Content, Glyph, Marks, Origin, Point};
use crate::text::Rect;

/// Forms within forms; real documents stay below ten.
const FORM_DEPTH_MAX: u32 = 24;
/// Saved states; a content stream that only saves must not fill the memory.
const STATES_MAX: usize = 1_000;
/// Marked content within marked content.
const MARKED_DEPTH_MAX: usize = 1_000;
/// Boxes of pictures kept of one page.
const IMAGES_MAX: usize = 10_000;
/// Bytes of one replacement text that are kept.
const ACTUAL_TEXT_BYTES_MAX: usize = 100_000;
/// Sizes outside of this are not text that a person could read, in points.
const SIZES: std::ops::RangeInclusive<f64> = 0.05..=5_000.0;

const HIDDEN: u32 = 1 << 1;
const NO_VIEW: u32 = 1 << 5;

/// The walk over one page.
pub(crate) struct Walk<'r, 'a> {
    reader: &'r Reader<'r, 'a>,
    marks: Marks,
    state: State<'a>,
    saved: Vec<State<'a>>,
    /// Saves past the bound: counted, so that restores still match.
    unsaved: usize,
    path: Path,
    text_matrix: Affine,
    line_matrix: Affine,
    /// For each open marked content: whether it hides its content.
    marked: Vec<Marked>,
    actual: Option<Actual>,
    media: Area,
    operations_left: usize,
    glyphs_left: usize,
    depth: u32,
    /// The object number of the form that is being drawn.
    form: Option<u32>,
}

#[derive(Clone)]
struct State<'a> {
    transform: Affine,
    font: Option<Rc<Font<'a>>>,
    size: f64,
    letter_space: f64,
    word_space: f64,
    stretch: f64,
    leading: f64,
    rise: f64,
    mode: i64,
    line_width: f64,
}

struct Marked {
    is_hidden: bool,
    content: Content,
}

/// A replacement text that is waiting for the end of what it replaces.
struct Actual {
    text: String,
    first_glyph: usize,
    /// How many marked contents were open when it began.
    level: usize,
}

impl<'r, 'a> Walk<'r, 'a> {
    pub(crate) fn new(reader: &'r Reader<'r, 'a>, transform: Affine, media: Area) -> Self {
        Self {
            reader,
            marks: Marks::default(),
            state: State {
                transform,
                font: None,
                size: 1.0,
                letter_space: 0.0,
                word_space: 0.0,
                stretch: 1.0,
                leading: 0.0,
                rise: 0.0,
                mode: 0,
                line_width: 1.0,
            },
            saved: Vec::new(),
            unsaved: 0,
            path: Path::default(),
            text_matrix: Affine::IDENTITY,
            line_matrix: Affine::IDENTITY,
            marked: Vec::new(),
            actual: None,
            media,
            operations_left: reader.limits.operations_per_page_max.min(reader.operations_left.get()),
            glyphs_left: reader.limits.glyphs_per_page_max.min(reader.glyphs_left.get()),
            depth: 0,
            form: None,
        }
    }

    /// Walks a page's content and the appearance of its annotations.
    pub(crate) fn page(&mut self, sheet: &Sheet<'a>) {
        let outer = self.state.clone();
        let content = self.page_content(sheet);
        self.content(&content, sheet.resources());
        self.end_actual(0);
        self.marked.clear();
        // Annotations do not depend on the state that the page was left in.
        self.state = outer;
        if let Some(annotations) = sheet.raw().get::<Array<'_>>(keys::ANNOTS) {
            for annotation in annotations.iter::<Dict<'_>>() {
                self.annotation(&annotation, sheet.resources());
            }
        }
    }

    /// What was found; the document's budgets are charged with it.
    pub(crate) fn finish(self) -> Marks {
        let limits = self.reader.limits;
        let charge = |left: &Cell<usize>, page_max: usize, page_left: usize| {
            let used = page_max.min(left.get()) - page_left;
            left.set(left.get() - used);
        };
        charge(&self.reader.operations_left, limits.operations_per_page_max, self.operations_left);
        charge(&self.reader.glyphs_left, limits.glyphs_per_page_max, self.glyphs_left);
        self.marks
    }

    fn page_content(&self, sheet: &Sheet<'a>) -> Vec<u8> {
        let decode = |stream: &Stream<'a>| self.reader.decoder.decode(stream).map(Cow::into_owned);
        if let Some(stream) = sheet.raw().get::<Stream<'a>>(keys::CONTENTS) {
            return decode(&stream).unwrap_or_default();
        }
        let mut content = Vec::new();
        if let Some(streams) = sheet.raw().get::<Array<'a>>(keys::CONTENTS) {
            for part in streams.iter::<Stream<'a>>().filter_map(|stream| decode(&stream)) {
                content.extend(part);
                content.push(b'\n');
            }
        }
        content
    }

    fn content(&mut self, content: &[u8], resources: &Resources<'a>) {
        let states = self.saved.len();
        let marked = self.marked.len();
        let mut operations = TypedIter::new(content);
        while let Some(operation) = operations.next() {
            if self.operations_left == 0 {
                self.marks.is_cut = true;
                break;
            }
            self.operations_left -= 1;
            if !self.text_operation(&operation, resources) && !self.path_operation(&operation) {
                self.other_operation(operation, resources, states);
            }
        }
        // What a stream leaves open ends with it.
        while self.saved.len() > states {
            self.restore(states);
        }
        self.end_actual(marked);
        self.marked.truncate(marked);
        self.path.clear();
    }

    fn other_operation(&mut self, operation: Op<'_, '_>, resources: &Resources<'a>, states: usize) {
        match operation {
            Op::SaveState(_) => self.save(),
            Op::RestoreState(_) => self.restore(states),
            Op::Transform(m) => self.state.transform *= matrix([m.0, m.1, m.2, m.3, m.4, m.5]),
            Op::SetGraphicsState(name) => self.graphics_state(name.0, resources),
            Op::XObject(name) => {
                if let Some(object) = resources.get_x_object(name.0) {
                    self.object(&object, resources);
                }
            }
            Op::InlineImage(_) => self.image(),
            Op::BeginMarkedContent(marked) => {
                let content = self.content_of(marked.0.as_ref(), None);
                self.begin_marked(None, false, content);
            }
            Op::BeginMarkedContentWithProperties(marked) => {
                let is_layer = marked.0.as_ref() == b"OC";
                let (properties, is_hidden) = match marked.1 {
                    Object::Name(name) => (
                        resources.properties.get::<Dict<'_>>(name.as_ref()),
                        is_layer && self.reader.layers.is_hidden(&resources.properties, name.as_ref()),
                    ),
                    Object::Dict(dict) => (Some(dict.clone()), false),
                    _ => (None, false),
                };
                let content = self.content_of(marked.0.as_ref(), properties.as_ref());
                let actual = properties
                    .and_then(|properties| properties.get::<PdfString<'_>>(keys::ACTUAL_TEXT))
                    .map(|text| {
                        text_string(&text.as_bytes()[..text.as_bytes().len().min(ACTUAL_TEXT_BYTES_MAX)])
                    });
                self.begin_marked(actual, is_hidden, content);
            }
            Op::EndMarkedContent(_) => {
                self.marked.pop();
                self.end_actual(self.marked.len());
            }
            _ => {}
        }
    }

    fn text_operation(&mut self, operation: &Op<'_, '_>, resources: &Resources<'a>) -> bool {
        match operation {
            Op::BeginText(_) => self.set_matrix(Affine::IDENTITY),
            Op::SetTextMatrix(m) => self.set_matrix(matrix([m.0, m.1, m.2, m.3, m.4, m.5])),
            Op::TextFont(font) => {
                self.state.font = match resources.get_font(font.0) {
                    Some(dict) => Some(self.reader.fonts.font(&dict)),
                    None => Some(self.reader.fonts.fallback()),
                };
                self.state.size = font.1.as_f64();
            }
            Op::ShowText(text) => self.show(text.0.as_bytes()),
            Op::ShowTexts(parts) => self.show_parts(parts.0),
            Op::NextLine(by) => self.next_line(by.0.as_f64(), by.1.as_f64()),
            Op::NextLineAndSetLeading(by) => {
                self.state.leading = -by.1.as_f64();
                self.next_line(by.0.as_f64(), by.1.as_f64());
            }
            Op::NextLineUsingLeading(_) => self.next_line(0.0, -self.state.leading),
            Op::NextLineAndShowText(text) => {
                self.next_line(0.0, -self.state.leading);
                self.show(text.0.as_bytes());
            }
            Op::ShowTextWithParameters(text) => {
                self.state.word_space = text.0.as_f64();
                self.state.letter_space = text.1.as_f64();
                self.next_line(0.0, -self.state.leading);
                self.show(text.2.as_bytes());
            }
            Op::CharacterSpacing(space) => self.state.letter_space = space.0.as_f64(),
            Op::WordSpacing(space) => self.state.word_space = space.0.as_f64(),
            Op::HorizontalScaling(percent) => self.state.stretch = percent.0.as_f64() / 100.0,
            Op::TextLeading(leading) => self.state.leading = leading.0.as_f64(),
            Op::TextRise(rise) => self.state.rise = rise.0.as_f64(),
            Op::TextRenderingMode(mode) => self.state.mode = mode.0.as_i64(),
            _ => return false,
        }
        true
    }

    fn path_operation(&mut self, operation: &Op<'_, '_>) -> bool {
        let transform = self.state.transform;
        let spot = |x: f64, y: f64| transform * Spot::new(x, y);
        match operation {
            Op::MoveTo(to) => self.path.move_to(spot(to.0.as_f64(), to.1.as_f64())),
            Op::LineTo(to) => self.path.line_to(spot(to.0.as_f64(), to.1.as_f64())),
            Op::CubicTo(to) => self.path.curve_to(spot(to.4.as_f64(), to.5.as_f64())),
            Op::CubicStartTo(to) => self.path.curve_to(spot(to.2.as_f64(), to.3.as_f64())),
            Op::CubicEndTo(to) => self.path.curve_to(spot(to.2.as_f64(), to.3.as_f64())),
            Op::ClosePath(_) => self.path.close(),
            Op::RectPath(r) => {
                let (x, y, width, height) = (r.0.as_f64(), r.1.as_f64(), r.2.as_f64(), r.3.as_f64());
                self.path.move_to(spot(x, y));
                self.path.line_to(spot(x + width, y));
                self.path.line_to(spot(x + width, y + height));
                self.path.line_to(spot(x, y + height));
                self.path.close();
            }
            Op::StrokePath(_) => self.paint(false, true),
            Op::CloseAndStrokePath(_) => {
                self.path.close();
                self.paint(false, true);
            }
            Op::FillPathNonZero(_) | Op::FillPathNonZeroCompatibility(_) | Op::FillPathEvenOdd(_) => {
                self.paint(true, false);
            }
            Op::FillAndStrokeNonZero(_) | Op::FillAndStrokeEvenOdd(_) => self.paint(true, true),
            Op::CloseFillAndStrokeNonZero(_) | Op::CloseFillAndStrokeEvenOdd(_) => {
                self.path.close();
                self.paint(true, true);
            }
            Op::EndPath(_) => self.path.clear(),
            Op::LineWidth(width) => self.state.line_width = width.0.as_f64(),
            _ => return false,
        }
        true
    }

    fn paint(&mut self, fills: bool, strokes: bool) {
        if !self.is_hidden() {
            let scale = self.state.transform.determinant().abs().sqrt();
            let room = self.reader.limits.rules_per_page_max.saturating_sub(self.marks.rules.len());
            if fills {
                self.marks.shapes += self.path.curved_figures();
            }
            if strokes {
                self.path.stroked(self.state.line_width.abs() * scale, room, &mut self.marks.rules);
            } else if fills {
                self.path.filled(room, &mut self.marks.rules);
            }
        }
        self.path.clear();
    }

    fn save(&mut self) {
        if self.saved.len() >= STATES_MAX {
            self.unsaved += 1;
        } else {
            self.saved.push(self.state.clone());
        }
    }

    fn restore(&mut self, states: usize) {
        if self.unsaved > 0 {
            self.unsaved -= 1;
        } else if self.saved.len() > states
            && let Some(state) = self.saved.pop()
        {
            self.state = state;
        }
    }

    fn graphics_state(&mut self, name: &Name<'_>, resources: &Resources<'a>) {
        let Some(dict) = resources.get_ext_g_state(name) else {
            return;
        };
        if let Some(width) = dict.get::<f64>(keys::LW) {
            self.state.line_width = width;
        }
        if let Some(font) = dict.get::<Array<'_>>(keys::FONT) {
            let size = font.iter::<Object<'_>>().nth(1).and_then(Object::into_f32);
            if let (Some(dict), Some(size)) = (font.iter::<Dict<'_>>().next(), size) {
                self.state.font = Some(self.reader.fonts.font(&dict));
                self.state.size = f64::from(size);
            }
        }
    }

    fn object(&mut self, object: &Stream<'a>, resources: &Resources<'a>) {
        let is_hidden = self.is_hidden() || self.reader.layers.is_hidden(object.dict(), keys::OC);
        if is_hidden {
            return;
        }
        let subtype = object.dict().get::<Name<'_>>(keys::SUBTYPE);
        match subtype.as_ref().map(AsRef::as_ref) {
            Some(b"Image") => self.image(),
            Some(b"Form") => self.form(object, resources),
            _ => {}
        }
    }

    fn form(&mut self, form: &Stream<'a>, resources: &Resources<'a>) {
        if self.depth >= FORM_DEPTH_MAX || self.operations_left == 0 {
            return;
        }
        let Some(content) = self.reader.decoder.decode_form(form) else {
            return;
        };
        let outer = (self.state.clone(), self.text_matrix, self.line_matrix);
        if let Some(matrix) = form.dict().get::<[f64; 6]>(keys::MATRIX) {
            self.state.transform *= Affine::new(matrix);
        }
        let own = form.dict().get::<Dict<'_>>(keys::RESOURCES).map(Resources::new);
        let outer_form = self.form;
        self.form = form.dict().obj_id().map(|id| id.obj_number);
        self.depth += 1;
        self.path.clear();
        self.content(&content, own.as_ref().unwrap_or(resources));
        self.depth -= 1;
        self.form = outer_form;
        (self.state, self.text_matrix, self.line_matrix) = outer;
    }

    fn image(&mut self) {
        if self.is_hidden() || self.marks.images.len() >= IMAGES_MAX {
            return;
        }
        let area = self.state.transform.transform_rect_bbox(Area::new(0.0, 0.0, 1.0, 1.0));
        self.marks.images.push(Rect {
            x0: area.x0 as f32,
            y0: area.y0 as f32,
            x1: area.x1 as f32,
            y1: area.y1 as f32,
        });
    }

    fn annotation(&mut self, annotation: &Dict<'a>, resources: &Resources<'a>) {
        let flags = annotation.get::<u32>(keys::F).unwrap_or(0);
        if flags & (HIDDEN | NO_VIEW) != 0 || self.reader.layers.is_hidden(annotation, keys::OC) {
            return;
        }
        let subtype = annotation.get::<Name<'_>>(keys::SUBTYPE);
        let content = match subtype.as_ref().map(AsRef::as_ref) {
            Some(b"Widget") => Content::Field,
            Some(b"FreeText") => Content::Note,
            _ => Content::Unmarked,
        };
        self.marked.push(Marked { is_hidden: false, content });
        let glyphs = self.marks.glyphs.len();
        self.appearance(annotation, resources);
        let has_look = appearance(annotation).is_some();
        if self.marks.glyphs.len() == glyphs
            && let Some(value) = fields::value(annotation, self.reader.forms, has_look)
        {
            self.told(&value);
        }
        self.marked.pop();
    }

    fn appearance(&mut self, annotation: &Dict<'a>, resources: &Resources<'a>) {
        let rect = annotation.get::<hayro_syntax::object::Rect>(keys::RECT);
        let Some((form, rect)) = appearance(annotation).zip(rect) else {
            return;
        };
        let bounds = form.dict().get::<[f64; 4]>(keys::BBOX).unwrap_or([0.0, 0.0, 1.0, 1.0]);
        let matrix = form.dict().get::<[f64; 6]>(keys::MATRIX).map_or(Affine::IDENTITY, Affine::new);
        let bounds = matrix.transform_rect_bbox(Area::new(bounds[0], bounds[1], bounds[2], bounds[3]));
        if bounds.width() <= 0.0 || bounds.height() <= 0.0 {
            return;
        }
        // The appearance's box, turned by its own matrix, is fitted into the annotation's rectangle.
        let (across, up) = ((rect.x1 - rect.x0) / bounds.width(), (rect.y1 - rect.y0) / bounds.height());
        let fit = Affine::new([across, 0.0, 0.0, up, rect.x0 - bounds.x0 * across, rect.y0 - bounds.y0 * up]);
        let outer = self.state.clone();
        self.state.transform *= fit;
        self.form(&form, resources);
        self.state = outer;
    }

    /// Writes what a viewer would write where an annotation has no appearance, line by line from the top.
    fn told(&mut self, value: &fields::Value) {
        let reader = self.reader;
        let font = |hand| reader.forms.resources(hand).fonts.get::<Dict<'_>>(value.font(hand));
        let own = font(Hand::Own).map(|dict| reader.fonts.font(&dict));
        let stand_in = reader.fonts.font(&font(Hand::StandIn).unwrap_or_default());
        let code_of = |letter: char| {
            let own = own.as_ref().and_then(|font| font.code_of(letter)).map(|code| (Hand::Own, code));
            own.or_else(|| stand_in.code_of(letter).map(|code| (Hand::StandIn, code)))
        };
        // An n stands in for the width of letters that no font has.
        let advance = |letter: char| {
            let (font, code) = match (code_of(letter), &own) {
                (Some((Hand::Own, code)), Some(own)) => (own, code),
                (Some((_, code)), _) => (&stand_in, code),
                (None, _) => (&stand_in, b'n'),
            };
            font.character(code.into()).advance * value.size
        };
        let hand_of = |letter: char| code_of(letter).map(|(hand, _)| hand).filter(|_| value.is_written);
        for (line, text) in value.lines_within(advance).iter().enumerate() {
            let (mut x, y) = value.start_of_line(line, text.chars().map(advance).sum());
            let letters: Vec<char> = text.chars().collect();
            for run in letters.chunk_by(|one, two| hand_of(*one) == hand_of(*two)) {
                let codes: Vec<u8> = run.iter().filter_map(|letter| Some(code_of(*letter)?.1)).collect();
                match hand_of(run[0]) {
                    Some(hand) => self.told_by_hand(value, hand, &codes, (x, y)),
                    None => self.told_without_code(value, (&stand_in, run), (x, y), advance),
                }
                x += run.iter().map(|letter| advance(*letter)).sum::<f64>();
            }
        }
    }

    fn told_by_hand(&mut self, value: &fields::Value, hand: Hand, codes: &[u8], start: (f64, f64)) {
        let instructions = value.instructions(hand, codes, start);
        let forms = self.reader.forms;
        self.content(instructions.as_bytes(), forms.resources(hand));
        match hand {
            Hand::Own => &mut self.marks.written.in_own_fonts,
            Hand::StandIn => &mut self.marks.written.in_a_stand_in,
        }
        .push_str(&instructions);
    }

    /// Writes letters that their font lacks, or that nothing draws.
    fn told_without_code(
        &mut self,
        value: &fields::Value,
        (font, letters): (&Font<'a>, &[char]),
        start: (f64, f64),
        advance: impl Fn(char) -> f64,
    ) {
        let outer = self.state.clone();
        self.state.size = value.size;
        self.state.mode = if value.is_seen { 0 } else { INVISIBLE };
        self.set_matrix(Affine::translate(start));
        for letter in letters {
            if self.glyphs_left == 0 {
                self.marks.is_cut = true;
                break;
            }
            let advance = advance(*letter);
            self.glyph(font, advance / value.size, letter.encode_utf8(&mut [0; 4]), None);
            self.text_matrix *= Affine::translate((advance, 0.0));
        }
        self.state = outer;
    }

    /// What content begins with this tag: what has no number of its own belongs to what it is in.
    fn content_of(&self, tag: &[u8], properties: Option<&Dict<'_>>) -> Content {
        let number = properties.and_then(|properties| properties.get::<i32>(keys::MCID));
        match number {
            Some(number) => Content::Marked { number, form: self.form },
            None if tag == b"Artifact" => Content::Artifact,
            None => self.marked.last().map_or(Content::Unmarked, |marked| marked.content),
        }
    }

    fn begin_marked(&mut self, actual: Option<String>, is_hidden: bool, content: Content) {
        if self.marked.len() >= MARKED_DEPTH_MAX {
            return;
        }
        if let Some(text) = actual.filter(|_| self.actual.is_none()) {
            self.actual =
                Some(Actual { text, first_glyph: self.marks.glyphs.len(), level: self.marked.len() });
        }
        let is_hidden = is_hidden || self.is_hidden();
        self.marked.push(Marked { is_hidden, content });
    }

    fn is_hidden(&self) -> bool {
        self.marked.last().is_some_and(|marked| marked.is_hidden)
    }

    /// Puts a replacement text in place once its marked content has ended, `level` still being open.
    fn end_actual(&mut self, level: usize) {
        if let Some(actual) = self.actual.take_if(|actual| actual.level >= level) {
            super::actual::replace(&mut self.marks, actual.first_glyph, &actual.text);
        }
    }

    fn set_matrix(&mut self, matrix: Affine) {
        self.text_matrix = matrix;
        self.line_matrix = matrix;
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.set_matrix(self.line_matrix * Affine::translate((x, y)));
    }

    fn show_parts(&mut self, parts: &Array<'_>) {
        for part in parts.iter::<Object<'_>>() {
            match part {
                Object::String(text) => self.show(text.as_bytes()),
                Object::Number(number) => {
                    let by = -number.as_f64() / 1000.0 * self.state.size;
                    let is_vertical = self.state.font.as_ref().is_some_and(|font| font.is_vertical());
                    let by = if is_vertical {
                        Vec2::new(0.0, by)
                    } else {
                        Vec2::new(by * self.state.stretch, 0.0)
                    };
                    self.text_matrix *= Affine::translate(by);
                }
                _ => {}
            }
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        let font = self.state.font.get_or_insert_with(|| self.reader.fonts.fallback()).clone();
        let is_hidden = self.is_hidden();
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.glyphs_left == 0 {
                self.marks.is_cut = true;
                return;
            }
            let (code, length) = font.next_code(rest);
            rest = &rest[length.max(1).min(rest.len())..];
            let character = font.character(code);
            // What neither moves the pen nor says anything is padding.
            let is_padding = character.text.is_empty() && character.advance == 0.0;
            if !is_hidden && !is_padding {
                self.glyph(&font, character.advance, &character.text, Some(code));
            }
            let space =
                self.state.letter_space + if code == 32 && length == 1 { self.state.word_space } else { 0.0 };
            let by = character.advance * self.state.size;
            let by = if font.is_vertical() {
                Vec2::new(0.0, by + space)
            } else {
                Vec2::new((by + space) * self.state.stretch, 0.0)
            };
            self.text_matrix *= Affine::translate(by);
        }
    }

    fn glyph(&mut self, font: &Font<'a>, advance: f64, text: &str, code: Option<u32>) {
        let State { size, stretch, rise, .. } = self.state;
        let place = self.state.transform * self.text_matrix * Affine::translate((0.0, rise));
        let along = advance * size;
        let (end, direction) = if font.is_vertical() {
            // A letter is no higher than its square, however far the font moves the pen.
            (Spot::new(0.0, along.clamp(-size.abs(), size.abs())), Vec2::new(0.0, -size))
        } else {
            (Spot::new(along * stretch, 0.0), Vec2::new(size * stretch, 0.0))
        };
        let start = place * Spot::ORIGIN;
        let end = place * end;
        let up = linear(&place, Vec2::new(0.0, size));
        let shown_size = up.hypot() * f64::from(font.look.em);
        let across = linear(&place, Vec2::new(size * stretch, 0.0));
        let is_on_paper = start.x >= self.media.x0 - 1.0
            && start.x <= self.media.x1 + 1.0
            && start.y >= self.media.y0 - 1.0
            && start.y <= self.media.y1 + 1.0;
        if !SIZES.contains(&shown_size) || !is_on_paper || !end.is_finite() {
            return;
        }
        let direction = linear(&place, direction);
        let content = self.marked.last().map_or(Content::Unmarked, |marked| marked.content);
        self.glyphs_left = self.glyphs_left.saturating_sub(1);
        let text = self.marks.keep(text);
        self.marks.glyphs.push(Glyph {
            text,
            start: Point { x: start.x as f32, y: start.y as f32 },
            end: Point { x: end.x as f32, y: end.y as f32 },
            angle: (direction.y.atan2(direction.x).to_degrees() as f32).rem_euclid(360.0),
            size: shown_size as f32,
            ascent: font.look.ascent,
            descent: font.look.descent,
            is_bold: font.look.is_bold,
            is_invisible: self.state.mode == INVISIBLE,
            letter_space: (linear(&place, Vec2::new(self.state.letter_space * stretch, 0.0))).hypot() as f32,
            stretch: if up.hypot() > 0.0 { (across.hypot() / up.hypot()) as f32 } else { 1.0 },
            origin: Origin {
                code,
                font: font.number,
                is_substitute: font.is_substitute(),
                is_vertical: font.is_vertical(),
                content,
            },
            percent: None,
        });
    }
}

fn matrix(numbers: [hayro_syntax::object::Number; 6]) -> Affine {
    Affine::new(numbers.map(|number| number.as_f64()))
}

/// A vector moved by the turning part of a transform.
fn linear(transform: &Affine, vector: Vec2) -> Vec2 {
    let [a, b, c, d, ..] = transform.as_coeffs();
    Vec2::new(a * vector.x + c * vector.y, b * vector.x + d * vector.y)
}

fn appearance<'a>(annotation: &Dict<'a>) -> Option<Stream<'a>> {
    match annotation.get::<Dict<'_>>(keys::AP)?.get::<Object<'_>>(keys::N)? {
        Object::Stream(stream) => Some(stream),
        Object::Dict(states) => {
            let state = annotation.get::<Name<'_>>(keys::AS)?;
            states.get::<Stream<'_>>(state.as_ref())
        }
        _ => None,
    }
}
