//! Small documents, and what became of them.

pub(crate) use ode_testing::pdf::{Builder, one_page};

use ode_pdf_html::{Asset, Conversion, ConversionConfig, Limits, convert};

/// What becomes of a document with nothing special asked for.
pub(crate) fn converted(pdf: Vec<u8>) -> Conversion {
    convert(pdf, &ConversionConfig::default(), &Limits::default()).expect("it can be converted")
}

/// One of its files.
pub(crate) fn asset<'c>(conversion: &'c Conversion, path: &str) -> &'c Asset {
    let paths: Vec<&str> = conversion.assets.iter().map(|asset| asset.path.as_str()).collect();
    let found = conversion.assets.iter().find(|asset| asset.path == path);
    found.unwrap_or_else(|| panic!("there is no {path} among {paths:?} ({:?})", conversion.warnings))
}

/// The page to open.
pub(crate) fn html(conversion: &Conversion) -> String {
    String::from_utf8(asset(conversion, "index.html").bytes.clone()).expect("HTML is text")
}

/// What is in the body, without the frame around it.
pub(crate) fn main_of(pdf: Vec<u8>) -> String {
    let html = html(&converted(pdf));
    let from = html.find("<main>").expect("there is a body");
    html[from..html.find("</main>").expect("it ends")].to_owned()
}

/// The text that a reader would copy, line by line.
pub(crate) fn text_of(markup: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in markup.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => is_tag = false,
            letter if !is_tag => text.push(letter),
            _ => {}
        }
    }
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}
