//! Links and form fields over a page.

use std::fmt::Write as _;

use crate::document::{Field, FieldKind, Link, Target};
use crate::page::Draft;
use crate::text::{Styles, escape};

/// Type in a field is this high, of the field and in points at most.
const TYPE_SHARE: f64 = 0.65;
const TYPE_MAX: f64 = 12.0;

/// Writes a page's links and fields.
pub(crate) fn write(page: &Draft, pages: &[Draft], styles: &mut Styles, out: &mut String) {
    for link in &page.links {
        write_link(link, page, pages, styles, out);
    }
    for field in &page.fields {
        write_field(field, styles, out);
    }
}

fn write_link(link: &Link, page: &Draft, pages: &[Draft], styles: &mut Styles, out: &mut String) {
    let (address, more) = match &link.target {
        Target::Page(number) if pages.iter().any(|page| page.number == *number) => {
            (format!("#page-{number}"), "")
        }
        Target::Page(_) => return,
        Target::Address(address) => (address.clone(), " rel=\"noopener noreferrer nofollow\""),
    };
    let place = styles.place(link.area);
    let _ = write!(out, "<a class=\"{place}\" href=\"");
    escape(&address, out);
    let _ = write!(out, "\"{more} aria-label=\"");
    let label = link.label.clone().filter(|label| !label.is_empty()).or_else(|| text_under(link, page));
    escape(label.as_deref().unwrap_or(&address), out);
    out.push_str("\"></a>\n");
}

/// The words that a link lies over.
fn text_under(link: &Link, page: &Draft) -> Option<String> {
    let mut text = String::new();
    let area = link.area;
    for line in page.blocks.iter().flatten() {
        let (sin, cos) = f64::from(line.angle).to_radians().sin_cos();
        for mark in &line.marks {
            let along = f64::from((mark.from + mark.width / 2.0) * line.stretch);
            let across = f64::from(mark.down - mark.size / 3.0);
            let x = f64::from(line.start.0) + along * cos - across * sin;
            let y = f64::from(line.start.1) + along * sin + across * cos;
            if area.contains((x, y)) && text.len() < 500 {
                if mark.is_after_space && !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(&mark.text);
            }
        }
    }
    Some(text).filter(|text| !text.trim().is_empty())
}

fn write_field(field: &Field, styles: &mut Styles, out: &mut String) {
    let size = (field.area.height() * TYPE_SHARE).clamp(2.0, TYPE_MAX);
    // What the page shows by itself is only covered once somebody changes it.
    let shown = if field.is_on_page() { "" } else { " e" };
    let class = format!("i{shown} {} {}", styles.place(field.area), styles.type_size(size));
    let mut common = format!(" class=\"{class}\" name=\"");
    escape(&field.name, &mut common);
    common.push_str("\" aria-label=\"");
    escape(&field.label, &mut common);
    common.push('"');
    if field.is_required {
        common.push_str(" required");
    }
    match &field.kind {
        FieldKind::Text { value, is_multiline, is_password, length_max } => {
            if field.is_read_only {
                common.push_str(" readonly");
            }
            if let Some(max) = length_max {
                let _ = write!(common, " maxlength=\"{max}\"");
            }
            if *is_multiline {
                // Browsers leave out the first line end, so there is one that is not the value's.
                let _ = writeln!(out, "<textarea{common}>");
                escape_lines(value, out);
                out.push_str("</textarea>");
            } else {
                let kind = if *is_password { "password" } else { "text" };
                let _ = write!(out, "<input type=\"{kind}\"{common} autocomplete=\"off\" value=\"");
                escape(value, out);
                out.push_str("\">");
            }
        }
        FieldKind::Check { is_on } => tick("checkbox", &ticked(common, field, *is_on), "", out),
        FieldKind::Radio { is_on, value } => tick("radio", &ticked(common, field, *is_on), value, out),
        FieldKind::Choice { options, chosen, is_list, is_multiple } => {
            let size =
                if *is_list { format!(" size=\"{}\"", options.len().clamp(2, 20)) } else { String::new() };
            let multiple = if *is_multiple { " multiple" } else { "" };
            let disabled = if field.is_read_only { " disabled" } else { "" };
            let _ = write!(out, "<select{common}{size}{multiple}{disabled}>");
            for (value, label) in options {
                let selected =
                    if chosen.contains(value) || chosen.contains(label) { " selected" } else { "" };
                out.push_str("<option value=\"");
                escape(value, out);
                // As an attribute it is shown, but not found again as text of the page.
                out.push_str("\" label=\"");
                escape(label, out);
                let _ = write!(out, "\"{selected}></option>");
            }
            out.push_str("</select>");
        }
        // What is written on it is on the page already.
        FieldKind::Button => {
            let _ = write!(out, "<button type=\"button\"{common}></button>");
        }
    }
    out.push('\n');
}

/// The attributes of something to tick.
fn ticked(mut common: String, field: &Field, is_on: bool) -> String {
    if is_on {
        common.push_str(" checked");
    }
    if field.is_read_only {
        common.push_str(" disabled");
    }
    common
}

fn tick(kind: &str, attributes: &str, value: &str, out: &mut String) {
    let _ = write!(out, "<input type=\"{kind}\"{attributes} value=\"");
    escape(value, out);
    out.push_str("\">");
}

fn escape_lines(text: &str, out: &mut String) {
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        escape(line, out);
    }
}
