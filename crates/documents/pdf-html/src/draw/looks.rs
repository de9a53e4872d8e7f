//! How shapes look, as declarations and classes of CSS.

use super::path::{UNIT, short};
use super::store::Store;
use hayro_interpret::{BlendMode, StrokeProps};
use std::fmt::Write as _;

/// How the look of a stroke begins.
pub(super) const STROKED: &str = "fill:none;";

/// The class of a look, as an attribute; nothing for plain black.
pub(super) fn class(store: &mut Store, look: &str) -> String {
    let look = look.trim_start_matches(';');
    if look.is_empty() { String::new() } else { format!(" class=\"s{}\"", store.look(look)) }
}

/// The declarations of a fill.
pub(super) fn fill([red, green, blue, alpha]: [u8; 4]) -> String {
    let mut look = String::new();
    if (red, green, blue) != (0, 0, 0) {
        let _ = write!(look, "fill:{}", colour(red, green, blue));
    }
    if alpha != 255 {
        let _ = write!(look, ";fill-opacity:{}", short(f64::from(alpha) / 255.0, 3));
    }
    look
}

/// A colour as short as it may be.
pub(crate) fn colour(red: u8, green: u8, blue: u8) -> String {
    let is_short = [red, green, blue].iter().all(|part| part >> 4 == part & 15);
    if is_short {
        format!("#{:x}{:x}{:x}", red & 15, green & 15, blue & 15)
    } else {
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

pub(super) fn stroke_look(
    props: &StrokeProps,
    width: f64,
    scale: f64,
    [red, green, blue, alpha]: [u8; 4],
) -> String {
    use hayro_interpret::kurbo::{Cap, Join};
    let mut look = format!("{STROKED}stroke:{}", colour(red, green, blue));
    let _ = write!(look, ";stroke-width:{}", short(width * UNIT, 1));
    if alpha != 255 {
        let _ = write!(look, ";stroke-opacity:{}", short(f64::from(alpha) / 255.0, 3));
    }
    match props.line_cap {
        Cap::Butt => {}
        Cap::Round => look.push_str(";stroke-linecap:round"),
        Cap::Square => look.push_str(";stroke-linecap:square"),
    }
    match props.line_join {
        Join::Miter => {
            let _ = write!(look, ";stroke-miterlimit:{}", short(f64::from(props.miter_limit).max(1.0), 2));
        }
        Join::Round => look.push_str(";stroke-linejoin:round"),
        Join::Bevel => look.push_str(";stroke-linejoin:bevel"),
    }
    if props.dash_array.iter().any(|dash| *dash > 0.0) {
        let dashes: Vec<String> =
            props.dash_array.iter().map(|dash| short(f64::from(*dash).abs() * scale * UNIT, 1)).collect();
        let _ = write!(look, ";stroke-dasharray:{}", dashes.join(" "));
        if props.dash_offset != 0.0 {
            let offset = short(f64::from(props.dash_offset) * scale * UNIT, 1);
            let _ = write!(look, ";stroke-dashoffset:{offset}");
        }
    }
    look
}

/// The rules of all ways of blending.
pub(crate) fn blends() -> String {
    let names = [
        "multiply",
        "screen",
        "overlay",
        "darken",
        "lighten",
        "color-dodge",
        "color-burn",
        "hard-light",
        "soft-light",
        "difference",
        "exclusion",
        "hue",
        "saturation",
        "color",
        "luminosity",
    ];
    let rule = |(index, name): (usize, &&str)| format!(".b{}{{mix-blend-mode:{name}}}\n", index + 1);
    names.iter().enumerate().map(rule).collect()
}

pub(super) fn blend_class(blend: BlendMode) -> &'static str {
    match blend {
        BlendMode::Normal => "",
        BlendMode::Multiply => "b1",
        BlendMode::Screen => "b2",
        BlendMode::Overlay => "b3",
        BlendMode::Darken => "b4",
        BlendMode::Lighten => "b5",
        BlendMode::ColorDodge => "b6",
        BlendMode::ColorBurn => "b7",
        BlendMode::HardLight => "b8",
        BlendMode::SoftLight => "b9",
        BlendMode::Difference => "b10",
        BlendMode::Exclusion => "b11",
        BlendMode::Hue => "b12",
        BlendMode::Saturation => "b13",
        BlendMode::Color => "b14",
        BlendMode::Luminosity => "b15",
    }
}
