//! Form fields that have a value but no appearance: viewers write the value into the field, and so is it read here.

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

const PUSH_BUTTON: u32 = 1 << 16;
const COMBO: u32 = 1 << 17;
const PASSWORD: u32 = 1 << 13;

/// What a viewer writes into a field.
pub(crate) struct Value {
    pub(crate) lines: Vec<String>,
    pub(crate) size: f64,
    pub(crate) rect: Rect,
}

/// The value of a field that has no appearance of its own.
pub(crate) fn value(field: &Dict<'_>) -> Option<Value> {
    if field.get::<Name<'_>>(keys::SUBTYPE)?.as_ref() != b"Widget" {
        return None;
    }
    let rect = field.get::<Rect>(keys::RECT)?;
    let kind = inherited(field, b"FT")?.into_name()?;
    let flags = inherited(field, b"Ff").and_then(Object::into_i32).unwrap_or(0) as u32;
    let lines: Vec<String> = match kind.as_ref() {
        b"Tx" if flags & PASSWORD == 0 => shown(inherited(field, b"V")?).lines().map(str::to_owned).collect(),
        b"Ch" if flags & COMBO != 0 => vec![chosen(field)?],
        b"Ch" => {
            let first = inherited(field, b"TI").and_then(Object::into_i32).unwrap_or(0);
            options(field)
                .into_iter()
                .skip(usize::try_from(first).unwrap_or(0))
                .map(|(_, shown)| shown)
                .collect()
        }
        b"Btn" if flags & PUSH_BUTTON != 0 => {
            vec![shown(field.get::<Dict<'_>>(b"MK")?.get::<Object<'_>>(b"CA")?)]
        }
        _ => return None,
    };
    let size =
        inherited(field, b"DA").and_then(Object::into_string).and_then(|style| font_size(style.as_bytes()));
    let size = size.unwrap_or_else(|| SIZE.min((rect.y1 - rect.y0).abs() * 0.7));
    Some(Value { lines, size, rect })
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
        Object::String(text) => read(&text).replace('\r', "\n"),
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
    use super::font_size;

    #[test]
    fn size_of_a_field_is_read_from_its_style() {
        assert_eq!(font_size(b"0 g /Helv 9.5 Tf"), Some(9.5));
        assert_eq!(font_size(b"/Helv 0 Tf 0 g"), None);
        assert_eq!(font_size(b"Tf"), None);
    }
}
