//! A small tree out of untrusted XML: bounded in bytes, elements and depth, without document types and without
//! entities other than the five that XML itself knows.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::{NsReader, XmlVersion};

/// An embedded invoice with attached pictures stays below this; more is not an invoice.
pub(super) const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The deepest path in any of the standards has 14 elements.
const DEPTH_MAX: usize = 64;
/// Ten thousand lines with forty elements each still fit; more would need more memory than a document may have.
const ELEMENTS_MAX: usize = 500_000;

/// One element.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    /// Name without prefix.
    pub(super) name: String,
    /// Namespace of the name, at the root; the names below it are clear without.
    pub(super) namespace: String,
    pub(super) attributes: Vec<(String, String)>,
    /// Text directly inside.
    pub(super) text: String,
    pub(super) children: Vec<Node>,
}

/// Reads a document. The error is a clause that completes "it …".
pub(super) fn parse(bytes: &[u8]) -> Result<Node, String> {
    if bytes.len() > BYTES_MAX {
        let (size, limit) = (bytes.len() / 1024 / 1024, BYTES_MAX / 1024 / 1024);
        return Err(format!("has {size} MB, and the limit is {limit} MB"));
    }
    let text = decode(bytes)?;
    let mut reader = NsReader::from_str(&text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Node> = vec![Node::default()];
    let mut count = 0_usize;
    loop {
        let (namespace, event) =
            reader.read_resolved_event().map_err(|error| format!("is not XML: {error}"))?;
        match event {
            Event::Start(start) => {
                count += 1;
                if count > ELEMENTS_MAX || open.len() > DEPTH_MAX {
                    return Err("is nested too deeply or has too many elements".to_owned());
                }
                let namespace = match namespace {
                    ResolveResult::Bound(namespace) if open.len() == 1 => {
                        String::from_utf8_lossy(namespace.as_ref()).into_owned()
                    }
                    ResolveResult::Bound(_) | ResolveResult::Unbound | ResolveResult::Unknown(_) => {
                        String::new()
                    }
                };
                open.push(node(&start, namespace)?);
            }
            Event::End(_) => close(&mut open),
            Event::Text(text) => {
                push_text(&mut open, &text.xml10_content().map_err(|error| error.to_string())?)
            }
            Event::CData(text) => {
                push_text(&mut open, &text.xml10_content().map_err(|error| error.to_string())?)
            }
            Event::GeneralRef(reference) => push_text(&mut open, &resolve(&reference)?),
            Event::DocType(_) => return Err("declares a document type, which no invoice needs".to_owned()),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Empty(_) => {}
        }
    }
    if open.len() > 1 {
        return Err("ends before its last element does".to_owned());
    }
    open.pop()
        .and_then(|document| document.children.into_iter().next())
        .ok_or_else(|| "has no element".to_owned())
}

fn node(start: &BytesStart<'_>, namespace: String) -> Result<Node, String> {
    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| format!("is not XML: {error}"))?;
        let key = String::from_utf8_lossy(attribute.key.local_name().as_ref()).into_owned();
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| format!("is not XML: {error}"))?;
        attributes.push((key, value.into_owned()));
    }
    Ok(Node { name, namespace, attributes, ..Node::default() })
}

fn close(open: &mut Vec<Node>) {
    if let (Some(done), Some(parent)) = (open.pop(), open.last_mut()) {
        parent.children.push(done);
    }
}

fn push_text(open: &mut [Node], text: &str) {
    if let Some(node) = open.last_mut() {
        node.text.push_str(text);
    }
}

/// A character, or one of the five entities that need no declaration.
fn resolve(reference: &BytesRef<'_>) -> Result<String, String> {
    if let Some(letter) = reference.resolve_char_ref().map_err(|error| format!("is not XML: {error}"))? {
        return Ok(letter.to_string());
    }
    let name = reference.decode().map_err(|error| error.to_string())?;
    quick_xml::escape::resolve_predefined_entity(&name)
        .map(str::to_owned)
        .ok_or_else(|| format!("uses the entity {name}, which is not allowed"))
}

/// Text of the bytes, by byte order mark, by pattern, or by what the declaration says. UTF-8 unless told.
fn decode(bytes: &[u8]) -> Result<String, String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>().map_err(|_| "is not valid UTF-16".to_owned())
    };
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [b'<', 0, ..] => utf16(bytes, u16::from_le_bytes),
        [0, b'<', ..] => utf16(bytes, u16::from_be_bytes),
        _ => match declared_encoding(bytes).as_deref() {
            Some("iso-8859-1" | "latin1" | "us-ascii") => {
                Ok(bytes.iter().map(|&byte| char::from(byte)).collect())
            }
            Some("iso-8859-15") => {
                Ok(bytes.iter().map(|&byte| if byte == 0xA4 { '€' } else { char::from(byte) }).collect())
            }
            Some("windows-1252") => Ok(bytes.iter().map(|&byte| windows_1252(byte)).collect()),
            None | Some("utf-8" | "utf8") => utf8(bytes),
            Some(other) => Err(format!("is written in {other}, which is not supported")),
        },
    }
}

fn utf8(bytes: &[u8]) -> Result<String, String> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| "is not valid UTF-8, and it names no other encoding".to_owned())
}

/// What the XML declaration names, in lower case.
fn declared_encoding(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).to_ascii_lowercase();
    let declaration = head.strip_prefix("<?xml")?.split("?>").next()?;
    let value = declaration.split("encoding").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split(quote).next().map(str::to_owned)
}

/// The 32 characters in which it differs from Latin 1; the five bytes that stand for nothing become `?`.
fn windows_1252(byte: u8) -> char {
    const HIGH: &str = "€?‚ƒ„…†‡ˆ‰Š‹Œ?Ž??‘’“”•–—˜™š›œ?žŸ";
    match byte {
        0x80..=0x9F => HIGH.chars().nth(usize::from(byte - 0x80)).unwrap_or('?'),
        byte => char::from(byte),
    }
}

impl Node {
    /// Elements at a path below this one, in document order. A step is a name, or `name@attribute=value`.
    pub(super) fn all<'a>(&'a self, path: &str) -> Vec<&'a Node> {
        path.split('/').filter(|step| !step.is_empty()).fold(vec![self], |nodes, step| {
            let (name, wanted) =
                step.split_once('@').map_or((step, None), |(name, test)| (name, test.split_once('=')));
            let is_wanted = |node: &&Node| {
                node.name == name
                    && wanted.is_none_or(|(key, value)| node.attribute(key).as_deref() == Some(value))
            };
            nodes.into_iter().flat_map(|node| node.children.iter().filter(is_wanted)).collect()
        })
    }

    /// The first element at a path.
    pub(super) fn first(&self, path: &str) -> Option<&Node> {
        self.all(path).into_iter().next()
    }

    /// The first text at a path that is not empty; `path/@name` is the first such attribute.
    pub(super) fn value(&self, path: &str) -> Option<String> {
        match path.rsplit_once("/@") {
            Some((path, name)) => self.all(path).into_iter().find_map(|node| node.attribute(name)),
            None => self.all(path).into_iter().find_map(Node::content),
        }
    }

    /// The text inside, trimmed.
    pub(super) fn content(&self) -> Option<String> {
        let text = self.text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// An attribute that is not empty.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let (_, value) = self.attributes.iter().find(|(key, _)| key == name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }
}
