//! The mappings that come with the program, built into it: every file of the folder `mappings`.

/// One of them, as JSON.
#[derive(Debug)]
pub(crate) struct Shipped {
    pub name: &'static str,
    /// What it says about itself and about the documents it is for.
    pub head: &'static str,
    pub text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/mappings.rs"));

/// The whole text of a file.
pub(crate) fn text_of(name: &str) -> &'static str {
    MAPPINGS.iter().find(|file| file.name == name).map_or("", |file| file.text)
}
