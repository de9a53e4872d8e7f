//! Form fields and notes that have something to say but no appearance: viewers write it into their box, and so is it read
//! here.

use hayro_syntax::object::dict::keys;
use hayro_syntax::object::{Dict, Name, Object, Rect, String as PdfString};

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

const MULTILINE: u32 = 1 << 12;
const PASSWORD: u32 = 1 << 13;
const PUSH_BUTTON: u32 = 1 << 16;
const COMBO: u32 = 1 << 17;

/// What a viewer writes into a box.
pub(crate) struct Value {
    lines: Vec<String>,
    /// Size of the type.
    pub(crate) size: f64,
    rect: Rect,
    /// Whether anybody sees it.
    pub(crate) is_seen: bool,
    flow: Flow,
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

    /// Where a line starts, on its base line.
    pub(crate) fn start_of_line(&self, line: usize) -> (f64, f64) {
        let y = match self.flow {
            Flow::Middle => (self.rect.y0 + self.rect.y1 - self.size) / 2.0 + self.size * DESCENT,
            Flow::Top | Flow::Wrapped => self.rect.y1 - self.size * (line as f64 * LINE_HEIGHT + 1.0),
        };
        (self.rect.x0 + MARGIN, y)
    }
}

/// What an annotation says that has no appearance of its own.
pub(crate) fn value(annotation: &Dict<'_>) -> Option<Value> {
    let rect = annotation.get::<Rect>(keys::RECT)?;
    let (text, flow) = match annotation.get::<Name<'_>>(keys::SUBTYPE)?.as_ref() {
        b"Widget" => field(annotation)?,
        b"FreeText" => (shown(annotation.get::<Object<'_>>(b"Contents")?), Flow::Wrapped),
        _ => return None,
    };
    let style = inherited(annotation, b"DA").and_then(Object::into_string);
    let size = style.and_then(|style| font_size(style.as_bytes()));
    Some(Value {
        lines: text.lines().map(str::to_owned).collect(),
        size: size.unwrap_or_else(|| SIZE.min((rect.y1 - rect.y0).abs() * 0.7)),
        rect,
        is_seen: annotation.get::<f64>(b"CA").is_none_or(|opacity| opacity > 0.0),
        flow,
    })
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

/// The size in a style such as `/Helv 12 Tf 0 g`; zero leaves it to the viewer.
fn font_size(style: &[u8]) -> Option<f64> {
    let style = String::from_utf8_lossy(style);
    let words: Vec<&str> = style.split_ascii_whitespace().collect();
    let at = words.iter().position(|word| *word == "Tf")?;
    words.get(at.checked_sub(1)?)?.parse().ok().filter(|size| *size > 0.0)
}

#[cfg(test)]
mod tests {
    use super::{font_size, wrapped};

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
    fn size_of_a_field_is_read_from_its_style() {
        assert_eq!(font_size(b"0 g /Helv 9.5 Tf"), Some(9.5));
        assert_eq!(font_size(b"/Helv 0 Tf 0 g"), None);
        assert_eq!(font_size(b"Tf"), None);
    }
}
