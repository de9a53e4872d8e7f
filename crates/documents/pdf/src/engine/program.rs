//! The embedded font program asked backwards: which character does this glyph show?

use std::collections::HashMap;
use std::ops::RangeInclusive;

use skrifa::raw::TableProvider;
use skrifa::raw::ps::agl;
use skrifa::raw::ps::cff::CffFontRef;
use skrifa::raw::tables::post::DEFAULT_GLYPH_NAMES;
use skrifa::{FontRef, GlyphId, MetadataProvider};

/// Fonts have at most this many glyphs, and a character map that repeats them is not read further.
const MAPPINGS_MAX: usize = 200_000;
/// A font with at least this many glyphs has kept its original numbering when it was cut down to a subset.
const ORIGINAL_GLYPHS_MIN: u32 = 200;
/// The place of the space in the order that most TrueType fonts begin with.
const SPACE_GLYPH: u32 = 3;

/// Up to here fonts agree on that order; then some leave out a glyph or two.
const STANDARD_GLYPH_MAX: u32 = 171;
/// The fonts that Windows comes with leave out one, the space that must not be broken at, and agree again up to here.
const WINDOWS_GLYPH_MAX: u32 = 208;

/// Where the letters from А to я stand in the fonts that Windows comes with.
const CYRILLIC_GLYPHS: RangeInclusive<u32> = 0x23a..=0x279;

/// What a font program knows about its glyphs.
#[derive(Default)]
pub(crate) struct Program {
    texts: HashMap<u32, String>,
    /// Glyphs that draw nothing, as far as it matters: the font's spaces.
    blanks: Vec<bool>,
    has_standard_order: bool,
}

impl Program {
    /// Reads a font in any of the formats that documents embed; one that cannot be read knows nothing.
    pub(crate) fn read(data: &[u8]) -> Self {
        if let Ok(font) = FontRef::new(data) {
            return Self::read_sfnt(&font);
        }
        CffFontRef::new(data, 0, None).map(|font| Self::read_cff(&font)).unwrap_or_default()
    }

    fn read_sfnt(font: &FontRef<'_>) -> Self {
        let mut program = Self::default();
        if font.cmap().is_ok() {
            program.read_characters(font);
        }
        let glyphs = font.maxp().map_or(0, |maxp| u32::from(maxp.num_glyphs()));
        program.read_names(font.glyph_names().iter().take(MAPPINGS_MAX).filter_map(|(glyph, name)| {
            (!name.is_synthesized()).then(|| (glyph.to_u32(), name.as_str().to_owned()))
        }));
        if let Ok(loca) = font.loca(None) {
            let is_blank = |glyph: u32| loca.get_raw(glyph as usize) == loca.get_raw(glyph as usize + 1);
            program.blanks = (0..glyphs).map(is_blank).collect();
        }
        program.has_standard_order = program.texts.is_empty()
            && glyphs >= ORIGINAL_GLYPHS_MIN
            && program.is_blank(SPACE_GLYPH)
            && has_latin_widths(font);
        program
    }

    fn read_cff(font: &CffFontRef<'_>) -> Self {
        let mut program = Self::default();
        let is_blank = |glyph| font.charstrings().get(glyph).is_some_and(is_blank_outline);
        program.blanks = (0..font.num_glyphs() as usize).map(is_blank).collect();
        if let Some(charset) = font.charset().filter(|_| !font.is_cid()) {
            program.read_names((0..font.num_glyphs()).filter_map(|glyph| {
                let name = font.string(charset.string_id(GlyphId::new(glyph))?)?;
                Some((glyph, String::from_utf8_lossy(name).into_owned()))
            }));
        }
        program
    }

    fn read_characters(&mut self, font: &FontRef<'_>) {
        let mut characters: HashMap<u32, char> = HashMap::new();
        for (code, glyph) in font.charmap().mappings().take(MAPPINGS_MAX) {
            let Some(character) = char::from_u32(code).filter(|character| !is_private(*character)) else {
                continue;
            };
            let known = characters.entry(glyph.to_u32()).or_insert(character);
            if preference(character) < preference(*known) {
                *known = character;
            }
        }
        self.texts = characters.into_iter().map(|(glyph, character)| (glyph, character.into())).collect();
    }

    fn read_names(&mut self, names: impl Iterator<Item = (u32, String)>) {
        for (glyph, name) in names {
            if let Some(text) = text_by_name(&name) {
                self.texts.entry(glyph).or_insert(text);
            }
        }
    }

    /// What `glyph` shows, if the font says so.
    pub(crate) fn text(&self, glyph: u32) -> Option<String> {
        if let Some(text) = self.texts.get(&glyph) {
            return Some(text.clone());
        }
        if self.is_blank(glyph) && glyph != 0 {
            return Some(" ".into());
        }
        standard_text(glyph).filter(|_| self.has_standard_order)
    }

    fn is_blank(&self, glyph: u32) -> bool {
        self.blanks.get(glyph as usize).copied().unwrap_or(false)
    }
}

/// Whether an outline in Type 2 form only says how wide it is and ends.
fn is_blank_outline(outline: &[u8]) -> bool {
    const END: u8 = 14;
    matches!(outline, [END] | [32..=246, END] | [247..=254, _, END] | [28, _, _, END])
}

/// Whether the glyphs where Latin letters would stand are as wide as those: figures alike, an m wider than an i.
fn has_latin_widths(font: &FontRef<'_>) -> bool {
    let width = |name: &str| {
        let glyph = DEFAULT_GLYPH_NAMES.iter().position(|known| *known == name)?;
        font.hmtx().ok()?.advance(GlyphId::new(glyph as u32))
    };
    let figures = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"].map(width);
    figures[0].is_some_and(|figure| figure > 0)
        && figures.iter().all(|figure| *figure == figures[0])
        && width("m") >= width("i")
}

/// What a glyph shows in the order that most TrueType fonts begin with.
pub(crate) fn standard_text(glyph: u32) -> Option<String> {
    if CYRILLIC_GLYPHS.contains(&glyph) {
        return char::from_u32(glyph - CYRILLIC_GLYPHS.start() + u32::from('А')).map(String::from);
    }
    text_by_name(DEFAULT_GLYPH_NAMES.get(glyph as usize).filter(|_| glyph <= STANDARD_GLYPH_MAX)?)
}

/// What a glyph shows in the fonts that Windows comes with.
pub(crate) fn windows_text(glyph: u32) -> Option<String> {
    if (STANDARD_GLYPH_MAX + 1..=WINDOWS_GLYPH_MAX).contains(&glyph) {
        return text_by_name(DEFAULT_GLYPH_NAMES.get(glyph as usize + 1)?);
    }
    standard_text(glyph)
}

/// What a glyph's name says, by the Adobe glyph list.
pub(crate) fn text_by_name(name: &str) -> Option<String> {
    // Numbered names are the dingbats' in the list, but in every other font they just count.
    let is_numbered = name.len() > 1 && name.as_bytes()[1..].iter().all(u8::is_ascii_digit);
    if is_numbered && name.starts_with('a') {
        return None;
    }
    let text: String = agl::name_to_chars(name).filter(|character| !character.is_control()).collect();
    (!text.is_empty()).then_some(text)
}

/// Codes that mean nothing outside of one font.
fn is_private(character: char) -> bool {
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

/// Among characters that share a glyph the plainest wins: a space before a no-break space, K before the Kelvin sign.
fn preference(character: char) -> (bool, u32) {
    (character.is_control() || character == '\u{ad}', u32::from(character))
}

#[cfg(test)]
mod tests {
    use super::{Program, is_blank_outline, standard_text, text_by_name, windows_text};

    #[test]
    fn names_of_glyphs_are_read() {
        assert_eq!(text_by_name("eacute").as_deref(), Some("é"));
        assert_eq!(text_by_name("f_f_i.alt").as_deref(), Some("ffi"));
        assert_eq!(text_by_name("uni20AC").as_deref(), Some("€"));
        assert_eq!(text_by_name("a65"), None, "a number says nothing");
        assert_eq!(text_by_name(".notdef"), None);
    }

    #[test]
    fn order_of_common_fonts_tells_letters_without_names() {
        assert_eq!(standard_text(36).as_deref(), Some("A"));
        assert_eq!(standard_text(129).as_deref(), Some("ü"));
        assert_eq!(standard_text(0x23a).as_deref(), Some("А"));
        assert_eq!(standard_text(0x279).as_deref(), Some("я"));
        assert_eq!(standard_text(200), None, "here fonts disagree");
        assert_eq!(windows_text(36).as_deref(), Some("A"));
        assert_eq!(windows_text(179).as_deref(), Some("“"));
        assert_eq!(windows_text(207).as_deref(), Some("Ó"));
    }

    #[test]
    fn empty_outlines_are_spaces() {
        assert!(is_blank_outline(&[14]) && is_blank_outline(&[139, 14]));
        assert!(!is_blank_outline(&[139, 10, 14]), "a subroutine may draw anything");
    }

    #[test]
    fn rubbish_is_no_font() {
        assert_eq!(Program::read(b"OTTO but not quite").text(3), None);
        assert_eq!(Program::read(&[]).text(0), None);
    }
}
