//! The mappings that come with the program, built into it. A new one is a file and a line here.

/// File names and texts.
pub(crate) const MAPPINGS: &[(&str, &str)] = &[
    ("awv_stylesheet_v1.toml", include_str!("../../../mappings/awv_stylesheet_v1.toml")),
];
