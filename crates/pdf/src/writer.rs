//! The model as plain text.

use crate::text::{Document, Page};

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
    for block in &page.blocks {
        for index in block.lines.clone() {
            let words = &page.words[page.lines[index].words.clone()];
            for (position, word) in words.iter().enumerate() {
                if position > 0 {
                    text.push(' ');
                }
                // What cannot be read is left blank.
                text.extend(
                    word.text
                        .chars()
                        .filter(|character| *character != '\u{ad}')
                        .map(|character| if character == '\u{fffd}' { ' ' } else { character }),
                );
            }
            let is_hyphenated = words.last().is_some_and(|word| is_hyphenated(&word.text));
            let next = page.lines.get(index + 1).filter(|_| index + 1 < block.lines.end);
            let next = next.and_then(|line| page.words[line.words.clone()].first());
            if is_hyphenated && next.is_some_and(|word| word.text.starts_with(char::is_alphabetic)) {
                if text.ends_with(['-', '\u{2010}']) {
                    text.pop();
                }
            } else {
                text.push('\n');
            }
        }
        text.push('\n');
    }
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
