//! The embedded font program asked backwards: which character does this glyph show?

use std::collections::HashMap;

use skrifa::raw::TableProvider;
use skrifa::{FontRef, MetadataProvider};

/// Fonts have at most this many glyphs, and a character map that repeats them is not read further.
const MAPPINGS_MAX: usize = 200_000;

/// Characters by glyph, from a font's own character map.
#[derive(Default)]
pub(crate) struct Program {
    characters: HashMap<u32, char>,
}

impl Program {
    /// Reads an OpenType or TrueType font; anything else knows no characters.
    pub(crate) fn read(data: &[u8]) -> Self {
        let Ok(font) = FontRef::new(data) else {
            return Self::default();
        };
        let mut characters = HashMap::new();
        if font.cmap().is_ok() {
            for (code, glyph) in font.charmap().mappings().take(MAPPINGS_MAX) {
                let Some(character) = char::from_u32(code).filter(|character| !is_private(*character)) else {
                    continue;
                };
                let known = characters.entry(glyph.to_u32()).or_insert(character);
                if preference(character) < preference(*known) {
                    *known = character;
                }
            }
        }
        Self { characters }
    }

    /// The character that `glyph` shows, if the font says so.
    pub(crate) fn character(&self, glyph: u32) -> Option<char> {
        self.characters.get(&glyph).copied()
    }
}

/// Codes that mean nothing outside of one font.
pub(crate) fn is_private(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

/// Among characters that share a glyph the plainest wins: a space before a no-break space, K before the Kelvin sign.
fn preference(character: char) -> (bool, u32) {
    (character.is_control() || character == '\u{ad}', u32::from(character))
}
