//! A small tree of elements and its text. Elements without content are never built, so a writer can name all
//! that a standard knows and only what there is comes out.

use std::borrow::Cow;

use html_escape::encode_double_quoted_attribute;

use crate::facts::allowed;

/// One element: either text or elements inside, never both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    name: Cow<'static, str>,
    attributes: Vec<(&'static str, String)>,
    text: String,
    children: Vec<Element>,
}

/// An element with text, if there is any left once what XML forbids is gone.
pub(crate) fn leaf(name: impl Into<Cow<'static, str>>, text: Option<impl Into<String>>) -> Option<Element> {
    let text = allowed(&text?.into());
    (!text.trim().is_empty()).then(|| Element::new(name, text, Vec::new()))
}

/// An element with text that the schema demands: it is there even when the text is empty.
pub(crate) fn demanded(
    name: impl Into<Cow<'static, str>>,
    text: Option<impl Into<String>>,
) -> Option<Element> {
    let text = text.map(|text| allowed(&text.into())).unwrap_or_default();
    Some(Element::new(name, text, Vec::new()))
}

/// An element around others, if at least one of them exists.
pub(crate) fn group(
    name: impl Into<Cow<'static, str>>,
    children: impl IntoIterator<Item = Option<Element>>,
) -> Option<Element> {
    let children: Vec<Element> = children.into_iter().flatten().collect();
    (!children.is_empty()).then(|| Element::new(name, String::new(), children))
}

/// An element around others that the schema demands even when nothing is inside.
pub(crate) fn demanded_group(
    name: impl Into<Cow<'static, str>>,
    children: impl IntoIterator<Item = Option<Element>>,
) -> Element {
    Element::new(name, String::new(), children.into_iter().flatten().collect())
}

/// Attributes on an element that may not exist.
pub(crate) trait Attributed {
    /// Adds an attribute if it has a value.
    fn with(self, name: &'static str, value: Option<impl Into<String>>) -> Self;
}

impl Attributed for Element {
    fn with(mut self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        if let Some(value) = value {
            self.attributes.push((name, allowed(&value.into())));
        }
        self
    }
}

impl Attributed for Option<Element> {
    fn with(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        self.map(|element| element.with(name, value))
    }
}

impl Element {
    fn new(name: impl Into<Cow<'static, str>>, text: String, children: Vec<Element>) -> Self {
        Self { name: name.into(), attributes: Vec::new(), text, children }
    }

    /// This element with text inside.
    pub(crate) fn text(mut self, text: String) -> Self {
        self.text = text;
        self
    }

    /// The whole document: declaration, this element as its root, indented by two spaces.
    pub(crate) fn document(&self) -> Vec<u8> {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.print(0, &mut out);
        out.into_bytes()
    }

    fn print(&self, depth: usize, out: &mut String) {
        out.extend(std::iter::repeat_n("  ", depth));
        out.push('<');
        out.push_str(&self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape(value, out);
            out.push('"');
        }
        if self.text.is_empty() && self.children.is_empty() {
            out.push_str("/>\n");
            return;
        }
        out.push('>');
        if self.children.is_empty() {
            escape(&self.text, out);
        } else {
            out.push('\n');
            for child in &self.children {
                child.print(depth + 1, out);
            }
            out.extend(std::iter::repeat_n("  ", depth));
        }
        out.push_str("</");
        out.push_str(&self.name);
        out.push_str(">\n");
    }
}

/// `>` is written as a reference too: `]]>` must not stand in text. So are the white spaces that a reader of
/// attributes, or of line ends, would otherwise turn into something else.
fn escape(text: &str, out: &mut String) {
    let text = encode_double_quoted_attribute(text);
    out.push_str(&text.replace('\r', "&#13;").replace('\t', "&#9;"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let document = leaf("a", Some(text)).with("b", Some(text)).map(|element| element.document());
        let document = String::from_utf8(document.unwrap_or_default()).unwrap();
        let body = document.lines().skip(1).collect::<Vec<_>>().join("\n");
        assert_eq!(body, expected, "{text:?}");
    }

    #[test]
    fn text_is_escaped_and_what_xml_forbids_is_left_out() {
        check("a & b", r#"<a b="a &amp; b">a &amp; b</a>"#);
        check("]]>", r#"<a b="]]&gt;">]]&gt;</a>"#);
        check("<a \"x\">", r#"<a b="&lt;a &quot;x&quot;&gt;">&lt;a &quot;x&quot;&gt;</a>"#);
        check("x\u{0}\u{1}\u{b}\u{1f}\u{fffe}\u{ffff}y", r#"<a b="xy">xy</a>"#);
        check(
            "\u{5e9}\u{200f} \u{1F600}",
            "<a b=\"\u{5e9}\u{200f} \u{1F600}\">\u{5e9}\u{200f} \u{1F600}</a>",
        );
        check("\u{1}\u{2}", "");
        check("  ", "");
    }

    #[test]
    fn a_group_without_content_is_not_written_unless_it_is_demanded() {
        assert_eq!(group("a", [leaf("b", None::<String>)]), None);
        let document = demanded_group("a", [demanded("b", None::<String>)]).document();
        assert!(String::from_utf8_lossy(&document).ends_with("<a>\n  <b/>\n</a>\n"));
    }
}
