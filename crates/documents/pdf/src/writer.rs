//! The model as plain text.

use std::ops::Range;

use crate::text::{Document, Page};

/// Lines that are searched for the rest of a broken word: the cells of a wide table's row and a little more.
const LINES_AHEAD: usize = 24;

impl Document {
    /// The document's text: one line for each line, an empty line between blocks, a form feed after each page.
    ///
    /// A word that is broken by a hyphen at the end of its line is put together again.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for page in &self.pages {
            write_page(page, &mut text);
            text.push('\u{c}');
        }
        text
    }
}

fn write_page(page: &Page, text: &mut String) {
    // Words that were already written as the end of a word above them.
    let mut is_written = vec![false; page.words.len()];
    for block in &page.blocks {
        for index in block.lines.clone() {
            let line = &page.lines[index];
            let words = line.words.clone().filter(|word| !is_written[*word]).collect::<Vec<_>>();
            for (position, word) in words.iter().enumerate() {
                if position > 0 {
                    text.push(' ');
                }
                write_word(&page.words[*word].text, text);
            }
            let rest = words.last().filter(|word| is_hyphenated(&page.words[**word].text));
            if let Some(rest) = rest.and_then(|_| continuation(page, block.lines.clone(), index)) {
                if text.ends_with(['-', '\u{2010}']) {
                    text.pop();
                }
                write_word(&page.words[rest].text, text);
                is_written[rest] = true;
            }
            if !words.is_empty() {
                text.push('\n');
            }
        }
        text.push('\n');
    }
}

fn write_word(word: &str, text: &mut String) {
    // What cannot be read is left blank.
    let shown = word.chars().filter(|character| *character != '\u{ad}');
    text.extend(shown.map(|character| if character == '\u{fffd}' { ' ' } else { character }));
}

/// The first word of the line right below, if it can be the rest of a word that was broken: it begins small.
fn continuation(page: &Page, block: Range<usize>, index: usize) -> Option<usize> {
    let above = page.lines[index].bbox;
    let last = &page.words[page.lines[index].words.end - 1];
    // The next lines in reading order may be other cells of the same row.
    let below = page.lines[index + 1..].iter().take(LINES_AHEAD).enumerate().find(|(ahead, line)| {
        let is_next = ahead + index + 1 < block.end || *ahead == 0;
        let first = &page.words[line.words.start];
        let step = match last.rotation {
            0 => first.bbox.y0 - last.bbox.y0,
            90 => last.bbox.x1 - first.bbox.x1,
            180 => last.bbox.y1 - first.bbox.y1,
            _ => first.bbox.x0 - last.bbox.x0,
        };
        let is_below = (0.5 * last.font_size..=2.5 * last.font_size).contains(&step);
        let overlaps = first.bbox.x0 < above.x1 && line.bbox.x1 > above.x0 || last.rotation % 180 == 90;
        is_next && first.rotation == last.rotation && is_below && overlaps
    });
    let first = below?.1.words.start;
    page.words[first].text.starts_with(char::is_lowercase).then_some(first)
}

/// Whether a word goes on in the next line.
fn is_hyphenated(word: &str) -> bool {
    let mut ends = word.chars().rev();
    match (ends.next(), ends.next()) {
        (Some('\u{ad}'), _) => true,
        (Some('-' | '\u{2010}'), Some(before)) => before.is_alphabetic(),
        _ => false,
    }
}
