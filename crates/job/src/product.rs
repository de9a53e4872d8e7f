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

/// Printful's posters whose numbers are known for certain. Others are ordered as asked for.
static POSTERS: [Poster; 3] = [
    Poster { variant_id: 1, inches: [18.0, 24.0] },
    Poster { variant_id: 2, inches: [24.0, 36.0] },
    Poster { variant_id: 4464, inches: [12.0, 12.0] },
];

const MM_PER_INCH: f64 = 25.4;
/// How much of a side may differ: less than a printer's own tolerance.
const TOLERANCE: f64 = 0.005;

/// The paper of a specification, as far as it matters here.
#[derive(Deserialize)]
struct Page {
    size: Size,
    #[serde(default)]
    bleed_mm: f64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    Named(String),
    Free { width_mm: f64, height_mm: f64 },
}

impl Size {
    /// Both sides, the shorter first; none for names that are not sides in inches, which no poster here has.
    fn sides_mm(&self) -> Option<[f64; 2]> {
        let [a, b] = match self {
            Size::Named(name) => {
                let (a, b) = name.split_once('x')?;
                [a, b].map(|side| side.parse::<f64>().unwrap_or(f64::NAN) * MM_PER_INCH)
            }
            Size::Free { width_mm, height_mm } => [*width_mm, *height_mm],
        };
        Some([a.min(b), a.max(b)])
    }

    fn told(&self) -> String {
        match self {
            Size::Named(name) if name.contains('x') => format!("{} in", name.replace('x', " x ")),
            Size::Named(name) => name.clone(),
            Size::Free { width_mm, height_mm } => format!("{width_mm} x {height_mm} mm"),
        }
    }
}

/// The products that a page can be ordered as, of those that are known here.
pub fn fitting(page: &Value) -> impl Iterator<Item = &'static Poster> {
    POSTERS.iter().filter(|poster| check_page(poster.variant_id, page).is_ok())
}

/// Refuses to order a page as a product of another size, in a sentence: it would be cropped, or printed too coarsely.
/// `page` is that of the map's specification.
pub fn check_page(variant_id: i64, page: &Value) -> Result<(), String> {
    let poster = POSTERS.iter().find(|poster| poster.variant_id == variant_id);
    let (Some(poster), Ok(page)) = (poster, Page::deserialize(page)) else { return Ok(()) };
    let [short, long] = poster.inches;
    let is_near = |side: f64, inches: f64| (side / (inches * MM_PER_INCH) - 1.0).abs() <= TOLERANCE;
    let fits = page.size.sides_mm().is_some_and(|[a, b]| is_near(a, short) && is_near(b, long));
    if !fits {
        return Err(format!(
            "This map is made for {}, and variant {variant_id} is a poster of {short} x {long} in. Set page.size of the map to \
             \"{short}x{long}\" and print it again, or order the variant of its size.",
            page.size.told()
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
            "made for 18 x 24 in, and variant 2 is a poster of 24 x 36 in. Set",
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
}
