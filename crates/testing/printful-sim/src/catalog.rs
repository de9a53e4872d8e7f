//! The catalogue: a poster in a few sizes, and the files that it is printed from.
//!
//! Variants 1, 2 and 4464 are Printful's own; the numbers of the others are this simulator's, for trying other sizes.

use crate::answer::Answer;
use serde_json::{Value, json};

/// The one product there is: an enhanced matte paper poster.
const PRODUCT: i64 = 1;
const NAME: &str = "Enhanced Matte Paper Poster";
/// Posters are printed this finely, from edge to edge of the file.
const DPI: u32 = 300;

/// A size of the poster.
#[derive(Debug)]
pub(crate) struct Poster {
    variant: i64,
    size: &'static str,
    /// Of its print file. Not always the shorter side first.
    pixels: [u32; 2],
    /// What one costs, in hundredths.
    pub(crate) cents: i64,
}

static POSTERS: [Poster; 6] = [
    Poster { variant: 1, size: "18″×24″", pixels: [5400, 7200], cents: 1350 },
    Poster { variant: 2, size: "24″×36″", pixels: [7200, 10_800], cents: 1850 },
    Poster { variant: 4464, size: "12″×12″", pixels: [3600, 3600], cents: 1150 },
    Poster { variant: 3, size: "20″×24″", pixels: [7200, 6000], cents: 1450 },
    Poster { variant: 4, size: "12″×18″", pixels: [3600, 5400], cents: 1200 },
    Poster { variant: 5, size: "A2", pixels: [4961, 7016], cents: 1300 },
];

impl Poster {
    pub(crate) fn find(variant: i64) -> Option<&'static Poster> {
        POSTERS.iter().find(|poster| poster.variant == variant)
    }
}

/// One size of the product.
pub(crate) fn variant(id: i64) -> Answer {
    let Some(poster) = Poster::find(id) else { return Answer::not_found() };
    let price = format!("{}.{:02}", poster.cents / 100, poster.cents % 100);
    Answer::v1(json!({
        "variant": {
            "id": id, "product_id": PRODUCT, "name": format!("{NAME} ({})", poster.size), "size": poster.size,
            "price": price, "in_stock": true,
        },
        "product": { "id": PRODUCT, "type": "POSTER", "title": NAME, "currency": "USD" },
    }))
}

/// What the sizes of the product are printed from.
pub(crate) fn print_files(product: i64) -> Answer {
    if product != PRODUCT {
        return Answer::not_found();
    }
    let file = |poster: &Poster| {
        let [width, height] = poster.pixels;
        json!({
            "printfile_id": poster.variant, "width": width, "height": height, "dpi": DPI, "fill_mode": "cover",
            "can_rotate": true,
        })
    };
    let variant = |poster: &Poster| json!({ "variant_id": poster.variant, "placements": { "default": poster.variant } });
    Answer::v1(json!({
        "product_id": PRODUCT, "available_placements": { "default": "Print file" },
        "printfiles": POSTERS.iter().map(file).collect::<Vec<Value>>(),
        "variant_printfiles": POSTERS.iter().map(variant).collect::<Vec<Value>>(),
    }))
}
