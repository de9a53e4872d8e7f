//! The page of HTML around the document's pages, its style sheet, and where each file goes.

use std::fmt::Write as _;

use crate::assets::{Asset, AssetKind};
use crate::book::Book;
use crate::config::ConversionConfig;
use crate::draw::{Kind, MARK, UNIT, short};
use crate::font;
use crate::page::Draft;
use crate::refusal::Refusal;
use crate::text::{Styles, write_line};
use crate::{Conversion, text};

/// Rules that do not depend on the document.
const CSS: &str = include_str!("frame.css");

/// CSS pixels in a point.
const PIXELS: f64 = 96.0 / 72.0;

pub(crate) fn write(book: Book, config: &ConversionConfig, bytes_max: usize) -> Result<Conversion, Refusal> {
    let mut styles = Styles::default();
    let mut sizes: Vec<(i64, i64)> = Vec::new();
    let mut main = String::new();
    for page in &book.pages {
        write_page(page, &book, &mut styles, &mut sizes, &mut main);
    }
    let fonts = if config.embed_fonts { book.faces.write() } else { Vec::new() };
    let mut files = Files { config, assets: Vec::new() };
    let mut css = format!(":root{{--z:{}}}\n{CSS}", short(config.zoom, 3));
    for (index, (width, height)) in sizes.iter().enumerate() {
        let px = |hundredths: &i64| short(*hundredths as f64 / 100.0 * PIXELS, 3);
        let _ = writeln!(css, ".d{index}{{--w:{};--h:{}}}", px(width), px(height));
    }
    let blank = font::blank().unwrap_or_default();
    let blank = files.place("fonts/z.woff2", AssetKind::Font, "font/woff2", blank);
    let _ = writeln!(css, "@font-face{{font-family:z;src:url({blank})}}");
    for (index, font) in fonts.into_iter().enumerate() {
        if let Some(font) = font {
            let place = files.place(&format!("fonts/f{index}.woff2"), AssetKind::Font, "font/woff2", font);
            let _ = writeln!(css, "@font-face{{font-family:f{index};src:url({place})}}");
        }
    }
    for (index, look) in book.store.look_list.iter().enumerate() {
        let _ = writeln!(css, ".s{index}{{{look}}}");
    }
    css.push_str(&styles.css());
    let pictures: Vec<String> = book
        .store
        .pictures
        .iter()
        .enumerate()
        .map(|(index, picture)| {
            let (ending, media) = match picture.kind {
                Kind::Jpeg => ("jpg", "image/jpeg"),
                Kind::Png => ("png", "image/png"),
            };
            let path = format!("images/{index}.{ending}");
            files.place(&path, AssetKind::Image, media, picture.bytes.clone())
        })
        .collect();
    let main = with_pictures(&main, &pictures);
    let mut assets = files.assets;
    let html = if config.single_file {
        document(&main, &format!("<style>{css}</style>"))
    } else {
        assets.insert(0, Asset { path: "style.css".into(), kind: AssetKind::Css, bytes: css.into_bytes() });
        document(&main, "<link rel=\"stylesheet\" href=\"style.css\">")
    };
    assets.insert(0, Asset { path: "index.html".into(), kind: AssetKind::Html, bytes: html.into_bytes() });
    let size: usize = assets.iter().map(|asset| asset.bytes.len()).sum();
    if size > bytes_max {
        return Err(Refusal::OutputTooLarge { bytes_max });
    }
    Ok(Conversion { assets, pages: book.pages.len(), warnings: book.warnings })
}

struct Files<'f> {
    config: &'f ConversionConfig,
    assets: Vec<Asset>,
}

impl Files<'_> {
    /// Puts a file where it belongs and gives the address by which it is found.
    fn place(&mut self, path: &str, kind: AssetKind, media: &str, bytes: Vec<u8>) -> String {
        if self.config.single_file {
            return format!("data:{media};base64,{}", base64(&bytes));
        }
        self.assets.push(Asset { path: path.into(), kind, bytes });
        path.into()
    }
}

fn document(main: &str, style: &str) -> String {
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Document</title>\n");
    let _ = write!(html, "{style}\n</head>\n<body>\n<main>\n{main}</main>\n</body>\n</html>\n");
    html
}

fn write_page(page: &Draft, book: &Book, styles: &mut Styles, sizes: &mut Vec<(i64, i64)>, out: &mut String) {
    let size = ((page.size.0 * 100.0).round() as i64, (page.size.1 * 100.0).round() as i64);
    let class = sizes.iter().position(|known| *known == size).unwrap_or_else(|| {
        sizes.push(size);
        sizes.len() - 1
    });
    let number = page.number;
    let _ = writeln!(out, "<section class=\"page d{class}\" id=\"page-{number}\" aria-label=\"Page {number}\">");
    if !page.drawing.body.is_empty() {
        let (width, height) = (short(page.size.0 * UNIT, 0), short(page.size.1 * UNIT, 0));
        let _ = write!(out, "<svg class=\"g\" viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\">");
        if !page.drawing.defs.is_empty() {
            let _ = write!(out, "<defs>{}</defs>", page.drawing.defs);
        }
        let _ = writeln!(out, "{}</svg>", page.drawing.body);
    }
    out.push_str("<div class=\"t\">\n");
    for block in &page.blocks {
        out.push_str("<p>");
        for (index, line) in block.iter().enumerate() {
            if index > 0 {
                out.push_str("<br>\n");
            }
            write_line(line, &book.faces, styles, ("span", ""), out);
        }
        out.push_str("</p>\n");
    }
    out.push_str("</div>\n</section>\n");
    let _ = text::escape;
}

/// Puts the addresses of pictures in their places.
fn with_pictures(markup: &str, pictures: &[String]) -> String {
    let mut out = String::with_capacity(markup.len());
    for (index, part) in markup.split(MARK).enumerate() {
        if index % 2 == 0 {
            out.push_str(part);
        } else if let Some(place) = part.parse().ok().and_then(|index: usize| pictures.get(index)) {
            out.push_str(place);
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let part = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for at in 0..4 {
            let is_there = at <= three.len();
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if is_there { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_as_everybody_writes_it() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"M"), "TQ==");
        assert_eq!(base64(b"Ma"), "TWE=");
        assert_eq!(base64(b"Man"), "TWFu");
    }
}
