//! Where links and the outline lead: pages by their objects, and names for places.

use std::collections::{HashMap, HashSet};

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Array, Dict, MaybeRef, Object, ObjectIdentifier};

use super::{catalog, place, string, word};

/// Named places that are read.
const NAMES_MAX: usize = 50_000;
/// Levels of the tree of names, and of the outline.
const DEPTH_MAX: usize = 16;
/// Entries of the outline.
const ENTRIES_MAX: usize = 5_000;

/// The pages that places are on, counted from 1.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pages: HashMap<ObjectIdentifier, u32>,
    names: HashMap<String, u32>,
}

impl Places {
    pub(crate) fn read(pdf: &Pdf) -> Self {
        let mut places = Self::default();
        for (index, page) in pdf.pages().iter().enumerate() {
            if let Some(id) = page.raw().obj_id() {
                places.pages.entry(id).or_insert(index as u32 + 1);
            }
        }
        let Some(catalog) = catalog(pdf) else {
            return places;
        };
        if let Some(names) = catalog.get::<Dict<'_>>(b"Dests") {
            for key in names.keys().take(NAMES_MAX) {
                let page = names.get::<Object<'_>>(key.as_ref()).and_then(|place| places.explicit(&place));
                if let Some(page) = page {
                    places.names.insert(key.as_str().to_owned(), page);
                }
            }
        }
        if let Some(tree) =
            catalog.get::<Dict<'_>>(b"Names").and_then(|names| names.get::<Dict<'_>>(b"Dests"))
        {
            places.read_tree(&tree, 0);
        }
        places
    }

    fn read_tree(&mut self, node: &Dict<'_>, depth: usize) {
        if depth > DEPTH_MAX || self.names.len() >= NAMES_MAX {
            return;
        }
        if let Some(names) = node.get::<Array<'_>>(b"Names") {
            let mut items = names.iter::<Object<'_>>();
            while let (Some(name), Some(place)) = (items.next(), items.next()) {
                if let (Some(name), Some(page)) = (word(&name), self.explicit(&place))
                    && self.names.len() < NAMES_MAX
                {
                    self.names.insert(name, page);
                }
            }
        }
        for kid in node.get::<Array<'_>>(b"Kids").iter().flat_map(|kids| kids.iter::<Dict<'_>>()) {
            self.read_tree(&kid, depth + 1);
        }
    }

    /// The page of a place that is given in full.
    fn explicit(&self, place: &Object<'_>) -> Option<u32> {
        let array = match place {
            Object::Array(array) => array.clone(),
            Object::Dict(dict) => dict.get::<Array<'_>>(b"D")?,
            _ => return None,
        };
        match array.raw_iter().next()? {
            MaybeRef::Ref(page) => self.pages.get(&page.into()).copied(),
            MaybeRef::NotRef(Object::Number(index)) => {
                let page = u32::try_from(index.as_i64()).ok()?.checked_add(1)?;
                (page as usize <= self.pages.len()).then_some(page)
            }
            MaybeRef::NotRef(_) => None,
        }
    }

    /// The page of a place, given in full or by name.
    pub(crate) fn page(&self, place: &Object<'_>) -> Option<u32> {
        self.explicit(place).or_else(|| self.names.get(&word(place)?).copied())
    }

    /// The page that an annotation or an entry of the outline leads to.
    pub(crate) fn target(&self, holder: &Dict<'_>) -> Option<u32> {
        if let Some(place) = holder.get::<Object<'_>>(b"Dest") {
            return self.page(&place);
        }
        let action = holder.get::<Dict<'_>>(b"A")?;
        let kind = action.get::<Object<'_>>(b"S").and_then(|kind| word(&kind))?;
        if kind != "GoTo" {
            return None;
        }
        self.page(&action.get::<Object<'_>>(b"D")?)
    }
}

/// An entry of the outline.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) title: String,
    /// Counted from 1.
    pub(crate) page: Option<u32>,
    pub(crate) inner: Vec<Entry>,
}

pub(crate) fn outline(pdf: &Pdf, places: &Places) -> Vec<Entry> {
    let mut left = ENTRIES_MAX;
    let mut seen = HashSet::new();
    catalog(pdf)
        .and_then(|catalog| catalog.get::<Dict<'_>>(b"Outlines"))
        .map(|root| entries(&root, places, 0, &mut left, &mut seen))
        .unwrap_or_default()
}

fn entries(
    parent: &Dict<'_>,
    places: &Places,
    depth: usize,
    left: &mut usize,
    seen: &mut HashSet<(usize, usize)>,
) -> Vec<Entry> {
    let mut list = Vec::new();
    let mut next = parent.get::<Dict<'_>>(b"First");
    while let Some(item) = next {
        // An entry that comes again would come for ever.
        let is_new = seen.insert(place(&item));
        if !is_new || *left == 0 || depth >= DEPTH_MAX {
            break;
        }
        *left -= 1;
        let title = string(&item, b"Title").unwrap_or_default();
        let inner = entries(&item, places, depth + 1, left, seen);
        if !title.is_empty() || !inner.is_empty() {
            list.push(Entry { title, page: places.target(&item), inner });
        }
        next = item.get::<Dict<'_>>(b"Next");
    }
    list
}
