//! The values of a result, as they stand in it.

use ode_http::App;
use ode_http::problem::Problem;
use ode_job::{Artifact, JobId};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Deserialize;
use std::collections::HashMap;

/// The namespace of results in our own form; others are not taken apart.
const NAMESPACE: &[u8] = b"urn:ode:document:1";
/// The file that says where values stand, beside the result.
const PLACES: &str = "places.json";
/// A result of this size has thousands of lines, which nobody corrects one by one.
const FILE_BYTES_MAX: i64 = 1 << 20;

pub(crate) struct ResultValues {
    /// Names or paths, and texts, in the result's order.
    pub(crate) values: Vec<(String, String)>,
    /// Where they stand, as far as that is known.
    pub(crate) places: HashMap<String, Place>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Place {
    pub(crate) page: u32,
    pub(crate) bbox: [f64; 4],
}

/// Reads the values of a job's result. None where the result is gone, too large, or in a form that is not ours.
pub(crate) async fn read_values(app: &App, job: JobId) -> Result<Option<ResultValues>, Problem> {
    let files = app.store.artifacts(job).await?;
    let file = |is_it: fn(&Artifact) -> bool| {
        files.iter().find(|file| is_it(file)).filter(|file| file.bytes <= FILE_BYTES_MAX)
    };
    let Some(result) = file(|file| file.role == "result") else { return Ok(None) };
    let values = parse(&app.blobs.get(&result.path, &result.sha256).await?);
    let places = match file(|file| file.name == PLACES) {
        Some(file) => app.blobs.get(&file.path, &file.sha256).await?,
        None => bytes::Bytes::new(),
    };
    let places = serde_json::from_slice(&places).unwrap_or_default();
    Ok((!values.is_empty()).then_some(ResultValues { values, places }))
}

/// Names and texts of the values in our own XML, in its order.
fn parse(xml: &[u8]) -> Vec<(String, String)> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().expand_empty_elements = true;
    let (mut values, mut path, mut row) = (Vec::new(), Vec::<String>::new(), 0);
    let (mut text, mut is_leaf) = (String::new(), false);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) => {
                let is_ours = |value: &[u8]| value == NAMESPACE;
                let namespace = start.try_get_attribute("xmlns").ok().flatten();
                if path.is_empty() && !namespace.is_some_and(|found| is_ours(&found.value)) {
                    return Vec::new();
                }
                let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                let is_row = path.len() == 2 && name == "row";
                row = if is_row {
                    row + 1
                } else if path.len() == 1 {
                    0
                } else {
                    row
                };
                path.push(if is_row { (row - 1).to_string() } else { name });
                (text, is_leaf) = (String::new(), true);
            }
            Event::Text(part) => text.push_str(&part.xml10_content().unwrap_or_default()),
            Event::GeneralRef(reference) => {
                let name = reference.decode().unwrap_or_default();
                text.extend(reference.resolve_char_ref().ok().flatten());
                text.push_str(quick_xml::escape::resolve_predefined_entity(&name).unwrap_or_default());
            }
            Event::End(_) => {
                let is_value = path.get(1).is_some_and(|name| name != "findings");
                if is_leaf && is_value && !text.trim().is_empty() {
                    values.push((path[1..].join("."), text.trim().to_owned()));
                }
                path.pop();
                is_leaf = false;
            }
            Event::Eof => break,
            Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::DocType(_)
            | Event::Empty(_)
            | Event::PI(_) => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<invoice xmlns="urn:ode:document:1" source="example_v1">
  <invoice_number term="BT-1">RE-2026/0815</invoice_number>
  <seller_name term="BT-27">M&#xFC;ller &amp; S&#246;hne &lt;GmbH&gt;</seller_name>
  <buyer_name/>
  <lines term="BG-25">
    <row><id>1</id><total term="BT-131">100.00</total></row>
    <row><total>20.00</total></row>
  </lines>
  <vat><row><rate>19</rate></row></vat>
  <findings><finding code="DERIVED" field="iban">This is an example.</finding></findings>
</invoice>"#;

    #[test]
    fn values_are_listed_by_the_paths_that_corrections_use() {
        let expected = [
            ("invoice_number", "RE-2026/0815"),
            ("seller_name", "Müller & Söhne <GmbH>"),
            ("lines.0.id", "1"),
            ("lines.0.total", "100.00"),
            ("lines.1.total", "20.00"),
            ("vat.0.rate", "19"),
        ];
        let expected = expected.map(|(field, text)| (field.to_owned(), text.to_owned()));
        assert_eq!(parse(XML.as_bytes()), expected);
    }

    #[test]
    fn what_is_not_ours_is_not_taken_apart() {
        for other in [
            "",
            "no XML",
            "<a><b>1</b></a>",
            "<a xmlns=\"urn:other\"><b>1</b></a>",
            "<a xmlns='urn:ode:document:1'",
        ] {
            assert_eq!(parse(other.as_bytes()), [], "{other}");
        }
        let cut = &XML[..XML.find("</lines>").unwrap()];
        assert_eq!(parse(cut.as_bytes()).len(), 5, "what was there before it ended");
    }
}
