//! What tesseract writes: a page of HTML whose elements say in their titles where each line and word stands.

use ode_pdf::{Recognised, RecognisedLine, RecognisedWord, Rect};
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// Reads one page; nothing if it is not what tesseract writes.
pub(crate) fn parse(page: u32, hocr: &str) -> Option<Recognised> {
    let mut reader = Reader::from_str(hocr);
    let mut recognised = Recognised { page, ..Recognised::default() };
    // The word that is open.
    let mut word: Option<RecognisedWord> = None;
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => match class(&element).as_deref() {
                Some("ocr_page") => {
                    let bbox = Title::of(&element)?.bbox()?;
                    (recognised.width, recognised.height) = (bbox.x1 - bbox.x0, bbox.y1 - bbox.y0);
                }
                // Headings, captions and floating text are lines too.
                Some("ocr_line" | "ocr_header" | "ocr_textfloat" | "ocr_caption") => {
                    recognised.lines.push(line(&Title::of(&element)?)?);
                }
                Some("ocrx_word") => {
                    let title = Title::of(&element)?;
                    let percent = title.numbers("x_wconf").first().map_or(0.0, |sure| sure.clamp(0.0, 100.0));
                    word = Some(RecognisedWord {
                        bbox: title.bbox()?,
                        percent: percent as u8,
                        ..Default::default()
                    });
                }
                _ => {}
            },
            Event::Text(text) => {
                if let Some(word) = &mut word {
                    word.text.push_str(text.xml10_content().ok()?.trim());
                }
            }
            Event::GeneralRef(reference) => {
                if let Some(word) = &mut word {
                    match reference.resolve_char_ref().ok()? {
                        Some(character) => word.text.push(character),
                        None => word.text.push_str(resolve_predefined_entity(&reference.decode().ok()?)?),
                    }
                }
            }
            // Within a word there may be <strong> and <em>, which end before it.
            Event::End(element) if element.name().as_ref() == b"span" => {
                if let (Some(word), Some(line)) = (word.take(), recognised.lines.last_mut())
                    && !word.text.is_empty()
                {
                    line.words.push(word);
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    (recognised.width > 0.0).then_some(recognised)
}

fn class(element: &BytesStart<'_>) -> Option<String> {
    let class = element.try_get_attribute("class").ok()??;
    String::from_utf8(class.value.into_owned()).ok()
}

fn line(title: &Title) -> Option<RecognisedLine> {
    let bbox = title.bbox()?;
    let first = |name| title.numbers(name).first().copied();
    // Told counterclockwise.
    let angle = first("textangle").unwrap_or(0.0);
    let rotation = (360.0 - angle).rem_euclid(360.0).round() as u16 / 90 * 90;
    let across = if rotation.is_multiple_of(180) { bbox.y1 - bbox.y0 } else { bbox.x1 - bbox.x0 };
    let height = first("x_size").filter(|size| *size > 0.0).unwrap_or(across).max(1.0);
    let below = first("x_descenders").unwrap_or(0.0).clamp(0.0, height / 2.0);
    let base = match title.numbers("baseline")[..] {
        [slope, offset] => (-offset, -slope),
        // Not told of a line that is turned: it stands on its box, or its tails do.
        _ if across >= height - below / 2.0 => (below, 0.0),
        _ => (0.0, 0.0),
    };
    Some(RecognisedLine { rotation, height, below, base, bbox, words: Vec::new() })
}

/// The properties in an element's title: names and numbers, such as `bbox 1 2 3 4; x_wconf 95`.
struct Title(String);

impl Title {
    fn of(element: &BytesStart<'_>) -> Option<Self> {
        let title = element.try_get_attribute("title").ok()??;
        String::from_utf8(title.value.into_owned()).ok().map(Self)
    }

    /// The numbers of a property; none where it is not there.
    fn numbers(&self, name: &str) -> Vec<f32> {
        let mut properties = self.0.split(';').map(|property| property.split_whitespace());
        let numbers = properties.find_map(|mut words| (words.next() == Some(name)).then_some(words));
        let numbers = numbers.into_iter().flatten().filter_map(|number| number.parse().ok());
        numbers.filter(|number: &f32| number.is_finite()).collect()
    }

    fn bbox(&self) -> Option<Rect> {
        match self.numbers("bbox")[..] {
            [x0, y0, x1, y1] if x0 <= x1 && y0 <= y1 => Some(Rect { x0, y0, x1, y1 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><body>
  <div class='ocr_page' id='page_1' title='image "page.pgm"; bbox 0 0 2481 3508; ppageno 0; scan_res 300 300'>
    <p class='ocr_par' lang='eng' title="bbox 170 132 888 186">
     <span class='ocr_line' title="bbox 170 132 888 186; baseline 0.001 -12; x_size 54; x_descenders 11; x_ascenders 11">
      <span class='ocrx_word' title='bbox 170 134 240 174; x_wconf 95'>R&amp;D</span>
      <span class='ocrx_word' title='bbox 259 132 432 175; x_wconf 93'><strong>L&#39;Or</strong></span>
      <span class='ocrx_word' title='bbox 500 132 510 175; x_wconf 12'> </span>
     </span>
     <span class='ocr_header' title="bbox 3322 170 3376 888; textangle 270; x_size 54; x_descenders 11">
      <span class='ocrx_word' title='bbox 3334 170 3374 240; x_wconf 90'>PT</span>
     </span>
    </p>
  </div></body></html>"#;

    #[test]
    fn lines_and_words_are_read_with_their_places() {
        let page = parse(3, PAGE).unwrap();
        assert_eq!((page.page, page.width, page.height), (3, 2481.0, 3508.0));
        let [first, turned] = &page.lines[..] else { panic!("two lines: {page:?}") };
        assert_eq!((first.rotation, first.height, first.below), (0, 54.0, 11.0));
        assert_eq!(first.base, (12.0, -0.001));
        let words: Vec<(&str, u8)> =
            first.words.iter().map(|word| (word.text.as_str(), word.percent)).collect();
        assert_eq!(words, [("R&D", 95), ("L'Or", 93)]);
        assert_eq!(first.words[0].bbox, Rect { x0: 170.0, y0: 134.0, x1: 240.0, y1: 174.0 });
        assert_eq!((turned.rotation, turned.base), (90, (11.0, 0.0)));
    }

    #[test]
    fn anything_else_is_nothing() {
        for text in ["", "no markup", "<html><body>", "<div class='ocr_page' title='bbox 1 2'></div>"] {
            assert_eq!(parse(1, text), None, "of {text}");
        }
    }
}
