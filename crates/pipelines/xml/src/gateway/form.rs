//! The form that a document comes in: read within bounds, and refused as soon as it is known to be wrong.

use crate::LiveConverter;
use crate::conversion::ask::{Ask, Places, To};
use crate::request::AUTO;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use ode_http::form::{Field, Form, Unread};
use ode_http::problem::Problem;
use ode_job::{ErrorCode, Failure};

/// The mapping where none is named.
const MAPPING: &str = "pt_simon_invoice_v1";
/// What a form holds besides its document: other fields, and the lines between them.
const FRAME_BYTES_MAX: u64 = 64 << 10;
/// A mapping's name is the longest of the other fields.
const TEXT_BYTES_MAX: usize = 200;

/// Of a name that is not known, so much is repeated.
const NAME_SHOWN_MAX: usize = 40;

const FIELDS: &str = "It takes file, mapping, output and provenance, each once.";

/// Reads the form: what to make of a document, and the document. Only mappings that this converter has are taken.
pub(super) async fn read(request: Request, converter: &LiveConverter) -> Result<(Ask, Bytes), Problem> {
    let bytes_max = converter.bytes_max();
    if request.uri().query().is_some_and(|query| !query.is_empty()) {
        let message = "Put nothing behind the ? of the address. Send mapping, output and provenance as fields of the form.";
        return Err(Problem::invalid(message));
    }
    if declared_bytes(request.headers()).is_some_and(|bytes| bytes > bytes_max + FRAME_BYTES_MAX) {
        return Err(too_large(bytes_max));
    }
    let mut form = Form::of(request, bytes_max + FRAME_BYTES_MAX).ok_or_else(|| {
        Problem::invalid("Send the document as multipart/form-data with a boundary, in a field named file.")
    })?;
    let (mut document, mut mapping, mut output, mut provenance) = (None, None, None, None);
    // No field comes twice, so that there are no more rounds than fields.
    while let Some(mut field) = form.next_field().await.map_err(|error| unread(error, bytes_max))? {
        let name = field.name().to_owned();
        let is_first = match name.as_str() {
            "file" => document.replace(file(&mut field, bytes_max).await?).is_none(),
            "mapping" => mapping.replace(text(&mut field, bytes_max).await?).is_none(),
            "output" => output.replace(text(&mut field, bytes_max).await?).is_none(),
            "provenance" => provenance.replace(flag(&text(&mut field, bytes_max).await?)?).is_none(),
            _ => {
                let shown: String = name.chars().filter(|c| !c.is_control()).take(NAME_SHOWN_MAX).collect();
                return Err(Problem::invalid(format!(
                    "The form has a field \"{shown}\" that is not known. {FIELDS}"
                )));
            }
        };
        if !is_first {
            return Err(Problem::invalid(format!("The form has the field {name} twice. {FIELDS}")));
        }
    }
    let document =
        document.ok_or_else(|| Problem::invalid("The form has no field named file, which holds the PDF."))?;
    let mapping = mapping.filter(|name| !name.is_empty()).unwrap_or_else(|| MAPPING.to_owned());
    let mapping = (mapping != AUTO).then_some(mapping);
    mapping.as_deref().map_or(Ok(()), |name| converter.check_mapping(name))?;
    let output = output.filter(|output| !output.is_empty()).map(|output| output.parse()).transpose();
    let output = output.map_err(|message: String| Failure::rejected(ErrorCode::Invalid, message))?;
    let ask = Ask {
        to: To::Xml,
        mapping,
        output: output.unwrap_or_default(),
        page_only: false,
        places: if provenance == Some(true) { Places::Within } else { Places::Untold },
    };
    Ok((ask, document))
}

fn declared_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn file(field: &mut Field<'_>, bytes_max: u64) -> Result<Bytes, Problem> {
    let mut document = BytesMut::new();
    while let Some(chunk) = field.piece().await.map_err(|error| unread(error, bytes_max))? {
        if (document.len() + chunk.len()) as u64 > bytes_max {
            return Err(too_large(bytes_max));
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document.freeze())
}

async fn text(field: &mut Field<'_>, bytes_max: u64) -> Result<String, Problem> {
    let mut text = Vec::new();
    while let Some(chunk) = field.piece().await.map_err(|error| unread(error, bytes_max))? {
        if text.len() + chunk.len() > TEXT_BYTES_MAX {
            return Err(Problem::invalid(format!(
                "A field besides file is longer than {TEXT_BYTES_MAX} characters. {FIELDS}"
            )));
        }
        text.extend_from_slice(&chunk);
    }
    String::from_utf8(text).map_err(|_| Problem::invalid("A field besides file is not text in UTF-8."))
}

fn flag(text: &str) -> Result<bool, Problem> {
    match text {
        "true" => Ok(true),
        "false" | "" => Ok(false),
        _ => Err(Problem::invalid("The field provenance is either true or false.")),
    }
}

fn unread(error: Unread, bytes_max: u64) -> Problem {
    match error {
        Unread::TooLarge => too_large(bytes_max),
        Unread::Damaged => Problem::invalid("The form is damaged or ends early. Send it again."),
    }
}

fn too_large(bytes_max: u64) -> Problem {
    let message = format!(
        "This file is larger than {} MB, which is the limit. Split it, or save it with smaller pictures.",
        bytes_max >> 20
    );
    Failure::rejected(ErrorCode::TooLarge, message).into()
}
