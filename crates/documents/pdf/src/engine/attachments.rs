//! Files embedded in the document: in its name tree, as associated files, and pinned to pages.

use std::collections::HashSet;

use hayro_syntax::Pdf;
use hayro_syntax::object::{Array, Dict, Name, Stream, String as PdfString};

use super::decode::Decoder;
use super::place::Place;
use super::strings::text_string;
use crate::limits::Limits;
use crate::text::Attachment;

/// Nodes of a name tree that are visited, whatever it claims.
const NODES_MAX: usize = 10_000;

/// Reads every embedded file within the limits.
pub(crate) fn read(
    pdf: &Pdf,
    decoder: &Decoder,
    limits: &Limits,
    warnings: &mut Vec<String>,
) -> Vec<Attachment> {
    let xref = pdf.xref();
    let Some(catalog) = xref.get::<Dict<'_>>(xref.root_id()) else {
        return Vec::new();
    };
    let mut collector = Collector {
        decoder,
        limits,
        seen: HashSet::new(),
        bytes_left: limits.attachment_bytes_max,
        found: Vec::new(),
        is_cut: false,
    };
    if let Some(tree) =
        catalog.get::<Dict<'_>>(b"Names").and_then(|names| names.get::<Dict<'_>>(b"EmbeddedFiles"))
    {
        collector.name_tree(tree);
    }
    collector.associated(&catalog);
    for page in pdf.pages().iter() {
        collector.associated(page.raw());
        collector.annotations(page.raw());
    }
    if collector.is_cut {
        warnings.push("Some embedded files are left out: they are too many or too large.".into());
    }
    collector.found
}

struct Collector<'c> {
    decoder: &'c Decoder,
    limits: &'c Limits,
    /// Where the streams already read lie: one file may be named in several places.
    seen: HashSet<Place>,
    bytes_left: usize,
    found: Vec<Attachment>,
    is_cut: bool,
}

impl Collector<'_> {
    fn name_tree(&mut self, root: Dict<'_>) {
        let mut nodes = vec![root];
        let mut visited = 0;
        while let Some(node) = nodes.pop() {
            visited += 1;
            if visited > NODES_MAX {
                self.is_cut = true;
                return;
            }
            // Names stand in pairs of a key and a file; the key repeats what the file says itself.
            if let Some(names) = node.get::<Array<'_>>(b"Names") {
                for specification in names.iter::<Dict<'_>>() {
                    self.file(&specification);
                }
            }
            if let Some(kids) = node.get::<Array<'_>>(b"Kids") {
                let kids: Vec<Dict<'_>> = kids.iter::<Dict<'_>>().take(NODES_MAX).collect();
                nodes.extend(kids.into_iter().rev());
            }
        }
    }

    fn associated(&mut self, holder: &Dict<'_>) {
        if let Some(files) = holder.get::<Array<'_>>(b"AF") {
            for specification in files.iter::<Dict<'_>>() {
                self.file(&specification);
            }
        }
    }

    fn annotations(&mut self, page: &Dict<'_>) {
        let Some(annotations) = page.get::<Array<'_>>(b"Annots") else {
            return;
        };
        for annotation in annotations.iter::<Dict<'_>>() {
            let is_file =
                annotation.get::<Name<'_>>(b"Subtype").is_some_and(|kind| kind.as_ref() == b"FileAttachment");
            if let Some(specification) = annotation.get::<Dict<'_>>(b"FS").filter(|_| is_file) {
                self.file(&specification);
            }
        }
    }

    fn file(&mut self, specification: &Dict<'_>) {
        let Some(embedded) = specification.get::<Dict<'_>>(b"EF") else {
            return;
        };
        let stream = [b"UF".as_slice(), b"F", b"Unix", b"DOS", b"Mac"]
            .into_iter()
            .find_map(|key| embedded.get::<Stream<'_>>(key));
        let Some(stream) = stream else {
            return;
        };
        if !self.seen.insert(Place::of(stream.dict())) {
            return;
        }
        if self.found.len() >= self.limits.attachments_max {
            self.is_cut = true;
            return;
        }
        let Some(bytes) = self.decoder.decode(&stream) else {
            self.is_cut = true;
            return;
        };
        let Some(bytes_left) = self.bytes_left.checked_sub(bytes.len()) else {
            self.is_cut = true;
            return;
        };
        self.bytes_left = bytes_left;
        let name =
            [b"UF".as_slice(), b"F"].into_iter().find_map(|key| specification.get::<PdfString<'_>>(key));
        self.found.push(Attachment {
            name: name.map(|name| text_string(name.as_bytes())).unwrap_or_default(),
            media_type: stream.dict().get::<Name<'_>>(b"Subtype").map(|kind| kind.as_str().to_owned()),
            relation: specification
                .get::<Name<'_>>(b"AFRelationship")
                .map(|relation| relation.as_str().to_owned()),
            bytes: bytes.into_owned(),
        });
    }
}
