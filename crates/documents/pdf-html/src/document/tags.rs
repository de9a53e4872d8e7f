//! The structure of a tagged document.

use std::collections::{HashMap, HashSet};

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Dict, Name, Object, ObjectIdentifier};
use ode_pdf::trace::Content;

use super::{catalog, is_language, place, string};

/// Elements of the structure that are read.
const NODES_MAX: usize = 200_000;
/// Levels of the structure.
const DEPTH_MAX: usize = 64;
/// Roles that stand for other roles, one after another.
const ROLES_MAX: usize = 8;

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Group,
    Paragraph,
    /// From 1 to 6.
    Heading(u8),
    List,
    Item,
    Label,
    ItemBody,
    Table,
    TableHead,
    TableBody,
    TableFoot,
    Row,
    HeadCell,
    Cell,
    Figure,
    Caption,
    Quote,
    Code,
    Note,
    Inline,
    Artifact,
}

/// What an element holds, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kid {
    Node(usize),
    /// Content of a page, counted from 1.
    Content(u32, Content),
}

/// An element of the structure.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) role: Role,
    pub(crate) alt: Option<String>,
    pub(crate) language: Option<String>,
    /// Columns and rows that a cell goes over.
    pub(crate) span: (u32, u32),
    /// What a head cell is the head of.
    pub(crate) scope: Option<&'static str>,
    pub(crate) kids: Vec<Kid>,
    /// The page that the element says it is on, counted from 1.
    pub(crate) page: Option<u32>,
}

/// The structure. The first node is its root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tags {
    pub(crate) nodes: Vec<Node>,
}

impl Tags {
    /// Reads the structure; it has no nodes when the document is not tagged.
    pub(crate) fn read(pdf: &Pdf) -> Self {
        let Some(root) = catalog(pdf).and_then(|catalog| catalog.get::<Dict<'_>>(b"StructTreeRoot")) else {
            return Self::default();
        };
        let pages = pdf.pages().iter().enumerate();
        let pages =
            pages.filter_map(|(index, page)| Some((page.raw().obj_id()?, index as u32 + 1))).collect();
        let mut reader = Reader {
            tags: Self::default(),
            roles: root.get::<Dict<'_>>(b"RoleMap").unwrap_or_default(),
            pages,
            seen: HashSet::new(),
        };
        reader.tags.nodes.push(Node {
            role: Role::Group,
            alt: None,
            language: None,
            span: (1, 1),
            scope: None,
            kids: Vec::new(),
            page: None,
        });
        let kids = reader.kids(&root, None, 0);
        reader.tags.nodes[0].kids = kids;
        reader.tags
    }
}

struct Reader<'a> {
    tags: Tags,
    roles: Dict<'a>,
    pages: HashMap<ObjectIdentifier, u32>,
    seen: HashSet<(usize, usize)>,
}

impl Reader<'_> {
    fn page_of(&self, dict: &Dict<'_>) -> Option<u32> {
        self.pages.get(&dict.get_ref(b"Pg")?.into()).copied()
    }

    fn kids(&mut self, element: &Dict<'_>, page: Option<u32>, depth: usize) -> Vec<Kid> {
        if depth > DEPTH_MAX {
            return Vec::new();
        }
        let kids: Vec<Object<'_>> = match element.get::<Object<'_>>(b"K") {
            Some(Object::Array(kids)) => kids.iter::<Object<'_>>().take(NODES_MAX).collect(),
            Some(kid) => vec![kid],
            None => Vec::new(),
        };
        kids.into_iter().filter_map(|kid| self.kid(&kid, page, depth)).collect()
    }

    fn kid(&mut self, kid: &Object<'_>, page: Option<u32>, depth: usize) -> Option<Kid> {
        let dict = match kid {
            Object::Number(number) => {
                let number = i32::try_from(number.as_i64()).ok()?;
                return Some(Kid::Content(page?, Content::Marked { number, form: None }));
            }
            Object::Dict(dict) => dict,
            _ => return None,
        };
        let kind = dict.get::<Name<'_>>(b"Type");
        match kind.as_ref().map(AsRef::as_ref) {
            Some(b"MCR") => {
                let number = dict.get::<i32>(b"MCID")?;
                let form = dict.get_ref(b"Stm").map(|form| ObjectIdentifier::from(form).obj_number);
                Some(Kid::Content(self.page_of(dict).or(page)?, Content::Marked { number, form }))
            }
            Some(b"OBJR") => None,
            _ => self.node(dict, page, depth).map(Kid::Node),
        }
    }

    fn node(&mut self, element: &Dict<'_>, page: Option<u32>, depth: usize) -> Option<usize> {
        // An element that comes again would come for ever.
        let is_new = self.seen.insert(place(element));
        if !is_new || self.tags.nodes.len() >= NODES_MAX {
            return None;
        }
        let role = self.role(element)?;
        let page = self.page_of(element).or(page);
        let index = self.tags.nodes.len();
        let alt = string(element, b"Alt").filter(|alt| !alt.is_empty());
        let language = string(element, b"Lang").filter(|language| is_language(language));
        let span = (span(element, b"ColSpan"), span(element, b"RowSpan"));
        let scope = scope(element);
        self.tags.nodes.push(Node { role, alt, language, span, scope, kids: Vec::new(), page });
        let kids = self.kids(element, page, depth + 1);
        self.tags.nodes[index].kids = kids;
        Some(index)
    }

    fn role(&self, element: &Dict<'_>) -> Option<Role> {
        let mut name = element.get::<Name<'_>>(b"S")?.as_str().to_owned();
        for _ in 0..ROLES_MAX {
            if let Some(role) = standard(&name) {
                return Some(role);
            }
            match self.roles.get::<Name<'_>>(name.as_bytes()) {
                Some(other) => name = other.as_str().to_owned(),
                None => break,
            }
        }
        Some(Role::Inline)
    }
}

/// One of an element's attributes, of which there may be several sets.
fn attribute<'a>(element: &Dict<'a>, key: &[u8]) -> Option<Object<'a>> {
    match element.get::<Object<'_>>(b"A")? {
        Object::Dict(set) => set.get(key),
        Object::Array(sets) => sets.iter::<Object<'_>>().take(16).find_map(|set| set.into_dict()?.get(key)),
        _ => None,
    }
}

fn span(element: &Dict<'_>, key: &[u8]) -> u32 {
    let span = attribute(element, key).and_then(Object::into_i32).and_then(|span| u32::try_from(span).ok());
    span.unwrap_or(1).clamp(1, 1_000)
}

fn scope(element: &Dict<'_>) -> Option<&'static str> {
    match attribute(element, b"Scope")?.into_name()?.as_ref() {
        b"Row" => Some("row"),
        // There is no word for heads of both; those of columns come first.
        b"Column" | b"Both" => Some("col"),
        _ => None,
    }
}

fn standard(name: &str) -> Option<Role> {
    Some(match name {
        "Document" | "DocumentFragment" | "Part" | "Art" | "Sect" | "Div" | "NonStruct" | "Private"
        | "Index" | "Aside" | "Form" => Role::Group,
        "P" | "BibEntry" | "FENote" => Role::Paragraph,
        "H" | "Title" => Role::Heading(if name == "H" { 2 } else { 1 }),
        "H1" => Role::Heading(1),
        "H2" => Role::Heading(2),
        "H3" => Role::Heading(3),
        "H4" => Role::Heading(4),
        "H5" => Role::Heading(5),
        "H6" => Role::Heading(6),
        "L" | "TOC" => Role::List,
        "LI" | "TOCI" => Role::Item,
        "Lbl" => Role::Label,
        "LBody" => Role::ItemBody,
        "Table" => Role::Table,
        "THead" => Role::TableHead,
        "TBody" => Role::TableBody,
        "TFoot" => Role::TableFoot,
        "TR" => Role::Row,
        "TH" => Role::HeadCell,
        "TD" => Role::Cell,
        "Figure" | "Formula" => Role::Figure,
        "Caption" => Role::Caption,
        "BlockQuote" => Role::Quote,
        "Code" => Role::Code,
        "Note" => Role::Note,
        "Span" | "Quote" | "Reference" | "Link" | "Annot" | "Em" | "Strong" | "Sub" | "Ruby" | "RB"
        | "RT" | "RP" | "Warichu" | "WT" | "WP" => Role::Inline,
        "Artifact" => Role::Artifact,
        // Later versions count headings on and on.
        deeper => match deeper.strip_prefix('H').map(str::parse::<u32>) {
            Some(Ok(7..)) => Role::Heading(6),
            _ => return None,
        },
    })
}
