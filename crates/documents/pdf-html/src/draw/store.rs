//! What the pages of a document share while they are drawn: outlines, pictures, and what is left of the budgets.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_interpret::kurbo::{BezPath, Rect};

use crate::limits::Limits;

/// The shape of a glyph at 1000 units per em, upwards.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) path: BezPath,
    pub(crate) bounds: Rect,
}

impl Outline {
    pub(crate) fn new(path: BezPath) -> Self {
        let bounds = if path.elements().is_empty() { Rect::ZERO } else { path.control_box() };
        Self { path, bounds }
    }
}

/// What a picture is kept as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Jpeg,
    Png,
}

#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

/// Shared by all pages.
#[derive(Debug)]
pub(crate) struct Store {
    /// By the glyph's key; nothing where a glyph has no single shape.
    pub(crate) outlines: HashMap<u128, Option<Rc<Outline>>>,
    pub(crate) pictures: Vec<Picture>,
    /// Pictures by what they were made of.
    known: HashMap<u128, Option<usize>>,
    /// Steps that may still be drawn on the page.
    steps_left: u64,
    /// Bytes that the drawing of the page takes so far, and may take.
    page_bytes: usize,
    page_bytes_max: usize,
    /// Bytes that may still be written, pictures included.
    bytes_left: usize,
    /// Looks of shapes, as they are classes.
    looks: HashMap<String, usize>,
    pub(crate) look_list: Vec<String>,
    /// Pictures that could not be decoded or were left out.
    pub(crate) lost_pictures: usize,
}

impl Store {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            outlines: HashMap::new(),
            pictures: Vec::new(),
            known: HashMap::new(),
            steps_left: 0,
            page_bytes: 0,
            page_bytes_max: 0,
            bytes_left: bytes_max,
            looks: HashMap::new(),
            look_list: Vec::new(),
            lost_pictures: 0,
        }
    }

    /// Gives the next page what one page may use up.
    pub(crate) fn begin_page(&mut self, limits: &Limits) {
        self.steps_left = limits.steps_per_page_max;
        self.page_bytes = 0;
        self.page_bytes_max = limits.page_bytes_max;
    }

    /// Counts steps and bytes of the page's drawing; false when there were too many.
    pub(super) fn charge(&mut self, steps: u64, bytes: usize) -> bool {
        let bytes_max = self.bytes_left.min(self.page_bytes_max - self.page_bytes);
        let has_room = steps <= self.steps_left && bytes <= bytes_max;
        if has_room {
            self.steps_left -= steps;
            self.page_bytes += bytes;
            self.bytes_left -= bytes;
        }
        has_room
    }

    /// Takes back what the page's drawing has used up: it is not written.
    pub(crate) fn drop_drawing(&mut self) {
        self.bytes_left += std::mem::take(&mut self.page_bytes);
    }

    /// Keeps a picture that nothing else shows; nothing when there is no room for it.
    pub(crate) fn keep(&mut self, picture: Picture) -> Option<usize> {
        if picture.bytes.len() > self.bytes_left {
            return None;
        }
        self.bytes_left -= picture.bytes.len();
        self.pictures.push(picture);
        Some(self.pictures.len() - 1)
    }

    /// The class of a look.
    pub(crate) fn look(&mut self, look: &str) -> usize {
        if let Some(index) = self.looks.get(look) {
            return *index;
        }
        self.look_list.push(look.to_owned());
        self.looks.insert(look.to_owned(), self.look_list.len() - 1);
        self.look_list.len() - 1
    }

    /// The picture for `key`, made by `make` when it is first needed.
    pub(crate) fn picture(&mut self, key: u128, make: impl FnOnce() -> Option<Picture>) -> Option<usize> {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let picture = make().filter(|picture| picture.bytes.len() <= self.bytes_left);
        let index = picture.map(|picture| {
            self.bytes_left -= picture.bytes.len();
            self.pictures.push(picture);
            self.pictures.len() - 1
        });
        if index.is_none() {
            self.lost_pictures += 1;
        }
        self.known.insert(key, index);
        index
    }
}
