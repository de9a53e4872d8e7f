//! Which optional layers of a document are switched off.

use std::collections::HashSet;

use hayro_syntax::Pdf;
use hayro_syntax::object::{Array, Dict, MaybeRef, Name, ObjectIdentifier};

/// The layers that are not shown.
#[derive(Default)]
pub(crate) struct Layers {
    hidden: HashSet<ObjectIdentifier>,
}

impl Layers {
    pub(crate) fn read(pdf: &Pdf) -> Self {
        let xref = pdf.xref();
        xref.get::<Dict<'_>>(xref.root_id())
            .and_then(|catalog| catalog.get::<Dict<'_>>(b"OCProperties"))
            .map(|properties| Self::from_properties(&properties))
            .unwrap_or_default()
    }

    fn from_properties(properties: &Dict<'_>) -> Self {
        let config = properties.get::<Dict<'_>>(b"D").unwrap_or_default();
        let mut hidden = HashSet::new();
        if config.get::<Name<'_>>(b"BaseState").is_some_and(|state| state.as_ref() == b"OFF") {
            hidden.extend(references(properties, b"OCGs"));
        }
        for shown in references(&config, b"ON") {
            hidden.remove(&shown);
        }
        hidden.extend(references(&config, b"OFF"));
        Self { hidden }
    }

    /// Whether content that belongs to the layer under `key` of `holder` is hidden.
    pub(crate) fn is_hidden(&self, holder: &Dict<'_>, key: &[u8]) -> bool {
        if self.hidden.is_empty() {
            return false;
        }
        let membership = holder.get::<Dict<'_>>(key);
        let is_membership = membership
            .as_ref()
            .and_then(|layer| layer.get::<Name<'_>>(b"Type"))
            .is_some_and(|kind| kind.as_ref() == b"OCMD");
        match membership {
            Some(membership) if is_membership => self.is_membership_hidden(&membership),
            _ => holder.get_ref(key).is_some_and(|layer| self.hidden.contains(&layer.into())),
        }
    }

    fn is_membership_hidden(&self, membership: &Dict<'_>) -> bool {
        let members = references(membership, b"OCGs");
        if members.is_empty() {
            return false;
        }
        let mut off = members.iter().map(|member| self.hidden.contains(member));
        let policy = membership.get::<Name<'_>>(b"P");
        match policy.as_ref().map(AsRef::as_ref) {
            Some(b"AllOn") => off.any(|is_off| is_off),
            Some(b"AnyOff") => !off.any(|is_off| is_off),
            Some(b"AllOff") => !off.all(|is_off| is_off),
            _ => off.all(|is_off| is_off),
        }
    }
}

/// The references in an array, or the one reference itself.
fn references(holder: &Dict<'_>, key: &[u8]) -> Vec<ObjectIdentifier> {
    let Some(array) = holder.get::<Array<'_>>(key) else {
        return holder.get_ref(key).map(Into::into).into_iter().collect();
    };
    array
        .raw_iter()
        .filter_map(|item| match item {
            MaybeRef::Ref(reference) => Some(reference.into()),
            MaybeRef::NotRef(_) => None,
        })
        .collect()
}
