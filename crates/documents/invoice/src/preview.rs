//! A page to look at: the document's text where it stands, and a box around every value that was read, with the rule
//! and the confidence beside it. One HTML file without scripts, so it can be opened from anywhere.

use std::fmt::Write;

use html_escape::encode_double_quoted_attribute;
use ode_pdf::{Document, Page, Rect};

use crate::engine::Extraction;
use crate::facts::plain;
use crate::record::{Record, Value};

/// Pages drawn at most; a preview is for looking, not for archiving.
const PAGES_MAX: usize = 50;
/// Words drawn per page at most.
const WORDS_MAX: usize = 20_000;
/// Colours of the boxes by confidence: sure, fair, weak.
const COLOURS: [(f32, &str); 3] = [(0.9, "#1a7f37"), (0.75, "#9a6700"), (0.0, "#cf222e")];

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem;color:#1f2328;background:#fff}\
    svg{width:100%;height:auto;border:1px solid #d0d7de;margin:1rem 0;background:#fff}\
    table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #d0d7de;vertical-align:top}\
    text{font-family:sans-serif;fill:#57606a}.label{font-weight:600;font-size:7px}";

/// The preview as one HTML file.
#[must_use]
pub fn preview(document: &Document, extraction: &Extraction) -> String {
    let record = &extraction.record;
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style></head>\
         <body><h1>Read by {0}</h1>\n",
        escape(&extraction.mapping)
    );
    findings(&mut html, record);
    values(&mut html, extraction);
    for page in document.pages.iter().take(PAGES_MAX) {
        draw(&mut html, page, record);
    }
    html.push_str("</body></html>\n");
    html
}

fn findings(html: &mut String, record: &Record) {
    if record.findings.is_empty() {
        return;
    }
    html.push_str("<h2>Findings</h2><ul>");
    for finding in &record.findings {
        push(html, format_args!("<li>{} ({})</li>", escape(&finding.message), finding.code));
    }
    html.push_str("</ul>\n");
}

fn values(html: &mut String, extraction: &Extraction) {
    html.push_str(
        "<h2>Values</h2><table><thead><tr><th>Field</th><th>Value</th><th>Printed</th><th>Why</th>\
         <th>Confidence</th><th>Not taken</th></tr></thead><tbody>\n",
    );
    for (name, field) in &extraction.record.fields {
        let value = &field.value;
        let others = extraction.others.get(name).map(Vec::as_slice).unwrap_or_default();
        let others: Vec<String> = others.iter().map(|v| plain(&v.typed)).collect();
        push(
            html,
            format_args!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.0} %</td><td>{}</td></tr>\n",
                escape(name),
                escape(&plain(&value.typed)),
                escape(&value.printed),
                escape(&value.rule),
                value.confidence * 100.0,
                escape(&others.join(", ")),
            ),
        );
    }
    html.push_str("</tbody></table>\n");
}

fn draw(html: &mut String, page: &Page, record: &Record) {
    push(
        html,
        format_args!(
            "<h2>Page {0}</h2><svg viewBox=\"0 0 {1:.1} {2:.1}\" role=\"img\" aria-label=\"Page {0} with boxes around its values\">\n",
            page.number, page.width, page.height
        ),
    );
    for word in page.words.iter().take(WORDS_MAX).filter(|w| w.rotation == 0) {
        push(
            html,
            format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>\n",
                word.bbox.x0,
                word.bbox.y1 - 0.2 * word.font_size,
                word.font_size.max(1.0),
                (word.bbox.x1 - word.bbox.x0).max(1.0),
                escape(&word.text),
            ),
        );
    }
    for (name, field) in &record.fields {
        mark(html, page.number, name, &field.value);
    }
    for (table, rows) in record.tables.iter().map(|(name, t)| (name, &t.rows)) {
        for (at, row) in rows.iter().enumerate() {
            for (column, cell) in row {
                mark(html, page.number, &format!("{table} {} {column}", at + 1), &cell.value);
            }
        }
    }
    html.push_str("</svg>\n");
}

fn mark(html: &mut String, page: u32, name: &str, value: &Value) {
    let Some(place) = value.place.filter(|p| p.page == page) else { return };
    let Rect { x0, y0, x1, y1 } = place.bbox;
    let colour = COLOURS.iter().find(|(least, _)| value.confidence >= *least).map_or("#cf222e", |(_, c)| c);
    push(
        html,
        format_args!(
            "<g><title>{}: {} ({})</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" \
             fill-opacity=\"0.12\" stroke=\"{colour}\" stroke-width=\"0.7\"/><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" \
             style=\"fill:{colour}\">{}</text></g>\n",
            escape(name),
            escape(&plain(&value.typed)),
            escape(&value.rule),
            x0 - 1.0,
            y0 - 1.0,
            x1 - x0 + 2.0,
            y1 - y0 + 2.0,
            x0,
            y0 - 1.5,
            escape(name),
        ),
    );
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    html.write_fmt(text).expect("a string takes any text");
}

fn escape(text: &str) -> String {
    // Control characters are not allowed in HTML and show nothing.
    let shown: String = text.chars().filter(|c| !c.is_control()).collect();
    encode_double_quoted_attribute(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Field, Place, Typed};
    use crate::sheet::tests::page;

    #[test]
    fn a_value_gets_a_box_and_nothing_on_the_page_becomes_markup() {
        let document = page(&[("<script>alert(1)</script>", 50.0, 50.0)]);
        let bbox = Rect { x0: 50.0, y0: 50.0, x1: 90.0, y1: 60.0 };
        let value = Value {
            typed: Typed::Text("<b>".into()),
            printed: "<b>".into(),
            place: Some(Place { page: 1, bbox }),
            rule: "right of “No”".into(),
            confidence: 0.95,
        };
        let mut extraction = Extraction { mapping: "note_v1".into(), ..Extraction::default() };
        extraction.record.fields.insert("number".into(), Field { term: None, value });
        let html = preview(&document, &extraction);
        assert!(html.contains("<rect x=\"49.0\""), "{html}");
        assert!(!html.contains("<script") && !html.contains("<b>"), "{html}");
    }
}
