//! What a conversion is asked to do.

use std::ops::RangeInclusive;

/// How to convert a document. Keys that are not listed here are refused by their name.
///
/// ```
/// let config: ode_pdf_html::ConversionConfig = serde_json::from_str(r#"{"zoom": 1.5, "single_file": true}"#).unwrap();
/// assert_eq!(config.zoom, 1.5);
/// let wrong = serde_json::from_str::<ode_pdf_html::ConversionConfig>(r#"{"zoomm": 1.5}"#).unwrap_err();
/// assert!(wrong.to_string().contains("zoomm"));
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConversionConfig {
    /// How large pages are shown at first: 1 is their real size. From 0.1 to 10.
    pub zoom: f64,
    /// Whether letters are set in fonts rebuilt from the document's. If not, they are drawn as shapes with the text
    /// over them unseen: it looks the same and can be copied, and nobody's font is passed on.
    pub embed_fonts: bool,
    /// One HTML file that holds everything, instead of a page with its files beside it.
    pub single_file: bool,
    /// Which pages, such as `1-3`; all when it is not given.
    pub pages: Option<Pages>,
    /// The kind of HTML. There is one.
    pub format: Format,
}

/// The kind of HTML.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// HTML as browsers know it today.
    #[default]
    Html5,
}

impl Default for ConversionConfig {
    fn default() -> Self {
        Self { zoom: 1.0, embed_fonts: true, single_file: false, pages: None, format: Format::Html5 }
    }
}

/// Zooms that make sense.
pub const ZOOMS: RangeInclusive<f64> = 0.1..=10.0;

/// A range of pages, counted from 1: `3`, `2-5` or `4-`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pages {
    first: u32,
    /// Nothing: to the end.
    last: Option<u32>,
}

/// A range of pages that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a range of pages. Write one page such as 3, a range such as 2-5, or 4- for all from page 4 on."
)]
pub struct BadPages(String);

impl std::str::FromStr for Pages {
    type Err = BadPages;

    fn from_str(text: &str) -> Result<Self, BadPages> {
        let bad = || BadPages(text.to_owned());
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|page| *page > 0).ok_or_else(bad);
        let (first, last) = match text.split_once('-') {
            None => {
                let page = number(text)?;
                (page, Some(page))
            }
            Some((first, "")) => (number(first)?, None),
            Some((first, last)) => (number(first)?, Some(number(last)?)),
        };
        if last.is_some_and(|last| last < first) {
            return Err(bad());
        }
        Ok(Self { first, last })
    }
}

impl TryFrom<String> for Pages {
    type Error = BadPages;

    fn try_from(text: String) -> Result<Self, BadPages> {
        text.parse()
    }
}

impl From<Pages> for String {
    fn from(pages: Pages) -> Self {
        pages.to_string()
    }
}

impl std::fmt::Display for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.last {
            Some(last) if last == self.first => write!(f, "{last}"),
            Some(last) => write!(f, "{}-{last}", self.first),
            None => write!(f, "{}-", self.first),
        }
    }
}

impl Pages {
    /// Whether the page with this index, counted from nought, is in the range.
    pub(crate) fn contains(&self, index: usize) -> bool {
        let page = index + 1;
        page >= self.first as usize && self.last.is_none_or(|last| page <= last as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_pages_are_read_and_refused() {
        let check = |text: &str, expected: Option<&str>| {
            let read = text.parse::<Pages>().ok().map(|pages| pages.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        };
        check("3", Some("3"));
        check("2-5", Some("2-5"));
        check("4-", Some("4-"));
        check("0", None);
        check("5-2", None);
        check("x", None);
        check("", None);
        check("-3", None);
    }

    #[test]
    fn unknown_key_is_refused_by_its_name() {
        let refused =
            |config: &str| serde_json::from_str::<ConversionConfig>(config).unwrap_err().to_string();
        assert!(refused(r#"{"zooom": 2}"#).contains("`zooom`"));
        assert!(refused(r#"{"pages": "9-1"}"#).contains("9-1"));
        assert!(refused(r#"{"format": "xhtml"}"#).contains("`xhtml`"));
    }
}
