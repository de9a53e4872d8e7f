//! Form fields of a page.

use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object};
use hayro_interpret::hayro_syntax::page::Page as Sheet;
use hayro_interpret::kurbo::{Affine, Rect};

use super::links::{area, shown};
use super::{string, word};

/// Fields inherit from their parents; a chain longer than this goes in circles.
const PARENTS_MAX: usize = 32;
/// Options of one list.
const OPTIONS_MAX: usize = 1_000;

const READ_ONLY: u32 = 1;
const REQUIRED: u32 = 1 << 1;
const MULTILINE: u32 = 1 << 12;
const PASSWORD: u32 = 1 << 13;
const RADIO: u32 = 1 << 15;
const PUSH_BUTTON: u32 = 1 << 16;
const COMBO: u32 = 1 << 17;
const MULTIPLE: u32 = 1 << 21;

/// What a field is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    Text { value: String, is_multiline: bool, is_password: bool, length_max: Option<u32> },
    Check { is_on: bool },
    Radio { is_on: bool, value: String },
    Choice { options: Vec<(String, String)>, chosen: Vec<String>, is_list: bool, is_multiple: bool },
    Button,
}

/// A field and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) area: Rect,
    pub(crate) kind: FieldKind,
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) is_read_only: bool,
    pub(crate) is_required: bool,
    /// Whether the page shows something for it by itself.
    pub(crate) has_look: bool,
}

impl Field {
    /// Whether the page has what it says: in its appearance, or written where it has none.
    pub(crate) fn is_on_page(&self) -> bool {
        let is_written = match self.kind {
            FieldKind::Text { is_password, .. } => !is_password,
            FieldKind::Button => true,
            FieldKind::Check { .. } | FieldKind::Radio { .. } | FieldKind::Choice { .. } => false,
        };
        is_written || self.has_look
    }
}

/// The fields of a page.
pub(crate) fn fields(sheet: &Sheet<'_>, to_page: Affine) -> Vec<Field> {
    shown(sheet, b"Widget").iter().filter_map(|widget| field(widget, to_page)).collect()
}

fn field(widget: &Dict<'_>, to_page: Affine) -> Option<Field> {
    let flags = inherited(widget, b"Ff").and_then(Object::into_i32).unwrap_or(0) as u32;
    let kind = inherited(widget, b"FT").and_then(|kind| word(&kind))?;
    let kind = match kind.as_str() {
        "Tx" => FieldKind::Text {
            value: if flags & PASSWORD == 0 { lines(inherited(widget, b"V")) } else { String::new() },
            is_multiline: flags & MULTILINE != 0,
            is_password: flags & PASSWORD != 0,
            length_max: inherited(widget, b"MaxLen")
                .and_then(Object::into_i32)
                .and_then(|max| max.try_into().ok()),
        },
        "Btn" if flags & PUSH_BUTTON != 0 => FieldKind::Button,
        "Btn" => {
            let state = widget.get::<Name<'_>>(b"AS").map(|state| state.as_str().to_owned());
            let on = on_state(widget);
            let state = state.or_else(|| inherited(widget, b"V").and_then(|value| word(&value)));
            let is_on =
                state.is_some_and(|state| state != "Off" && on.as_ref().is_none_or(|on| *on == state));
            match flags & RADIO {
                0 => FieldKind::Check { is_on },
                _ => FieldKind::Radio { is_on, value: on.unwrap_or_default() },
            }
        }
        "Ch" => FieldKind::Choice {
            options: options(widget),
            chosen: chosen(widget),
            is_list: flags & COMBO == 0,
            is_multiple: flags & MULTIPLE != 0,
        },
        _ => return None,
    };
    let name = full_name(widget);
    let caption = || match kind {
        FieldKind::Button => widget.get::<Dict<'_>>(b"MK").and_then(|look| string(&look, b"CA")),
        _ => None,
    };
    let label = inherited(widget, b"TU").and_then(|label| word(&label)).or_else(caption);
    let has_look = widget.get::<Dict<'_>>(b"AP").is_some_and(|looks| looks.contains_key(b"N"));
    Some(Field {
        area: area(widget, to_page)?,
        label: label
            .filter(|label| !label.is_empty())
            .or_else(|| Some(name.clone()).filter(|name| !name.is_empty()))
            .unwrap_or_else(|| "Field".into()),
        kind,
        name,
        is_read_only: flags & READ_ONLY != 0,
        is_required: flags & REQUIRED != 0,
        has_look,
    })
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

/// The field's name: those of its parents before its own.
fn full_name(field: &Dict<'_>) -> String {
    let mut names = Vec::new();
    let mut next = Some(field.clone());
    for _ in 0..PARENTS_MAX {
        let Some(field) = next else { break };
        names.extend(string(&field, b"T"));
        next = field.get::<Dict<'_>>(b"Parent");
    }
    names.reverse();
    names.join(".")
}

/// The state of a check box or radio button that is not off.
fn on_state(widget: &Dict<'_>) -> Option<String> {
    let states = widget.get::<Dict<'_>>(b"AP")?.get::<Dict<'_>>(b"N")?;
    let mut names = states.keys();
    names.find(|state| state.as_ref() != b"Off").map(|state| state.as_str().to_owned())
}

fn lines(value: Option<Object<'_>>) -> String {
    match value {
        Some(Object::String(value)) => {
            let bytes = &value.as_bytes()[..value.as_bytes().len().min(50_000)];
            ode_pdf::trace::text_string(bytes).replace("\r\n", "\n").replace('\r', "\n")
        }
        _ => String::new(),
    }
}

fn options(field: &Dict<'_>) -> Vec<(String, String)> {
    let Some(Object::Array(list)) = inherited(field, b"Opt") else {
        return Vec::new();
    };
    let option = |option: Object<'_>| match option {
        Object::Array(pair) => {
            let mut pair = pair.iter::<Object<'_>>().filter_map(|part| word(&part));
            let sent = pair.next()?;
            let label = pair.next().unwrap_or_else(|| sent.clone());
            Some((sent, label))
        }
        option => word(&option).map(|text| (text.clone(), text)),
    };
    list.iter::<Object<'_>>().take(OPTIONS_MAX).filter_map(option).collect()
}

fn chosen(field: &Dict<'_>) -> Vec<String> {
    match inherited(field, b"V") {
        Some(Object::Array(values)) => values_of(&values),
        Some(value) => word(&value).into_iter().collect(),
        None => Vec::new(),
    }
}

fn values_of(values: &Array<'_>) -> Vec<String> {
    values.iter::<Object<'_>>().take(OPTIONS_MAX).filter_map(|value| word(&value)).collect()
}
