//! Products that prints are ordered as: which sizes they have, and whether a map is made for one.

use serde::Deserialize;
use serde_json::Value;

/// A poster by the provider's number, with its sides in inches. It is printed from edge to edge of the file, whichever
/// way that is turned.
#[derive(Debug, Clone, PartialEq)]
pub struct Poster {
    /// The provider's number.
    pub variant_id: i64,
    /// The shorter side and the longer one.
    pub inches: [f64; 2],
}

/// Printful's posters whose numbers are known for certain. Of others, Printful is asked before they are ordered.
static POSTERS: [Poster; 3] = [
    Poster { variant_id: 1, inches: [18.0, 24.0] },
    Poster { variant_id: 2, inches: [24.0, 36.0] },
    Poster { variant_id: 4464, inches: [12.0, 12.0] },
];

const MM_PER_INCH: f64 = 25.4;
/// How much of a side may differ: less than a printer's own tolerance.
const TOLERANCE: f64 = 0.005;

/// What a product is printed from, as its provider says: a file of so many pixels that fills so many inches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrintArea {
    /// Width and height in inches.
    pub inches: [f64; 2],
    /// Whether the file may be turned.
    pub can_rotate: bool,
}

impl PrintArea {
    /// Of this many pixels, which are printed so finely.
    #[must_use]
    pub fn of_pixels(pixels: [f64; 2], dpi: f64, can_rotate: bool) -> Self {
        PrintArea { inches: pixels.map(|side| side / dpi), can_rotate }
    }

    /// The size of page that fills it, as a specification says it.
    fn as_size(&self) -> String {
        let [short, long] = [self.inches[0].min(self.inches[1]), self.inches[0].max(self.inches[1])];
        if [short, long].iter().all(|side| side.fract() == 0.0) {
            return format!("\"{}\"", inches([short, long], "x"));
        }
        let sides = [short, long].map(|side| side * MM_PER_INCH);
        let is_near =
            |paper: &[f64; 2]| (0..2).all(|side| (sides[side] / paper[side] - 1.0).abs() <= TOLERANCE);
        match PAPERS_MM.iter().find(|(_, paper)| is_near(paper)) {
            Some((name, _)) => format!("\"{name}\""),
            None => format!("{{\"width_mm\": {:.1}, \"height_mm\": {:.1}}}", sides[0], sides[1]),
        }
    }

    /// Whether a file of this size in millimetres fills it and nothing else.
    fn is_filled_by(&self, [width, height]: [f64; 2]) -> bool {
        let [wide, high] = self.inches.map(|inches| inches * MM_PER_INCH);
        let is_near = |side: f64, wanted: f64| (side / wanted - 1.0).abs() <= TOLERANCE;
        is_near(width, wide) && is_near(height, high)
            || self.can_rotate && is_near(width, high) && is_near(height, wide)
    }
}

/// Inches as people write them.
fn inches([width, height]: [f64; 2], between: &str) -> String {
    let [width, height] = [width, height].map(|side| (side * 100.0).round() / 100.0);
    format!("{width}{between}{height}")
}

/// The paper of a specification, as far as it matters here.
#[derive(Deserialize)]
struct Page {
    size: Size,
    #[serde(default)]
    orientation: Orientation,
    #[serde(default)]
    bleed_mm: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    Named(String),
    Free { width_mm: f64, height_mm: f64 },
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Orientation {
    #[default]
    Portrait,
    Landscape,
}

/// Papers whose name does not tell their sides.
const PAPERS_MM: [(&str, [f64; 2]); 12] = [
    ("A0", [841.0, 1189.0]),
    ("A1", [594.0, 841.0]),
    ("A2", [420.0, 594.0]),
    ("A3", [297.0, 420.0]),
    ("A4", [210.0, 297.0]),
    ("A5", [148.0, 210.0]),
    ("A6", [105.0, 148.0]),
    ("Letter", [8.5 * MM_PER_INCH, 11.0 * MM_PER_INCH]),
    ("Legal", [8.5 * MM_PER_INCH, 14.0 * MM_PER_INCH]),
    ("Tabloid", [11.0 * MM_PER_INCH, 17.0 * MM_PER_INCH]),
    ("ANSI-C", [17.0 * MM_PER_INCH, 22.0 * MM_PER_INCH]),
    ("ANSI-D", [22.0 * MM_PER_INCH, 34.0 * MM_PER_INCH]),
];

impl Page {
    /// Width and height as the paper is turned; none if its name says nothing here.
    fn sides_mm(&self) -> Option<[f64; 2]> {
        let [a, b] = match &self.size {
            Size::Named(name) => match PAPERS_MM.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some((_, sides)) => *sides,
                None => {
                    let (a, b) = name.split_once('x')?;
                    [a, b].map(|side| side.parse::<f64>().unwrap_or(f64::NAN) * MM_PER_INCH)
                }
            },
            Size::Free { width_mm, height_mm } => [*width_mm, *height_mm],
        };
        Some(match self.orientation {
            Orientation::Portrait => [a.min(b), a.max(b)],
            Orientation::Landscape => [a.max(b), a.min(b)],
        })
    }

    fn told(&self) -> String {
        match &self.size {
            Size::Named(name) if name.contains('x') => format!("{} in", name.replace('x', " x ")),
            Size::Named(name) => name.clone(),
            Size::Free { width_mm, height_mm } => format!("{width_mm} x {height_mm} mm"),
        }
    }
}

/// The page of a map's specification.
pub(crate) fn page_of(specification: &str) -> serde_json::Result<Value> {
    #[derive(Deserialize)]
    struct Paged {
        #[serde(default)]
        page: Value,
    }
    serde_json::from_str(specification).map(|Paged { page }| page)
}

/// The products that a page can be ordered as, of those that are known here.
pub(crate) fn fitting(page: &Value) -> impl Iterator<Item = &'static Poster> {
    POSTERS.iter().filter(|poster| check_page(poster.variant_id, page).is_ok())
}

/// Refuses to order a page as a product of another size, in a sentence: it would be cropped, or printed too coarsely.
/// `page` is that of the map's specification. Of products that are not known here, only the provider can say
/// ([`check_area`]).
pub(crate) fn check_page(variant_id: i64, page: &Value) -> Result<(), String> {
    let poster = POSTERS.iter().find(|poster| poster.variant_id == variant_id);
    let Some(poster) = poster else { return Ok(()) };
    check_area(variant_id, page, &PrintArea { inches: poster.inches, can_rotate: true })
}

/// Refuses to order a page as a product that is printed from another area, in a sentence.
pub fn check_area(variant_id: i64, page: &Value, area: &PrintArea) -> Result<(), String> {
    let Ok(page) = Page::deserialize(page) else { return Ok(()) };
    if !page.sides_mm().is_some_and(|sides| area.is_filled_by(sides)) {
        let way = if area.can_rotate { "" } else { ", which cannot be turned" };
        return Err(format!(
            "This map is made for {}, and variant {variant_id} is printed from {} in{way}. Set page.size of the map to {} \
             and print it again, or order the variant of its size.",
            page.told(),
            inches(area.inches, " x "),
            area.as_size()
        ));
    }
    if page.bleed_mm > 0.0 {
        return Err(format!(
            "This map has a bleed of {} mm, and variant {variant_id} is printed without one: it would come out smaller and \
             cropped. Set page.bleed_mm of the map to 0 and print it again.",
            page.bleed_mm
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_is_ordered_only_as_a_product_of_its_size() {
        fn check(variant_id: i64, page: Value, refusal: &str) {
            let told = check_page(variant_id, &page).err().unwrap_or_default();
            assert!(told.contains(refusal) && told.is_empty() == refusal.is_empty(), "{page}: {told}");
        }
        check(1, json!({ "size": "18x24" }), "");
        check(1, json!({ "size": "18x24", "orientation": "landscape", "bleed_mm": 0 }), "");
        check(1, json!({ "size": { "width_mm": 609.6, "height_mm": 457.2 } }), "");
        check(1, json!({ "size": { "width_mm": 610, "height_mm": 457 } }), "");
        check(4464, json!({ "size": "12x12" }), "");
        check(
            2,
            json!({ "size": "18x24" }),
            "made for 18 x 24 in, and variant 2 is printed from 24 x 36 in. Set",
        );
        check(1, json!({ "size": "12x16" }), "made for 12 x 16 in");
        check(1, json!({ "size": "A2" }), "made for A2");
        check(1, json!({ "size": { "width_mm": 457.2, "height_mm": 620 } }), "made for 457.2 x 620 mm");
        check(1, json!({ "size": "18x24", "bleed_mm": 3 }), "a bleed of 3 mm");
        assert_eq!(
            fitting(&json!({ "size": "18x24" })).map(|poster| poster.variant_id).collect::<Vec<_>>(),
            [1]
        );
        assert_eq!(fitting(&json!({ "size": "A2" })).count(), 0);
        // What is not known here is for the provider to say.
        check(77, json!({ "size": "A2" }), "");
    }

    #[test]
    fn a_page_fills_the_area_that_the_provider_prints() {
        fn check(page: Value, (pixels, can_rotate): ([f64; 2], bool), fits: bool) {
            let area = PrintArea::of_pixels(pixels, 300.0, can_rotate);
            let told = check_area(7, &page, &area);
            assert_eq!(told.is_ok(), fits, "{page}: {told:?}");
        }
        let (poster, fixed) = (([7200.0, 6000.0], true), ([7200.0, 6000.0], false));
        check(json!({ "size": "20x24" }), poster, true);
        check(json!({ "size": "20x24", "orientation": "landscape" }), poster, true);
        check(json!({ "size": "20x24", "orientation": "landscape" }), fixed, true);
        check(json!({ "size": "20x24", "orientation": "portrait" }), fixed, false);
        check(json!({ "size": "18x24" }), poster, false);
        check(json!({ "size": "a2" }), ([4961.0, 7016.0], true), true);
        check(json!({ "size": "A2", "bleed_mm": 3 }), ([4961.0, 7016.0], true), false);
        check(json!({ "size": "Letter" }), ([2550.0, 3300.0], false), true);
    }

    #[test]
    fn the_size_to_set_is_one_that_a_specification_takes() {
        let size = |pixels| PrintArea::of_pixels(pixels, 300.0, true).as_size();
        assert_eq!(size([7200.0, 6000.0]), "\"20x24\"");
        assert_eq!(size([4961.0, 7016.0]), "\"A2\"");
        assert_eq!(size([1000.0, 2000.0]), "{\"width_mm\": 84.7, \"height_mm\": 169.3}");
    }
}
