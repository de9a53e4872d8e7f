//! Where an object lies in the file: the only name by which an object without a number can be known again.

use hayro_syntax::object::Dict;

/// The place of a dictionary. Its object number would not do: a dictionary inside another object has that one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    address: usize,
    length: usize,
}

impl Place {
    /// The place of what is not in the file.
    pub(crate) const NOWHERE: Self = Self { address: 0, length: 0 };

    pub(crate) fn of(dict: &Dict<'_>) -> Self {
        Self { address: dict.data().as_ptr() as usize, length: dict.data().len() }
    }
}
