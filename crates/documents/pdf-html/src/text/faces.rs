//! The fonts of the result: which shape stands for which letters in which font.
//!
//! Each font of the document becomes a font here. Where it has two shapes for one letter, the second goes into
//! another font beside it, and so on up to a few.

use std::collections::{BTreeMap, HashMap};

use hayro_interpret::kurbo::Affine;
use ode_pdf::trace::TracedGlyph;

use super::script::is_plain;
use crate::font::{Shape, Typeface, UNITS};

/// Fonts that one font of the document may become.
const VARIANTS_MAX: usize = 6;
/// Fonts of the result. What does not fit is drawn as shapes.
const FACES_MAX: usize = 400;
/// Letters that one glyph may stand for.
const LIGATURE_MAX: usize = 8;
/// Steps in which a glyph's own turn is told apart, and its own width.
const TURN_STEPS: f64 = 100.0;
const WIDTH_STEPS: f64 = 20.0;
/// A glyph that stands this close to where it belongs, in thousandths, is where it belongs.
const OFFSET_MIN: f64 = 4.0;
/// A pair of glyphs is kerned by this much at most, in thousandths.
const KERN_MAX: i32 = 400;
/// Distances of one pair that are counted.
const DISTANCES_MAX: usize = 16;
/// Pairs of glyphs of one font that are counted.
const PAIRS_MAX: usize = 50_000;

/// Where a glyph is found in the fonts of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    pub(crate) face: u16,
    pub(crate) glyph: u16,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    font: u32,
    outline: u128,
    /// How the outline is turned and moved against where its letter stands.
    fit: [i32; 6],
    text: String,
}

#[derive(Debug, Default)]
struct Face {
    typeface: Typeface,
    /// Letters that are only there for a ligature to begin with.
    blanks: Vec<char>,
    /// How often which distance was seen.
    pairs: HashMap<(u16, u16), Vec<(i16, u32)>>,
}

/// All fonts of the result.
#[derive(Default)]
pub(crate) struct Faces {
    faces: Vec<Face>,
    by_font: HashMap<u32, Vec<u16>>,
    spots: HashMap<Key, Option<Spot>>,
}

impl Faces {
    /// Finds or makes the place of a drawn glyph in a line stretched by so much; nothing where it cannot be set as text.
    pub(crate) fn spot(
        &mut self,
        (glyph, stretch): (&TracedGlyph, f32),
        outline: u128,
        place: Affine,
        shape: impl FnOnce(Affine) -> Option<Shape>,
    ) -> Option<Spot> {
        if !is_plain(&glyph.text) {
            return None;
        }
        let fit = fit(glyph, stretch, place)?;
        let steps = steps(fit);
        let key = Key { font: glyph.font, outline, fit: steps, text: glyph.text.clone() };
        if let Some(known) = self.spots.get(&key) {
            return *known;
        }
        let is_plain_fit = steps == [WIDTH_STEPS as i32, 0, 0, TURN_STEPS as i32, 0, 0];
        let spot = shape(if is_plain_fit { Affine::IDENTITY } else { fit })
            .and_then(|shape| self.place(glyph.font, &glyph.text, shape));
        self.spots.insert(key, spot);
        spot
    }

    fn place(&mut self, font: u32, text: &str, shape: Shape) -> Option<Spot> {
        let letters: Vec<char> = text.chars().collect();
        if letters.len() > LIGATURE_MAX {
            return None;
        }
        let mut variants = self.by_font.get(&font).cloned().unwrap_or_default();
        let has_room = |index: &u16| self.faces[usize::from(*index)].has_room(&letters);
        let index = match variants.iter().copied().find(has_room) {
            Some(index) => index,
            None if variants.len() < VARIANTS_MAX && self.faces.len() < FACES_MAX => {
                self.faces.push(Face::default());
                let index = self.faces.len() as u16 - 1;
                variants.push(index);
                self.by_font.insert(font, variants);
                index
            }
            None => return None,
        };
        let glyph = self.faces[usize::from(index)].place(&letters, shape)?;
        Some(Spot { face: index, glyph })
    }

    /// How far a glyph moves the pen, in thousandths.
    pub(crate) fn advance(&self, spot: Spot) -> f64 {
        let shapes = &self.faces[usize::from(spot.face)].typeface.shapes;
        shapes.get(usize::from(spot.glyph) - 2).map_or(0.0, |shape| f64::from(shape.advance))
    }

    /// Counts that one glyph followed another at a distance, in thousandths beyond its width.
    pub(crate) fn count_pair(&mut self, first: Spot, second: Spot, by: f64) {
        let by = by.round() as i32;
        let face = &mut self.faces[usize::from(first.face)];
        if first.face != second.face || by.abs() > KERN_MAX {
            return;
        }
        let is_full = face.pairs.len() >= PAIRS_MAX;
        let key = (first.glyph, second.glyph);
        if is_full && !face.pairs.contains_key(&key) {
            return;
        }
        let seen = face.pairs.entry(key).or_default();
        if let Some((_, count)) = seen.iter_mut().find(|(other, _)| (i32::from(*other) - by).abs() <= 1) {
            *count += 1;
        } else if seen.len() < DISTANCES_MAX {
            seen.push((by as i16, 1));
        }
    }

    /// Decides which pairs are kerned by the fonts themselves: those that were seen at one distance most of the time.
    pub(crate) fn settle_pairs(&mut self) {
        for face in &mut self.faces {
            let pairs = std::mem::take(&mut face.pairs);
            let usual = |seen: Vec<(i16, u32)>| {
                let all: u32 = seen.iter().map(|(_, count)| count).sum();
                let (by, count) =
                    seen.into_iter().max_by_key(|(by, count)| (*count, -i32::from(by.abs())))?;
                (by.abs() > 1 && count >= 2 && count * 2 > all).then_some(by)
            };
            let kerns = pairs.into_iter().filter_map(|(pair, seen)| usual(seen).map(|by| (pair, by)));
            face.typeface.kerns = kerns.collect::<BTreeMap<_, _>>();
        }
    }

    /// How much closer or further one glyph follows another by itself, in thousandths.
    pub(crate) fn kern(&self, first: Spot, second: Spot) -> f64 {
        if first.face != second.face {
            return 0.0;
        }
        let kerns = &self.faces[usize::from(first.face)].typeface.kerns;
        kerns.get(&(first.glyph, second.glyph)).map_or(0.0, |by| f64::from(*by))
    }

    /// Whether a browser might join two glyphs into one although the document did not.
    pub(crate) fn might_join(&self, first: Spot, second: Spot) -> bool {
        first.face == second.face
            && self.faces[usize::from(first.face)]
                .typeface
                .ligatures
                .keys()
                .any(|parts| parts.windows(2).any(|pair| pair == [first.glyph, second.glyph]))
    }

    /// The files of all fonts, in the order of their numbers.
    pub(crate) fn write(&self) -> Vec<Option<Vec<u8>>> {
        self.faces.iter().map(|face| face.typeface.write()).collect()
    }
}

impl Face {
    fn has_room(&self, letters: &[char]) -> bool {
        let is_free =
            |letter: &char| !self.typeface.letters.contains_key(letter) || self.blanks.contains(letter);
        match letters {
            [letter] => is_free(letter),
            letters => {
                let parts: Option<Vec<u16>> =
                    letters.iter().map(|letter| self.typeface.letters.get(letter).copied()).collect();
                parts.is_none_or(|parts| !self.typeface.ligatures.contains_key(&parts))
            }
        }
    }

    fn place(&mut self, letters: &[char], shape: Shape) -> Option<u16> {
        let face = &mut self.typeface;
        let [letter] = letters else {
            let mut parts = Vec::new();
            for letter in letters {
                let glyph = match face.letters.get(letter) {
                    Some(glyph) => *glyph,
                    None => {
                        let blank = Shape { outline: Default::default(), advance: 0 };
                        let glyph = face.add(blank)?;
                        face.letters.insert(*letter, glyph);
                        self.blanks.push(*letter);
                        glyph
                    }
                };
                parts.push(glyph);
            }
            let glyph = face.add(shape)?;
            face.ligatures.insert(parts, glyph);
            return Some(glyph);
        };
        if let Some(at) = self.blanks.iter().position(|blank| blank == letter) {
            self.blanks.swap_remove(at);
            let glyph = *face.letters.get(letter)?;
            *face.shapes.get_mut(usize::from(glyph) - 2)? = shape;
            return Some(glyph);
        }
        let glyph = face.add(shape)?;
        face.letters.insert(*letter, glyph);
        Some(glyph)
    }
}

/// From the outline to where its letter stands, in thousandths of the type, upwards.
fn fit(glyph: &TracedGlyph, stretch: f32, place: Affine) -> Option<Affine> {
    let scale = f64::from(glyph.size) / UNITS;
    if scale <= 0.0 {
        return None;
    }
    let frame = Affine::translate((f64::from(glyph.start.0), f64::from(glyph.start.1)))
        * Affine::rotate(f64::from(glyph.angle).to_radians())
        * Affine::scale_non_uniform(scale * f64::from(stretch), -scale);
    let fit = frame.inverse() * place;
    let [a, b, c, d, e, f] = fit.as_coeffs();
    let is_sane = [a, b, c, d].iter().all(|part| part.abs() < 20.0) && e.abs() < 4_000.0 && f.abs() < 4_000.0;
    is_sane.then_some(fit)
}

/// A fit in steps: what differs by less looks the same.
fn steps(fit: Affine) -> [i32; 6] {
    let [a, b, c, d, e, f] = fit.as_coeffs();
    let turn = |part: f64| (part * TURN_STEPS).round() as i32;
    let offset = |by: f64| if by.abs() <= OFFSET_MIN { 0 } else { (by / OFFSET_MIN).round() as i32 };
    [(a * WIDTH_STEPS).round() as i32, turn(b), turn(c), turn(d), offset(e), offset(f)]
}
