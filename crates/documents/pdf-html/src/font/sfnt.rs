//! The tables around the outlines.

use std::collections::BTreeMap;

use hayro_interpret::kurbo::{BezPath, Rect};
use write_fonts::tables::cmap::Cmap;
use write_fonts::tables::gdef::{Gdef, GlyphClassDef};
use write_fonts::tables::gpos::{Gpos, PairPos, PairSet, PairValueRecord, PositionLookup, ValueRecord};
use write_fonts::tables::gsub::{
    Gsub, Ligature, LigatureSet, LigatureSubst, LigatureSubstFormat1, SubstitutionLookup,
};
use write_fonts::tables::head::Head;
use write_fonts::tables::hhea::Hhea;
use write_fonts::tables::hmtx::{Hmtx, LongMetric};
use write_fonts::tables::layout::{
    ClassDef, ClassRangeRecord, CoverageTable, Feature, FeatureList, FeatureRecord, LangSys, Lookup,
    LookupFlag, LookupList, Script, ScriptList, ScriptRecord,
};
use write_fonts::tables::maxp::Maxp;
use write_fonts::tables::name::{Name, NameRecord};
use write_fonts::tables::os2::Os2;
use write_fonts::tables::post::Post;
use write_fonts::types::{FWord, Fixed, GlyphId16, NameId, Tag, UfWord};
use write_fonts::validate::Validate;
use write_fonts::{FontWrite, dump_table};

use super::{ASCENT, SPACE, SPACE_ADVANCE, Shape, Typeface, UNITS, cff};

/// A table and its name.
pub(super) type Table = (Tag, Vec<u8>);

/// Pairs that one glyph may have with others: far more than letters have, and far less than the format can hold.
const PAIRS_MAX: usize = 2_000;

/// Two glyphs that no text has, for tables that may not be empty.
const NO_PAIR: (u16, u16) = (0, 0);

/// All tables of a font, in the order of their names.
pub(super) fn tables(face: &Typeface) -> Option<Vec<Table>> {
    let own = [
        Shape { outline: BezPath::new(), advance: SPACE_ADVANCE },
        Shape { outline: BezPath::new(), advance: SPACE_ADVANCE },
    ];
    let shapes: Vec<&Shape> = own.iter().chain(&face.shapes).collect();
    let mut letters = face.letters.clone();
    letters.entry(' ').or_insert(SPACE);
    let mut tables = common(&shapes)?;
    tables.push((Tag::new(b"cmap"), cmap(&letters)?));
    tables.extend(arrangement(&face.kerns, &face.ligatures, shapes.len())?);
    tables.sort_by_key(|table| table.0);
    Some(tables)
}

/// The tables of the font whose every letter is blank.
pub(super) fn blank_tables() -> Option<Vec<Table>> {
    let blank = Shape { outline: BezPath::new(), advance: 500 };
    let mut tables = common(&[&blank, &blank])?;
    tables.push((Tag::new(b"cmap"), many_to_one()));
    tables.extend(arrangement(&BTreeMap::new(), &BTreeMap::new(), 2)?);
    tables.sort_by_key(|table| table.0);
    Some(tables)
}

fn common(shapes: &[&Shape]) -> Option<Vec<Table>> {
    let outlines = shapes.iter().map(|shape| &shape.outline);
    let bounds = outlines.clone().filter(|outline| !outline.is_empty()).map(|outline| outline.control_box());
    let bounds = bounds.reduce(|all, one| all.union(one)).unwrap_or(Rect::ZERO);
    let widest = shapes.iter().map(|shape| shape.advance).max().unwrap_or(0);
    Some(vec![
        (Tag::new(b"CFF "), cff::table(outlines)),
        (Tag::new(b"OS/2"), dump(&os2())?),
        (Tag::new(b"head"), dump(&head(bounds))?),
        (Tag::new(b"hhea"), dump(&hhea(widest, shapes.len() as u16))?),
        (Tag::new(b"hmtx"), dump(&hmtx(shapes))?),
        (Tag::new(b"maxp"), dump(&Maxp::new(shapes.len() as u16))?),
        (Tag::new(b"name"), dump(&name())?),
        (Tag::new(b"post"), dump(&post())?),
    ])
}

fn dump<T: FontWrite + Validate>(table: &T) -> Option<Vec<u8>> {
    dump_table(table).ok()
}

fn head(bounds: Rect) -> Head {
    let round = |value: f64| value.clamp(-16_000.0, 16_000.0) as i16;
    Head {
        font_revision: Fixed::from_f64(1.0),
        magic_number: 0x5f0f_3cf5,
        units_per_em: UNITS as u16,
        x_min: round(bounds.x0.floor()),
        y_min: round(bounds.y0.floor()),
        x_max: round(bounds.x1.ceil()),
        y_max: round(bounds.y1.ceil()),
        lowest_rec_ppem: 6,
        font_direction_hint: 2,
        ..Head::default()
    }
}

fn hhea(widest: u16, count: u16) -> Hhea {
    Hhea {
        ascender: FWord::new((ASCENT * UNITS) as i16),
        descender: FWord::new((ASCENT * UNITS - UNITS) as i16),
        advance_width_max: UfWord::new(widest),
        caret_slope_rise: 1,
        number_of_h_metrics: count,
        ..Hhea::default()
    }
}

fn hmtx(shapes: &[&Shape]) -> Hmtx {
    let metric = |shape: &&Shape| {
        let left = if shape.outline.is_empty() { 0.0 } else { shape.outline.control_box().x0 };
        LongMetric::new(shape.advance, left.clamp(-16_000.0, 16_000.0).round() as i16)
    };
    Hmtx::new(shapes.iter().map(metric).collect(), Vec::new())
}

fn os2() -> Os2 {
    Os2 {
        us_weight_class: 400,
        us_width_class: 5,
        s_typo_ascender: (ASCENT * UNITS) as i16,
        s_typo_descender: (ASCENT * UNITS - UNITS) as i16,
        us_win_ascent: (ASCENT * UNITS) as u16,
        us_win_descent: (UNITS - ASCENT * UNITS) as u16,
        us_last_char_index: u16::MAX,
        ..Os2::default()
    }
}

/// The names that a font must have; what the document calls its fonts stays there.
fn name() -> Name {
    let record = |id: u16, text: &str| NameRecord::new(3, 1, 0x409, NameId::new(id), text.to_owned().into());
    Name::new(vec![record(1, "ode"), record(2, "Regular"), record(4, "ode"), record(6, "ode")])
}

fn post() -> Post {
    Post { version: write_fonts::types::Version16Dot16::VERSION_3_0, ..Post::default() }
}

fn cmap(letters: &BTreeMap<char, u16>) -> Option<Vec<u8>> {
    let mappings = letters.iter().map(|(letter, glyph)| (*letter, GlyphId16::new(*glyph).into()));
    dump(&Cmap::from_mappings(mappings).ok()?)
}

/// A table that gives every letter glyph 1.
fn many_to_one() -> Vec<u8> {
    let mut table = vec![0, 0, 0, 1, 0, 3, 0, 10, 0, 0, 0, 12];
    table.extend([0, 13, 0, 0]);
    table.extend(28_u32.to_be_bytes());
    table.extend(0_u32.to_be_bytes());
    table.extend(1_u32.to_be_bytes());
    for value in [0x20_u32, 0x10_ffff, 1] {
        table.extend(value.to_be_bytes());
    }
    table
}

/// How glyphs follow each other, and that nothing else is to be done to them.
///
/// Browsers arrange the letters of many scripts by rules of their own, unless the font says that it is for any script
/// and brings its own; they put marks on letters by themselves, unless it says that all its glyphs are letters. The
/// tables are there even where they have nothing to do.
fn arrangement(
    kerns: &BTreeMap<(u16, u16), i16>,
    joined: &BTreeMap<Vec<u16>, u16>,
    count: usize,
) -> Option<[Table; 3]> {
    Some([
        (Tag::new(b"GDEF"), dump(&all_letters(count))?),
        (Tag::new(b"GPOS"), dump(&kerning(kerns))?),
        (Tag::new(b"GSUB"), dump(&ligatures(joined))?),
    ])
}

fn all_letters(count: usize) -> Gdef {
    let last = GlyphId16::new(count as u16 - 1);
    let range = ClassRangeRecord::new(GlyphId16::NOTDEF, last, GlyphClassDef::Base as u16);
    Gdef::new(Some(ClassDef::format_2(vec![range])), None, None, None)
}

fn coverage(glyphs: impl Iterator<Item = u16>) -> CoverageTable {
    CoverageTable::format_1(glyphs.map(GlyphId16::new).collect())
}

fn scripts(features: u16) -> ScriptList {
    let script = |tag: &[u8; 4]| {
        ScriptRecord::new(Tag::new(tag), Script::new(Some(LangSys::new((0..features).collect())), Vec::new()))
    };
    ScriptList::new(vec![script(b"DFLT"), script(b"latn")])
}

/// Features in the order of their names, and the lookup of each.
fn features(features: &[(&[u8; 4], u16)]) -> FeatureList {
    let record = |(tag, lookup): &(&[u8; 4], u16)| {
        FeatureRecord::new(Tag::new(tag), Feature::new(None, vec![*lookup]))
    };
    FeatureList::new(features.iter().map(record).collect())
}

fn kerning(kerns: &BTreeMap<(u16, u16), i16>) -> Gpos {
    let mut sets: BTreeMap<u16, Vec<PairValueRecord>> = BTreeMap::new();
    for ((first, second), by) in kerns.iter().chain([(&NO_PAIR, &0)]) {
        let set = sets.entry(*first).or_default();
        if set.len() < PAIRS_MAX {
            let value = ValueRecord::new().with_x_advance(*by);
            set.push(PairValueRecord::new(GlyphId16::new(*second), value, ValueRecord::new()));
        }
    }
    let pairs =
        PairPos::format_1(coverage(sets.keys().copied()), sets.into_values().map(PairSet::new).collect());
    let lookup = PositionLookup::Pair(Lookup::new(LookupFlag::empty(), vec![pairs]));
    Gpos::new(scripts(1), features(&[(b"kern", 0)]), LookupList::new(vec![lookup]))
}

fn ligatures(ligatures: &BTreeMap<Vec<u16>, u16>) -> Gsub {
    // Spaced-out text loses its optional ligatures, but not these. The other feature does nothing: a font without it
    // would have its Arabic letters joined by the browser.
    Gsub::new(
        scripts(2),
        features(&[(b"isol", 1), (b"rlig", 0)]),
        LookupList::new(vec![joining(ligatures), joining(&BTreeMap::new())]),
    )
}

fn joining(ligatures: &BTreeMap<Vec<u16>, u16>) -> SubstitutionLookup {
    let mut sets: BTreeMap<u16, Vec<(usize, Ligature)>> = BTreeMap::new();
    let nothing = (vec![NO_PAIR.0, NO_PAIR.1], NO_PAIR.0);
    for (parts, whole) in ligatures.iter().chain([(&nothing.0, &nothing.1)]) {
        if let Some((first, rest)) = parts.split_first() {
            let rest: Vec<GlyphId16> = rest.iter().copied().map(GlyphId16::new).collect();
            sets.entry(*first).or_default().push((rest.len(), Ligature::new(GlyphId16::new(*whole), rest)));
        }
    }
    // The longest one that fits is to be taken.
    let ordered = |mut set: Vec<(usize, Ligature)>| {
        set.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        LigatureSet::new(set.into_iter().map(|(_, ligature)| ligature).collect())
    };
    let covered = coverage(sets.keys().copied());
    let table = LigatureSubstFormat1::new(covered, sets.into_values().map(ordered).collect());
    SubstitutionLookup::Ligature(Lookup::new(LookupFlag::empty(), vec![LigatureSubst::Format1(table)]))
}
