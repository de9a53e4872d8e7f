//! The page of HTML around the document's pages, its style sheet, and where each file goes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::Conversion;
use crate::assets::{Asset, AssetKind};
use crate::body::Writer;
use crate::book::Book;
use crate::config::ConversionConfig;
use crate::controls;
use crate::document::Entry;
use crate::draw::{Kind, MARK, Store, UNIT, blends, short};
use crate::font;
use crate::page::Draft;
use crate::refusal::Refusal;
use crate::text::{Styles, escape};

/// Rules that do not depend on the document.
const CSS: &str = include_str!("frame.css");
/// CSS pixels in a point.
const PIXELS: f64 = 96.0 / 72.0;
/// A page whose longer side has more pixels than this is shown smaller: it is as long as a page may be that says nothing
/// of its unit, and at the largest zoom browsers still show all of it.
const SIDE_MAX: f64 = 14_400.0 * PIXELS;
/// A drawing longer than this is a file of its own, loaded when its page is about to be seen.
const DRAWING_BYTES_MAX: usize = 32 << 10;
/// Pages whose drawings are loaded with the page itself.
const EAGER_PAGES: u32 = 2;
/// A picture smaller than this is no file of its own.
const PICTURE_BYTES_MIN: usize = 1 << 10;

pub(crate) fn write(book: Book, config: &ConversionConfig, bytes_max: usize) -> Result<Conversion, Refusal> {
    let mut files = Files { is_single: config.single_file, assets: Vec::new() };
    let pictures = place_pictures(&book.store, &mut files);
    let mut styles = Styles::default();
    let mut sizes: Vec<(i64, i64)> = Vec::new();
    let mut main = String::new();
    let mut writer = Writer::new(&book.faces, &mut styles, &book.tags, &book.pages);
    for page in &book.pages {
        let size = ((page.size.0 * 100.0).round() as i64, (page.size.1 * 100.0).round() as i64);
        let class = sizes.iter().position(|known| *known == size).unwrap_or_else(|| {
            sizes.push(size);
            sizes.len() - 1
        });
        let number = page.number;
        let _ = writeln!(
            main,
            "<section class=\"page d{class}\" id=\"page-{number}\" aria-label=\"Page {number}\">"
        );
        draw(page, &book.store, &pictures, &mut files, &mut main);
        main.push_str("<div class=\"t\">\n");
        writer.page(page, &mut main);
        controls::write(page, &book.pages, writer.styles, &mut main);
        main.push_str("</div>\n</section>\n");
    }
    let has_top_heading = writer.has_top_heading;
    let css = style_sheet(&book, config, &styles, &sizes, &mut files);
    let html = document(&book, &main, has_top_heading, css, &mut files);
    let mut assets =
        vec![Asset { path: "index.html".into(), kind: AssetKind::Html, bytes: html.into_bytes() }];
    assets.extend(files.assets);
    let size: usize = assets.iter().map(|asset| asset.bytes.len()).sum();
    if size > bytes_max {
        return Err(Refusal::OutputTooLarge { bytes_max });
    }
    Ok(Conversion {
        assets,
        pages: book.pages.len(),
        glyphs: book.glyphs,
        unknown_glyphs: book.unknown_glyphs,
        warnings: book.warnings,
    })
}

struct Files {
    is_single: bool,
    assets: Vec<Asset>,
}

impl Files {
    /// Puts a file where it belongs and gives the address by which it is found.
    fn place(&mut self, path: &str, kind: AssetKind, media: &str, bytes: Vec<u8>) -> String {
        if self.is_single || (kind == AssetKind::Image && bytes.len() < PICTURE_BYTES_MIN) {
            return format!("data:{media};base64,{}", base64(&bytes));
        }
        self.assets.push(Asset { path: path.into(), kind, bytes });
        path.into()
    }
}

fn place_pictures(store: &Store, files: &mut Files) -> Vec<String> {
    let place = |(index, picture): (usize, &crate::draw::Picture)| {
        let (ending, media) = match picture.kind {
            Kind::Jpeg => ("jpg", "image/jpeg"),
            Kind::Png => ("png", "image/png"),
        };
        let path = format!("images/{index}.{ending}");
        files.place(&path, AssetKind::Image, media, picture.bytes.clone())
    };
    store.pictures.iter().enumerate().map(place).collect()
}

/// Writes a page's drawing, or refers to the file that it is in.
fn draw(page: &Draft, store: &Store, pictures: &[String], files: &mut Files, out: &mut String) {
    if let Some(place) = page.picture.and_then(|picture| pictures.get(picture)) {
        image(page, place, out);
        return;
    }
    if page.drawing.body.is_empty() {
        return;
    }
    let (width, height) = (short(page.size.0 * UNIT, 0), short(page.size.1 * UNIT, 0));
    let mut inner = String::new();
    if !page.drawing.defs.is_empty() {
        let _ = write!(inner, "<defs>{}</defs>", page.drawing.defs);
    }
    inner.push_str(&page.drawing.body);
    // A drawing that shows pictures cannot be a picture itself: browsers would not load them.
    if files.is_single || inner.len() < DRAWING_BYTES_MAX || inner.contains(MARK) {
        let _ = write!(out, "<svg class=\"g\" viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\">");
        with_pictures(&inner, pictures, out);
        out.push_str("</svg>\n");
        return;
    }
    let mut svg =
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\"><style>");
    for index in looks_in(&inner) {
        if let Some(look) = store.look_list.get(index) {
            let _ = write!(svg, ".s{index}{{{look}}}");
        }
    }
    if inner.contains("class=\"b") {
        svg.push_str(&blends());
    }
    let _ = write!(svg, "</style>{inner}</svg>");
    let path = format!("drawings/{}.svg", page.number);
    let place = files.place(&path, AssetKind::Svg, "image/svg+xml", svg.into_bytes());
    image(page, &place, out);
}

/// The numbers of the looks that a drawing has, in their order.
fn looks_in(drawing: &str) -> BTreeSet<usize> {
    let classes = drawing.split("class=\"s").skip(1);
    classes.filter_map(|rest| rest.split_once('"')?.0.parse().ok()).collect()
}

/// Shows a page's drawing from a file. That of the first pages is wanted at once.
fn image(page: &Draft, place: &str, out: &mut String) {
    let lazy = if page.number <= EAGER_PAGES { "" } else { " loading=\"lazy\"" };
    let _ = writeln!(out, "<img class=\"g\" src=\"{place}\" alt=\"\"{lazy}>");
}

fn style_sheet(
    book: &Book,
    config: &ConversionConfig,
    styles: &Styles,
    sizes: &[(i64, i64)],
    files: &mut Files,
) -> String {
    let mut css = format!(":root{{--z:{}}}\n{CSS}{}", short(config.zoom, 3), blends());
    for (index, (width, height)) in sizes.iter().enumerate() {
        let [width, height] = [width, height].map(|hundredths| *hundredths as f64 / 100.0 * PIXELS);
        let scale = (SIDE_MAX / width.max(height)).min(1.0);
        let [width, height] = [width, height].map(|side| short((side * scale).max(1.0), 3));
        let shown = if scale < 1.0 { format!("--s:{};", short(scale, 18)) } else { String::new() };
        // On paper of its own size, each page is one sheet.
        let _ = writeln!(css, ".d{index}{{--w:{width};--h:{height};{shown}page:d{index}}}");
        let _ = writeln!(css, "@page d{index}{{size:{width}px {height}px}}");
    }
    let mut font = |name: &str, bytes: Vec<u8>| {
        let place = files.place(&format!("fonts/{name}.woff2"), AssetKind::Font, "font/woff2", bytes);
        let _ = writeln!(css, "@font-face{{font-family:{name};src:url({place})}}");
    };
    if let Some(blank) = font::blank() {
        font("z", blank);
    }
    if config.embed_fonts {
        for (index, file) in book.faces.write().into_iter().enumerate() {
            if let Some(file) = file {
                font(&format!("f{index}"), file);
            }
        }
    }
    for (index, look) in book.store.look_list.iter().enumerate() {
        let _ = writeln!(css, ".s{index}{{{look}}}");
    }
    css.push_str(&styles.css());
    css
}

fn document(book: &Book, main: &str, has_top_heading: bool, css: String, files: &mut Files) -> String {
    let mut title = String::new();
    escape(book.facts.title.as_deref().unwrap_or("PDF document"), &mut title);
    let language = book.facts.language.as_deref().unwrap_or("und");
    let common = "default-src 'none'; base-uri 'none'; form-action 'none'";
    let (policy, style) = if files.is_single {
        let digest = base64(&Sha256::digest(css.as_bytes()));
        let policy = format!("{common}; style-src 'sha256-{digest}'; img-src data:; font-src data:");
        (policy, format!("<style>{css}</style>"))
    } else {
        let css = Asset { path: "style.css".into(), kind: AssetKind::Css, bytes: css.into_bytes() };
        files.assets.insert(0, css);
        let policy = format!("{common}; style-src 'self'; img-src 'self' data:; font-src 'self'");
        (policy, "<link rel=\"stylesheet\" href=\"style.css\">".to_owned())
    };
    let mut html = format!("<!DOCTYPE html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    // Without an icon, browsers would ask the server for one.
    let _ = writeln!(
        html,
        "<title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n{style}\n</head>\n<body>"
    );
    if !book.outline.is_empty() {
        html.push_str("<nav aria-label=\"Contents\"><details><summary>Contents</summary>");
        outline(&book.outline, &book.pages, &mut html);
        html.push_str("</details></nav>\n");
    }
    html.push_str("<main>\n");
    if !has_top_heading {
        let _ = writeln!(html, "<h1 class=\"o\">{title}</h1>");
    }
    let _ = write!(html, "{main}</main>\n</body>\n</html>\n");
    html
}

fn outline(entries: &[Entry], pages: &[Draft], html: &mut String) {
    html.push_str("<ol>");
    for entry in entries {
        html.push_str("<li>");
        let page = entry.page.filter(|number| pages.iter().any(|page| page.number == *number));
        match page {
            Some(page) => {
                let _ = write!(html, "<a href=\"#page-{page}\">");
                escape(&entry.title, html);
                html.push_str("</a>");
            }
            None => escape(&entry.title, html),
        }
        if !entry.inner.is_empty() {
            outline(&entry.inner, pages, html);
        }
        html.push_str("</li>");
    }
    html.push_str("</ol>");
}

/// Appends markup with the addresses of pictures in their places.
fn with_pictures(markup: &str, pictures: &[String], out: &mut String) {
    for (index, part) in markup.split(MARK).enumerate() {
        if index % 2 == 0 {
            out.push_str(part);
        } else if let Some(place) = part.parse().ok().and_then(|index: usize| pictures.get(index)) {
            out.push_str(place);
        }
    }
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
