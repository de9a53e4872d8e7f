//! What the pages of a document share while they are drawn: outlines, pictures, and what is left of the budgets.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_interpret::kurbo::{BezPath, Rect};

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

/// A picture's file.
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
    pub(crate) steps_left: u64,
    /// Bytes that may still be written, pictures included.
    pub(crate) bytes_left: usize,
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
            bytes_left: bytes_max,
            looks: HashMap::new(),
            look_list: Vec::new(),
            lost_pictures: 0,
        }
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
