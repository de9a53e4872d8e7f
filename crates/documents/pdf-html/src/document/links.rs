//! Links of a page: to other pages, and to addresses that cannot do harm.

use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Rect as Box4};
use hayro_interpret::hayro_syntax::page::Page as Sheet;
use hayro_interpret::kurbo::{Affine, Rect};

use super::places::Places;
use super::string;

/// Links of one page that are read.
const LINKS_MAX: usize = 5_000;
const HIDDEN: u32 = 1 << 1;
const NO_VIEW: u32 = 1 << 5;

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A page, counted from 1.
    Page(u32),
    Address(String),
}

/// A link and the part of the page that it lies over.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) area: Rect,
    pub(crate) target: Target,
    pub(crate) label: Option<String>,
}

/// The annotations of a page that are shown.
pub(super) fn shown<'a>(sheet: &Sheet<'a>, kind: &[u8]) -> Vec<Dict<'a>> {
    let Some(annotations) = sheet.raw().get::<Array<'a>>(b"Annots") else {
        return Vec::new();
    };
    let is_wanted = |annotation: &Dict<'_>| {
        annotation.get::<u32>(b"F").unwrap_or(0) & (HIDDEN | NO_VIEW) == 0
            && annotation.get::<Name<'_>>(b"Subtype").is_some_and(|subtype| subtype.as_ref() == kind)
    };
    annotations.iter::<Dict<'a>>().filter(is_wanted).take(LINKS_MAX).collect()
}

/// The part of the page, as shown, that an annotation lies over.
pub(super) fn area(annotation: &Dict<'_>, to_page: Affine) -> Option<Rect> {
    let area = annotation.get::<Box4>(b"Rect")?;
    let area = to_page.transform_rect_bbox(Rect::new(area.x0, area.y0, area.x1, area.y1));
    (area.is_finite() && area.width() > 0.0 && area.height() > 0.0).then_some(area)
}

/// The links of a page.
pub(crate) fn links(sheet: &Sheet<'_>, to_page: Affine, places: &Places) -> Vec<Link> {
    let link = |annotation: Dict<'_>| {
        let target = match address(&annotation) {
            Some(address) => Target::Address(address),
            None => Target::Page(places.target(&annotation)?),
        };
        Some(Link { area: area(&annotation, to_page)?, target, label: string(&annotation, b"Contents") })
    };
    shown(sheet, b"Link").into_iter().filter_map(link).collect()
}

fn address(annotation: &Dict<'_>) -> Option<String> {
    let action = annotation.get::<Dict<'_>>(b"A")?;
    let is_address = action.get::<Name<'_>>(b"S").is_some_and(|kind| kind.as_ref() == b"URI");
    let address = string(&action, b"URI").filter(|_| is_address)?;
    is_harmless(&address).then_some(address)
}

/// Whether an address is of the web or of mail. Others could run programs or read files.
fn is_harmless(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once(':') else {
        return false;
    };
    let is_web = matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") && rest.starts_with("//");
    is_web || scheme.eq_ignore_ascii_case("mailto")
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn only_addresses_of_the_web_and_of_mail_are_links() {
        let check = |address: &str, expected: bool| assert_eq!(is_harmless(address), expected, "{address}");
        check("https://example.org/", true);
        check("HTTP://example.org", true);
        check("mailto:a@example.org", true);
        check("javascript:alert(1)", false);
        check(" javascript:alert(1)", false);
        check("file:///etc/passwd", false);
        check("data:text/html,x", false);
        check("https:example", false);
        check("//example.org", false);
        check("chapter.pdf", false);
    }
}
