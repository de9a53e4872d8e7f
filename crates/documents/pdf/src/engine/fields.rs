//! Form fields and notes that have something to say but no appearance: viewers write it into their box, and so is it read
//! here.

use std::fmt::Write as _;

use hayro_syntax::Pdf;
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction as Op;
use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{Dict, FromBytes as _, Name, Number, Object, Rect, String as PdfString};
use hayro_syntax::page::Resources;

use super::strings::text_string;

/// Fields inherit from their parents; a chain longer than this goes in circles.
const PARENTS_MAX: usize = 32;
/// Options of one list that are read.
const OPTIONS_MAX: usize = 1_000;
/// Bytes of one value that are read.
const VALUE_BYTES_MAX: usize = 50_000;
/// Size of a value whose field leaves it to the viewer, in points.
const SIZE: f64 = 12.0;
/// From the edge of the box to the letters.
const MARGIN: f64 = 2.0;
/// From one base line to the next, in sizes.
const LINE_HEIGHT: f64 = 1.2;
/// How far letters reach below their base line, in sizes.
const DESCENT: f64 = 0.22;

/// The way of showing text that shows nothing.
pub(crate) const INVISIBLE: i64 = 3;
/// Where lines stand that do not stand at the beginning.
const CENTRED: i32 = 1;
const AT_THE_END: i32 = 2;

const MULTILINE: u32 = 1 << 12;
const PASSWORD: u32 = 1 << 13;
const PUSH_BUTTON: u32 = 1 << 16;
const COMBO: u32 = 1 << 17;

/// The fonts of values whose own font is not there, or lacks their letters.
const STAND_IN: &[u8] =
    b"<</Font<</S<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>>>>>";
const STAND_IN_NAME: &[u8] = b"S";

/// In whose fonts something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    /// The document's.
    Own,
    StandIn,
}

/// What all fields of a document share.
pub(crate) struct Forms<'a> {
    own: Resources<'a>,
    stand_in: Resources<'a>,
    /// How they are written where they do not say.
    style: Style,
    /// Whether viewers are to write all values anew, whatever their fields look like.
    needs_looks: bool,
}

impl<'a> Forms<'a> {
    pub(crate) fn read(pdf: &'a Pdf) -> Self {
        let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()).unwrap_or_default();
        let forms = catalog.get::<Dict<'_>>(keys::ACRO_FORM).unwrap_or_default();
        Self {
            own: Resources::new(forms.get::<Dict<'_>>(keys::DR).unwrap_or_default()),
            stand_in: Resources::new(Dict::from_bytes(STAND_IN).unwrap_or_default()),
            style: forms.get::<Object<'_>>(b"DA").map(Style::read).unwrap_or_default(),
            needs_looks: forms.get::<bool>(b"NeedAppearances").unwrap_or(false),
        }
    }

    /// What they are written with.
    pub(crate) fn resources(&self, hand: Hand) -> &Resources<'a> {
        match hand {
            Hand::Own => &self.own,
            Hand::StandIn => &self.stand_in,
        }
    }
}

/// How a value is written.
#[derive(Clone, Default)]
struct Style {
    font: Vec<u8>,
    size: Option<f64>,
    /// The instruction that sets its colour.
    colour: String,
}

impl Style {
    /// Reads a style such as `/Helv 12 Tf 0 g`; a size of nought leaves it to the viewer.
    fn read(style: Object<'_>) -> Self {
        let mut read = Self::default();
        let Some(style) = style.into_string() else {
            return read;
        };
        let mut operations = TypedIter::new(style.as_bytes());
        while let Some(operation) = operations.next() {
            match operation {
                Op::TextFont(font) => {
                    read.font = font.0.as_ref().to_vec();
                    read.size = Some(font.1.as_f64()).filter(|size| *size > 0.0);
                }
                Op::NonStrokeColorDeviceGray(grey) => read.colour = instruction(&[grey.0], "g"),
                Op::NonStrokeColorDeviceRgb(rgb) => read.colour = instruction(&[rgb.0, rgb.1, rgb.2], "rg"),
                Op::NonStrokeColorCmyk(cmyk) => {
                    read.colour = instruction(&[cmyk.0, cmyk.1, cmyk.2, cmyk.3], "k");
                }
                _ => {}
            }
        }
        read
    }
}

fn instruction(numbers: &[Number], name: &str) -> String {
    let numbers: String = numbers.iter().map(|number| format!("{} ", number.as_f64())).collect();
    numbers + name
}

/// What a viewer writes into a box.
pub(crate) struct Value {
    lines: Vec<String>,
    style: Style,
    pub(crate) size: f64,
    rect: Rect,
    /// Whether anybody sees it.
    pub(crate) is_seen: bool,
    /// Whether it is written as text rather than chosen from a list.
    pub(crate) is_written: bool,
    flow: Flow,
    /// How much of the room that a line leaves stands before it.
    lead: f64,
}

/// How lines stand in their box.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    /// One, in the middle of its height.
    Middle,
    /// One below another.
    Top,
    /// The same, broken where the box ends.
    Wrapped,
}

impl Value {
    /// Its lines, broken where they would leave the box.
    pub(crate) fn lines_within(&self, advance: impl Fn(char) -> f64) -> Vec<String> {
        if self.flow != Flow::Wrapped {
            return self.lines.clone();
        }
        let width_max = self.rect.x1 - self.rect.x0 - 2.0 * MARGIN;
        self.lines.iter().flat_map(|line| wrapped(line, width_max, &advance)).collect()
    }

    /// The name of the font that it is written in.
    pub(crate) fn font(&self, hand: Hand) -> &[u8] {
        match hand {
            Hand::Own => &self.style.font,
            Hand::StandIn => STAND_IN_NAME,
        }
    }

    /// The instructions that write these codes, of single bytes, from a point on.
    pub(crate) fn instructions(&self, hand: Hand, codes: &[u8], (x, y): (f64, f64)) -> String {
        let hex = |bytes: &[u8], before: &str| {
            bytes.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{before}{byte:02x}");
                hex
            })
        };
        format!(
            "q BT {} Tr {} /{} {} Tf 1 0 0 1 {x} {y} Tm <{}> Tj ET Q\n",
            if self.is_seen { 0 } else { INVISIBLE },
            self.style.colour,
            hex(self.font(hand), "#"),
            self.size,
            hex(codes, "")
        )
    }

    /// Where a line of this width starts, on its base line.
    pub(crate) fn start_of_line(&self, line: usize, width: f64) -> (f64, f64) {
        let y = match self.flow {
            Flow::Middle => (self.rect.y0 + self.rect.y1 - self.size) / 2.0 + self.size * DESCENT,
            Flow::Top | Flow::Wrapped => self.rect.y1 - self.size * (line as f64 * LINE_HEIGHT + 1.0),
        };
        let room = (self.rect.x1 - self.rect.x0 - 2.0 * MARGIN - width).max(0.0);
        (self.rect.x0 + MARGIN + room * self.lead, y)
    }
}

/// What an annotation says whose appearance, if it has any, says nothing.
pub(crate) fn value(annotation: &Dict<'_>, forms: &Forms<'_>, has_look: bool) -> Option<Value> {
    let rect = annotation.get::<Rect>(keys::RECT)?;
    let (text, flow) = match annotation.get::<Name<'_>>(keys::SUBTYPE)?.as_ref() {
        b"Widget" => field(annotation)?,
        b"FreeText" => (shown(annotation.get::<Object<'_>>(b"Contents")?), Flow::Wrapped),
        _ => return None,
    };
    let style = inherited(annotation, b"DA").map_or_else(|| forms.style.clone(), Style::read);
    let is_opaque = annotation.get::<f64>(b"CA").is_none_or(|opacity| opacity > 0.0);
    let is_chosen = inherited(annotation, b"FT").is_some_and(|kind| is_name(kind, b"Ch"));
    let alignment = inherited(annotation, b"Q").and_then(Object::into_i32);
    Some(Value {
        lines: text.lines().map(str::to_owned).collect(),
        size: style.size.unwrap_or_else(|| SIZE.min((rect.y1 - rect.y0).abs() * 0.7)),
        style,
        rect,
        is_seen: is_opaque && (!has_look || forms.needs_looks),
        is_written: !is_chosen,
        flow,
        lead: match alignment {
            Some(CENTRED) => 0.5,
            Some(AT_THE_END) => 1.0,
            _ => 0.0,
        },
    })
}

fn is_name(object: Object<'_>, name: &[u8]) -> bool {
    object.into_name().is_some_and(|object| object.as_ref() == name)
}

fn field(field: &Dict<'_>) -> Option<(String, Flow)> {
    let kind = inherited(field, b"FT")?.into_name()?;
    let flags = inherited(field, b"Ff").and_then(Object::into_i32).unwrap_or(0) as u32;
    match kind.as_ref() {
        b"Tx" if flags & PASSWORD == 0 => {
            let flow = if flags & MULTILINE == 0 { Flow::Middle } else { Flow::Wrapped };
            Some((shown(inherited(field, b"V")?), flow))
        }
        b"Ch" if flags & COMBO != 0 => Some((chosen(field)?, Flow::Middle)),
        b"Ch" => {
            let first = inherited(field, b"TI").and_then(Object::into_i32).unwrap_or(0);
            let options = options(field).into_iter().skip(usize::try_from(first).unwrap_or(0));
            Some((options.map(|(_, shown)| shown).collect::<Vec<_>>().join("\n"), Flow::Top))
        }
        b"Btn" if flags & PUSH_BUTTON != 0 => {
            Some((shown(field.get::<Dict<'_>>(b"MK")?.get::<Object<'_>>(b"CA")?), Flow::Middle))
        }
        _ => None,
    }
}

/// A line in pieces that are no wider than this, broken between words. A word that is wider keeps its line to itself.
fn wrapped(line: &str, width_max: f64, advance: impl Fn(char) -> f64) -> Vec<String> {
    let width = |text: &str| text.chars().map(&advance).sum::<f64>();
    let mut pieces: Vec<String> = vec![String::new()];
    let mut used = 0.0;
    for word in line.split_inclusive(' ') {
        let needed = width(word.trim_end());
        if used > 0.0 && used + needed > width_max {
            pieces.push(String::new());
            used = 0.0;
        }
        used += width(word);
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(word);
        }
    }
    pieces
}

/// The option that is chosen, as it is shown rather than as it is sent.
fn chosen(field: &Dict<'_>) -> Option<String> {
    let value = shown(inherited(field, b"V")?);
    let option = options(field).into_iter().find(|(sent, _)| *sent == value);
    Some(option.map_or(value, |(_, shown)| shown))
}

/// The options of a list: what is sent and what is shown.
fn options(field: &Dict<'_>) -> Vec<(String, String)> {
    let Some(list) = inherited(field, b"Opt").and_then(Object::into_array) else {
        return Vec::new();
    };
    list.iter::<Object<'_>>()
        .take(OPTIONS_MAX)
        .map(|option| match option {
            Object::Array(pair) => {
                let mut pair = pair.iter::<Object<'_>>().map(shown);
                let sent = pair.next().unwrap_or_default();
                let label = pair.next().unwrap_or_else(|| sent.clone());
                (sent, label)
            }
            option => (shown(option.clone()), shown(option)),
        })
        .collect()
}

fn shown(value: Object<'_>) -> String {
    let read =
        |text: &PdfString<'_>| text_string(&text.as_bytes()[..text.as_bytes().len().min(VALUE_BYTES_MAX)]);
    match value {
        Object::String(text) => read(&text).replace("\r\n", "\n").replace('\r', "\n"),
        Object::Array(values) => {
            values.iter::<PdfString<'_>>().map(|text| read(&text)).next().unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn inherited<'a>(field: &Dict<'a>, key: &[u8]) -> Option<Object<'a>> {
    let mut field = field.clone();
    for _ in 0..PARENTS_MAX {
        if let Some(value) = field.get::<Object<'_>>(key) {
            return Some(value);
        }
        field = field.get::<Dict<'_>>(b"Parent")?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let check =
            |line: &str, expected: &[&str]| assert_eq!(wrapped(line, 5.0, |_| 1.0), expected, "{line}");
        check("", &[""]);
        check("one", &["one"]);
        check("one two six", &["one ", "two ", "six"]);
        check("a b c d", &["a b c ", "d"]);
        check("enormous word", &["enormous ", "word"]);
    }

    #[test]
    fn style_of_a_field_is_read() {
        let check = |style: &str, expected: (&str, Option<f64>, &str)| {
            let bytes = format!("({style})");
            let read = Style::read(Object::from_bytes(bytes.as_bytes()).unwrap());
            let font = String::from_utf8(read.font).unwrap();
            assert_eq!((font.as_str(), read.size, read.colour.as_str()), expected, "{style}");
        };
        check("0 g /Helv 9.5 Tf", ("Helv", Some(9.5), "0 g"));
        check("/Helv 0 Tf 1 0.5 0 rg", ("Helv", None, "1 0.5 0 rg"));
        check("/A#20B 8 Tf (x) Tj", ("A B", Some(8.0), ""));
        check("Tf", ("", None, ""));
    }
}
