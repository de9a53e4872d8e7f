//! The text of a page as a document: headings, paragraphs, lists and tables, by its tags or by its looks.

use std::collections::HashMap;
use std::fmt::Write as _;

use ode_pdf::trace::Content;

use crate::document::{Kid, Node, Role, Tags};
use crate::page::Draft;
use crate::text::{Faces, Line, Mark, Sound, Styles, escape, write_line};

/// A heading is set in type larger than the text by this much.
const HEADING_RATIO: f32 = 1.15;
/// Lines and letters that a heading has at most.
const HEADING_LINES_MAX: usize = 3;
const HEADING_LETTERS_MAX: usize = 200;
/// Levels of headings that are told apart by their size.
const LEVELS: usize = 3;

/// Writes the text of pages.
pub(crate) struct Writer<'w> {
    pub(crate) faces: &'w Faces,
    pub(crate) styles: &'w mut Styles,
    tags: &'w Tags,
    parents: Vec<usize>,
    /// The element that each content belongs to, by page.
    owners: HashMap<(u32, Content), usize>,
    /// Elements that belong to a page although nothing of theirs is text, by page.
    bare: HashMap<u32, Vec<usize>>,
    /// Sizes of headings, the largest first, in halves of a point.
    sizes: Vec<i32>,
    pub(crate) has_top_heading: bool,
}

/// What of the structure is on the page at hand.
struct Here {
    /// For each element whether anything of it is.
    is_here: Vec<bool>,
    /// The lines that each element has itself.
    lines: HashMap<usize, Vec<Line>>,
}

/// What may stand where an element is written.
#[derive(Clone, Copy, PartialEq)]
enum Room {
    /// Anything.
    Block,
    /// Only words.
    Words,
    /// Only items.
    List,
    /// Only parts of a table.
    Table,
    /// Only rows.
    Rows,
    /// Only cells.
    Cells,
}

impl<'w> Writer<'w> {
    pub(crate) fn new(faces: &'w Faces, styles: &'w mut Styles, tags: &'w Tags, pages: &[Draft]) -> Self {
        let mut parents = vec![0; tags.nodes.len()];
        for (index, node) in tags.nodes.iter().enumerate() {
            for kid in &node.kids {
                if let Kid::Node(kid) = kid {
                    parents[*kid] = index;
                }
            }
        }
        let first_page = pages.first().map_or(1, |page| page.number);
        let mut writer = Self {
            faces,
            styles,
            tags,
            parents,
            owners: HashMap::new(),
            bare: HashMap::new(),
            sizes: heading_sizes(pages),
            has_top_heading: false,
        };
        for (index, node) in tags.nodes.iter().enumerate() {
            let owner = writer.block_of(index);
            let mut is_placed = node.kids.iter().any(|kid| matches!(kid, Kid::Node(_)));
            for kid in &node.kids {
                if let Kid::Content(page, content) = kid {
                    writer.owners.insert((*page, *content), owner);
                    writer.bare.entry(*page).or_default().push(owner);
                    is_placed = true;
                }
            }
            if !is_placed && index > 0 {
                writer.bare.entry(node.page.unwrap_or(first_page)).or_default().push(index);
            }
        }
        writer
    }

    /// The nearest element around this one that is more than a few words within another.
    fn block_of(&self, mut index: usize) -> usize {
        while index != 0 && matches!(self.tags.nodes[index].role, Role::Inline | Role::Label) {
            index = self.parents[index];
        }
        index
    }

    pub(crate) fn page(&mut self, page: &Draft, out: &mut String) {
        if self.tags.nodes.len() < 2 {
            for block in &page.blocks {
                self.block(block, out);
            }
            return;
        }
        let mut lines: HashMap<usize, Vec<Line>> = HashMap::new();
        let mut rest: Vec<Vec<Line>> = Vec::new();
        for block in &page.blocks {
            let mut others = Vec::new();
            for line in block {
                self.share_out(page.number, line, &mut lines, &mut others);
            }
            if !others.is_empty() {
                rest.push(others);
            }
        }
        let mut is_here = vec![false; self.tags.nodes.len()];
        let bare = self.bare.get(&page.number).into_iter().flatten().copied();
        for mut index in lines.keys().copied().chain(bare) {
            while !is_here[index] {
                is_here[index] = true;
                index = self.parents[index];
            }
        }
        if is_here[0] {
            self.inside(0, &mut Here { is_here, lines }, Room::Block, out);
        }
        for block in rest {
            self.paragraph(&block, "p", out);
        }
    }

    /// Gives each part of a line to the element that it belongs to.
    fn share_out(
        &self,
        page: u32,
        line: &Line,
        lines: &mut HashMap<usize, Vec<Line>>,
        others: &mut Vec<Line>,
    ) {
        let owner = |content: Content| self.owners.get(&(page, content)).copied();
        let mut from = 0;
        while from < line.marks.len() {
            let here = owner(line.marks[from].content);
            let same = line.marks[from..].iter().take_while(|mark| owner(mark.content) == here).count();
            let part = if same == line.marks.len() { line.clone() } else { line.part(from..from + same) };
            match here {
                Some(here) => lines.entry(here).or_default().push(part),
                None => others.push(part),
            }
            from += same;
        }
    }

    /// Writes what is inside of an element: its own lines where the first of them comes, and its kids.
    fn inside(&mut self, index: usize, here: &mut Here, room: Room, out: &mut String) {
        let kids = self.tags.nodes[index].kids.clone();
        for kid in kids {
            match kid {
                Kid::Content(..) => self.own_lines(index, here, room, out),
                Kid::Node(kid) => match self.tags.nodes[kid].role {
                    Role::Inline | Role::Label => {
                        self.own_lines(index, here, room, out);
                        self.inside_inline(kid, here, room, out);
                    }
                    _ if here.is_here[kid] => self.element(kid, here, room, out),
                    _ => {}
                },
            }
        }
        self.own_lines(index, here, room, out);
    }

    /// Elements that are more than words may stand in one that is not.
    fn inside_inline(&mut self, index: usize, here: &mut Here, room: Room, out: &mut String) {
        let kids = self.tags.nodes[index].kids.clone();
        for kid in kids {
            let Kid::Node(kid) = kid else { continue };
            match self.tags.nodes[kid].role {
                Role::Inline | Role::Label => self.inside_inline(kid, here, room, out),
                _ if here.is_here[kid] => self.element(kid, here, room, out),
                _ => {}
            }
        }
    }

    fn own_lines(&mut self, index: usize, here: &mut Here, room: Room, out: &mut String) {
        let Some(own) = here.lines.remove(&index) else {
            return;
        };
        let (open, close) = match room {
            Room::Block | Room::Words => ("", ""),
            Room::List => ("<li>", "</li>"),
            Room::Table | Room::Rows => ("<tr><td>", "</td></tr>"),
            Room::Cells => ("<td>", "</td>"),
        };
        out.push_str(open);
        self.lines(&own, out);
        out.push_str(close);
    }

    fn lines(&mut self, lines: &[Line], out: &mut String) {
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                out.push_str("<br>\n");
            }
            self.line(line, out);
        }
    }

    /// Writes a line. What a field shows is there to be seen, found and copied; it is heard from the field itself.
    fn line(&mut self, line: &Line, out: &mut String) {
        let mut from = 0;
        for part in line.marks.chunk_by(|one, two| is_field(one) == is_field(two)) {
            let sound = if is_field(&part[0]) { Sound::Silent } else { Sound::Heard };
            let to = from + part.len();
            if part.len() == line.marks.len() {
                write_line(line, sound, (self.faces, self.styles), out);
            } else {
                // Between the parts a space would be lost: each of them has its own place on the page.
                let is_before_space = line.marks.get(to).is_some_and(|next| next.is_after_space);
                let part = Line { is_before_space, ..line.part(from..to) };
                write_line(&part, sound, (self.faces, self.styles), out);
            }
            from = to;
        }
    }

    fn element(&mut self, index: usize, here: &mut Here, room: Room, out: &mut String) {
        let node = &self.tags.nodes[index];
        let (tag, inner) = self.tag(index, room);
        // Something that may not stand here is put into what may.
        let (before, after) = around(tag, room);
        let attributes = attributes(node, tag);
        self.has_top_heading |= tag == "h1";
        // A picture is heard as its description alone; beside a caption, the description is a picture of its own.
        match picture(node) {
            Some(picture) if self.has_caption(index) => {
                let _ = write!(out, "{before}<{tag}{attributes}><span{picture}></span>");
            }
            picture => {
                let _ = write!(out, "{before}<{tag}{attributes}{}>", picture.unwrap_or_default());
            }
        }
        self.inside(index, here, inner, out);
        let _ = write!(out, "</{tag}>{after}");
        out.push('\n');
    }

    /// The tag of an element, and what may stand in it.
    fn tag(&self, index: usize, room: Room) -> (&'static str, Room) {
        let node = &self.tags.nodes[index];
        if room == Room::Words {
            return ("span", Room::Words);
        }
        let parent = self.tags.nodes[self.parents[index]].role;
        match node.role {
            Role::Heading(level) => {
                (["h1", "h2", "h3", "h4", "h5", "h6"][usize::from(level - 1) % 6], Room::Words)
            }
            Role::Paragraph if self.has_blocks(index) => ("div", Room::Block),
            Role::Paragraph => ("p", Room::Words),
            Role::List => ("ul", Room::List),
            Role::Item if room == Room::List => ("li", Room::Block),
            Role::Table => ("table", Room::Table),
            Role::TableHead if room == Room::Table => ("thead", Room::Rows),
            Role::TableBody if room == Room::Table => ("tbody", Room::Rows),
            Role::TableFoot if room == Room::Table => ("tfoot", Room::Rows),
            Role::Row if matches!(room, Room::Table | Room::Rows) => ("tr", Room::Cells),
            Role::HeadCell if room == Room::Cells => ("th", Room::Block),
            Role::Cell if room == Room::Cells => ("td", Room::Block),
            Role::Caption if parent == Role::Table && room == Room::Table => ("caption", Room::Block),
            Role::Caption if parent == Role::Figure => ("figcaption", Room::Block),
            Role::Figure => ("figure", Room::Block),
            Role::Quote => ("blockquote", Room::Block),
            Role::Code if !self.has_blocks(index) => ("code", Room::Words),
            Role::Group
            | Role::Item
            | Role::ItemBody
            | Role::TableHead
            | Role::TableBody
            | Role::TableFoot
            | Role::Row
            | Role::HeadCell
            | Role::Cell
            | Role::Caption
            | Role::Code
            | Role::Note
            | Role::Inline
            | Role::Label
            | Role::Artifact => ("div", Room::Block),
        }
    }

    fn has_caption(&self, index: usize) -> bool {
        let mut kids = self.tags.nodes[index].kids.iter();
        kids.any(|kid| matches!(kid, Kid::Node(kid) if self.tags.nodes[*kid].role == Role::Caption))
    }

    /// Whether anything inside cannot stand among words.
    fn has_blocks(&self, index: usize) -> bool {
        self.tags.nodes[index].kids.iter().any(|kid| match kid {
            Kid::Content(..) => false,
            Kid::Node(kid) => match self.tags.nodes[*kid].role {
                Role::Inline | Role::Label => self.has_blocks(*kid),
                _ => true,
            },
        })
    }

    /// A block without tags: a heading by its size, or a paragraph.
    fn block(&mut self, block: &[Line], out: &mut String) {
        let tag = self.heading(block).unwrap_or("p");
        self.has_top_heading |= tag == "h1";
        self.paragraph(block, tag, out);
    }

    fn heading(&self, block: &[Line]) -> Option<&'static str> {
        let letters: usize = block.iter().map(|line| line.marks.len()).sum();
        let size = block.iter().map(size_of).max()?;
        let is_even = block.iter().all(|line| size_of(line) == size && line.angle == 0.0);
        let is_letter = |mark: &Mark| !is_field(mark) && mark.text.chars().any(char::is_alphabetic);
        let has_letters = block.iter().flat_map(|line| &line.marks).any(is_letter);
        if block.len() > HEADING_LINES_MAX || letters > HEADING_LETTERS_MAX || !is_even || !has_letters {
            return None;
        }
        let level = self.sizes.iter().position(|known| *known == size)?;
        Some(["h1", "h2", "h3"][level.min(LEVELS - 1)])
    }

    fn paragraph(&mut self, block: &[Line], tag: &str, out: &mut String) {
        let _ = write!(out, "<{tag}>");
        self.lines(block, out);
        let _ = writeln!(out, "</{tag}>");
    }
}

/// Whether it is what a field shows: that is heard from the field, not from the page.
fn is_field(mark: &Mark) -> bool {
    mark.content == Content::Field
}

fn around(tag: &str, room: Room) -> (&'static str, &'static str) {
    match room {
        Room::Block | Room::Words => ("", ""),
        Room::List if tag == "li" => ("", ""),
        Room::List => ("<li>", "</li>"),
        Room::Table if matches!(tag, "thead" | "tbody" | "tfoot" | "tr" | "caption") => ("", ""),
        Room::Rows if tag == "tr" => ("", ""),
        Room::Table | Room::Rows => ("<tr><td>", "</td></tr>"),
        Room::Cells if matches!(tag, "td" | "th") => ("", ""),
        Room::Cells => ("<td>", "</td>"),
    }
}

/// The attributes of what a figure shows, where somebody wrote that down.
fn picture(node: &Node) -> Option<String> {
    let alt = node.alt.as_ref().filter(|_| node.role == Role::Figure)?;
    let mut attributes = " role=\"img\" aria-label=\"".to_owned();
    escape(alt, &mut attributes);
    attributes.push('"');
    Some(attributes)
}

fn attributes(node: &Node, tag: &str) -> String {
    let mut attributes = String::new();
    if let Some(language) = &node.language {
        let _ = write!(attributes, " lang=\"{language}\"");
    }
    if node.role == Role::Note {
        attributes.push_str(" role=\"note\"");
    }
    if matches!(tag, "td" | "th") {
        let (columns, rows) = node.span;
        if columns > 1 {
            let _ = write!(attributes, " colspan=\"{columns}\"");
        }
        if rows > 1 {
            let _ = write!(attributes, " rowspan=\"{rows}\"");
        }
    }
    if let Some(scope) = node.scope.filter(|_| tag == "th") {
        let _ = write!(attributes, " scope=\"{scope}\"");
    }
    attributes
}

/// In halves of a point.
fn size_of(line: &Line) -> i32 {
    (line.size() * 2.0).round() as i32
}

/// The sizes that headings have in this document: larger than most of its text, and rare.
fn heading_sizes(pages: &[Draft]) -> Vec<i32> {
    let mut counts: HashMap<i32, usize> = HashMap::new();
    for line in pages.iter().flat_map(|page| &page.blocks).flatten() {
        *counts.entry(size_of(line)).or_default() += line.marks.len();
    }
    let Some(body) = counts.iter().max_by_key(|(size, count)| (**count, **size)).map(|(size, _)| *size)
    else {
        return Vec::new();
    };
    let mut sizes: Vec<i32> =
        counts.into_keys().filter(|size| *size as f32 >= body as f32 * HEADING_RATIO).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}
