//! Who sells and who buys, by the shape of the page: blocks that read like postal addresses, what stands over them, and
//! where letters have their sender and their window.

use std::collections::BTreeMap;

use ode_pdf::Rect;

use super::direction::wrapped;
use super::lines::{is_company, is_town};
use super::{Context, Source};
use crate::label::Hit;
use crate::mapping::{FieldRule, Party, Side};
use crate::sheet::{Piece, SheetPage, Span, TextRow, fold};
use crate::values;

/// Blocks of a page that are looked at; a page with more is a table all over.
const BLOCKS_MAX: usize = 300;
/// Places of a party's name that are compared.
const SOURCES_MAX: usize = 30;
/// Words that may be headings of parties on a page; where there are more, they are none.
const HEADINGS_MAX: usize = 100;
/// Lines of an address.
const LINES_MAX: usize = 8;
/// The part of a page that is its head, and where its foot begins.
const HEAD_SHARE: f32 = 0.2;
const FOOT_SHARE: f32 = 0.85;
/// Where the window of a letter may begin and end.
const WINDOW_SHARE: std::ops::Range<f32> = 0.1..0.45;
/// Type that is so much larger than the body's names somebody.
const LARGE_SHARE: f32 = 1.2;

/// How far the lines of a letterhead stand apart at most, and those in a window, in heights of a line.
const TIGHT_GAP: f32 = 0.95;
const WINDOW_GAP: f32 = 2.8;

/// How well each kind of place is founded.
const UNDER_LABEL: f32 = 0.97;
const BESIDE_LABEL: f32 = 0.92;
const SENDER_LINE: f32 = 0.93;
const LETTERHEAD: f32 = 0.86;
const WINDOW: f32 = 0.85;
const FOOT: f32 = 0.8;
/// A head that shows neither an address nor a legal form nor large type is a guess.
const BARE_HEAD: f32 = 0.6;
/// A name that the document repeats is its sender's.
const REPEATED_BONUS: f32 = 0.06;
/// Several windows leave it open which one is the buyer's.
const SEVERAL_FACTOR: f32 = 0.8;

/// Lines set closely under each other.
struct Block {
    lines: Vec<Line>,
}

/// One line of a block.
struct Line {
    row: usize,
    span: Span,
    rect: Rect,
    /// Whether a label of any field begins it.
    is_label: bool,
    /// Whose heading it is, where it is one.
    side: Option<Side>,
}

/// What stands where the wanted party's name is printed.
pub(super) fn sources(party: &Party, rule: &FieldRule, context: Context<'_>) -> Vec<Source> {
    let mut found = labelled(party, rule, context);
    let Some(page) = context.sheet.pages.first() else { return found };
    match party.side {
        Side::Seller => {
            let blocks = blocks(party, page, TIGHT_GAP, context);
            found.extend(sender_lines(page, rule));
            found.extend(heads(&blocks, page, rule, context));
            found.extend(feet(party, rule, context));
            found.truncate(SOURCES_MAX);
            for source in &mut found {
                if is_repeated(&source.span.text, context) {
                    source.score = (source.score + REPEATED_BONUS).min(1.0);
                }
            }
        }
        Side::Buyer => {
            let blocks = blocks(party, page, WINDOW_GAP, context);
            found.extend(windows(&blocks, page, rule));
        }
    }
    found
}

fn is_refused(rule: &FieldRule, text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    letters < 3 || rule.not.iter().any(|pattern| pattern.is_match(text))
}

/// Names under or beside the headings of a party.
fn labelled(party: &Party, rule: &FieldRule, context: Context<'_>) -> Vec<Source> {
    let own = match party.side {
        Side::Seller => &party.seller,
        Side::Buyer => &party.buyer,
    };
    let mut found = Vec::new();
    for hit in context.hits.of(own).iter().filter(|hit| hit.page == 0).take(HEADINGS_MAX) {
        let page = &context.sheet.pages[hit.page];
        let row = &page.rows[hit.row];
        let Some(at) = row.piece_at(hit.chars.start) else { continue };
        let piece = &row.pieces[at];
        if piece.chars.start != hit.chars.start {
            continue;
        }
        let label = values::tidy(&row.slice(&hit.chars));
        if !is_heading(row, hit, piece, context) {
            // "Kunde: Meier GmbH"; without the colon it is a sentence or a name.
            if let Some(start) = after_colon(row, hit, piece) {
                let span = row.span(page.page.number, &(start..piece.chars.end));
                found.push(Source::new(span, BESIDE_LABEL, format!("right of “{label}”")));
            }
            continue;
        }
        if let Some(span) = first_below(page, hit, piece, rule, context) {
            found.push(Source::new(span, UNDER_LABEL, format!("under “{label}”")));
        } else if let Some(next) = row.pieces.get(at + 1).filter(|p| !begins_label(context, hit, p)) {
            let span = row.span(page.page.number, &next.chars);
            found.push(Source::new(span, BESIDE_LABEL, format!("right of “{label}”")));
        }
    }
    found.retain(|source| !is_refused(rule, &source.span.text));
    found
}

/// Whether a piece holds nothing but labels: "Käufer/Leistungsempfänger:", "Kepada Yth. / Bill To".
fn is_heading(row: &TextRow, hit: &Hit, piece: &Piece, context: Context<'_>) -> bool {
    let labels = context.hits.all_in(hit.page, hit.row);
    let is_covered = |at: usize| labels.iter().any(|label| label.contains(&at));
    let rest = row.slice(&(hit.chars.end..piece.chars.end));
    rest.chars().enumerate().all(|(at, c)| !c.is_alphanumeric() || is_covered(hit.chars.end + at))
}

fn begins_label(context: Context<'_>, hit: &Hit, piece: &Piece) -> bool {
    context.hits.anchors_in(hit.page, hit.row).iter().any(|l| l.start == piece.chars.start)
}

/// Where the value begins that a colon parts from its label.
fn after_colon(row: &TextRow, hit: &Hit, piece: &Piece) -> Option<usize> {
    let rest = row.slice(&(hit.chars.end..piece.chars.end));
    let colon = rest.chars().position(|c| c == ':')?;
    let is_next = !rest.chars().take(colon).any(char::is_alphanumeric);
    let blanks = rest.chars().skip(colon + 1).take_while(|c| c.is_whitespace()).count();
    is_next.then_some(hit.chars.end + colon + 1 + blanks)
}

/// Lines between a heading and the name under it, in heights of the heading.
const HEADING_GAP: f32 = 2.2;

/// Lines under a heading that are looked at for a name.
const SECTION_LINES: usize = 6;

/// The first line under a heading that may be a name. Keys with their values may stand before it; the value of the
/// key "Name" is one.
fn first_below(
    page: &SheetPage<'_>,
    hit: &Hit,
    label: &Piece,
    rule: &FieldRule,
    context: Context<'_>,
) -> Option<Span> {
    let mut last = label.bbox;
    let mut lines: Vec<(usize, &Piece)> = Vec::new();
    for (at, row) in page.rows.iter().enumerate().skip(hit.row + 1) {
        let height = (last.y1 - last.y0).max(6.0);
        if row.bbox.y0 - last.y1 > height * HEADING_GAP || lines.len() >= SECTION_LINES {
            break;
        }
        let near = |p: &&Piece| is_aligned(p.bbox, label.bbox) || (p.bbox.x0 - label.bbox.x0).abs() < 14.0;
        let Some(piece) = row.pieces.iter().find(near) else { continue };
        lines.push((at, piece));
        last = piece.bbox;
    }
    for (at, piece) in &lines {
        let row = &page.rows[*at];
        let text = row.slice(&piece.chars);
        if let Some(value) = named_value(page, *at, piece, context) {
            return Some(value).filter(|span| !is_refused(rule, &span.text));
        }
        let labels = context.hits.anchors_in(hit.page, *at);
        let is_key = text.contains(':') || labels.iter().any(|l| l.start == piece.chars.start);
        let is_next_key =
            row.pieces.iter().any(|p| p.bbox.x0 > piece.bbox.x0 && row.slice(&p.chars).starts_with(':'));
        if !is_key && !is_next_key && !is_refused(rule, &text) {
            return Some(whole_name(page, &lines, *at, rule));
        }
        if is_key && !text.contains(':') && !is_next_key {
            return None;
        }
    }
    None
}

/// Words that stand alone on the line over a person's or a firm's name.
const SALUTATIONS: &[&str] = &[
    "herr", "herrn", "frau", "firma", "fa.", "mr", "mr.", "mrs", "mrs.", "ms", "ms.", "monsieur", "madame",
    "m.", "mme", "senor", "senora", "sr.", "sra.", "sig.", "sig.ra", "spett.le", "dhr.", "mevr.", "bapak",
    "ibu", "yth.",
];

/// A name that goes on over two lines: a salutation over it, or a legal form only on the second.
fn whole_name(page: &SheetPage<'_>, lines: &[(usize, &Piece)], at: usize, rule: &FieldRule) -> Span {
    let own = lines.iter().position(|(row, _)| *row == at).unwrap_or_default();
    let span_of = |(row, piece): &(usize, &Piece)| page.rows[*row].span(page.page.number, &piece.chars);
    let mut name = span_of(&lines[own]);
    if let Some(next) = lines.get(own + 1).map(span_of) {
        let is_salutation = SALUTATIONS.contains(&fold(name.text.trim()).as_str());
        let is_form = is_company(&next.text) && !is_company(&name.text) && !next.text.contains(':');
        let is_alike = (next.font_size - name.font_size).abs() < 0.6 && next.is_bold == name.is_bold;
        if (is_salutation || is_form && is_alike) && !is_refused(rule, &next.text) {
            name.push_line(&next);
        }
    }
    name
}

/// The value behind the key "Name", on its line.
fn named_value(page: &SheetPage<'_>, at: usize, piece: &Piece, context: Context<'_>) -> Option<Span> {
    const KEYS: &[&str] = &[
        "name",
        "company",
        "company name",
        "firma",
        "firmenname",
        "nom",
        "nom du client",
        "raison sociale",
        "naam",
        "bedrijf",
        "nombre",
        "razon social",
        "nome",
        "ragione sociale",
        "nama",
        "nama perusahaan",
        "nazwa",
        "nazev",
        "navn",
        "namn",
        "nimi",
        "denumire",
        "nev",
        "naziv",
        "επωνυμια",
        "unvan",
        "unvani",
    ];
    let row = &page.rows[at];
    let text = row.slice(&piece.chars);
    let (key, value) = text.split_once(':').map_or((text.as_str(), ""), |(key, value)| (key, value));
    if !KEYS.contains(&fold(key.trim()).as_str()) {
        return None;
    }
    if value.chars().any(char::is_alphanumeric) {
        let start = piece.chars.end - value.trim_start().chars().count();
        return Some(row.span(page.page.number, &(start..piece.chars.end)));
    }
    let next = row.pieces.iter().find(|p| p.chars.start >= piece.chars.end)?;
    let lead = row.slice(&next.chars).chars().take_while(|c| !c.is_alphanumeric()).count();
    if lead > 0 {
        return Some(row.span(page.page.number, &(next.chars.start + lead..next.chars.end)));
    }
    let hit = Hit { page: 0, row: at, chars: piece.chars.clone() };
    Some(wrapped(context, &hit, next))
}

fn is_aligned(a: Rect, b: Rect) -> bool {
    let middle = |r: Rect| f32::midpoint(r.x0, r.x1);
    (a.x0 - b.x0).abs() < 4.0 || (a.x1 - b.x1).abs() < 4.0 || (middle(a) - middle(b)).abs() < 3.0
}

/// All blocks of the first page, from top to bottom; `gap` is how far lines may stand apart, in heights.
fn blocks(party: &Party, page: &SheetPage<'_>, gap: f32, context: Context<'_>) -> Vec<Block> {
    let mut headings: BTreeMap<(usize, usize), (Hit, Side)> = BTreeMap::new();
    for (labels, side) in [(&party.seller, Side::Seller), (&party.buyer, Side::Buyer)] {
        for hit in context.hits.of(labels).into_iter().filter(|h| h.page == 0).take(HEADINGS_MAX) {
            headings.insert((hit.row, hit.chars.start), (hit, side));
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (at, row) in page.rows.iter().enumerate() {
        let anchors = context.hits.anchors_in(0, at);
        for piece in &row.pieces {
            let heading = headings.get(&(at, piece.chars.start));
            let heading = heading.filter(|(hit, _)| is_heading(row, hit, piece, context));
            let line = Line {
                row: at,
                span: row.span(page.page.number, &piece.chars),
                rect: piece.bbox,
                is_label: anchors.iter().any(|l| l.start == piece.chars.start),
                side: heading.map(|(_, side)| *side),
            };
            let near = blocks.iter().rposition(|block| goes_on(block, &line, gap));
            match near {
                Some(at) => blocks[at].lines.push(line),
                None if blocks.len() < BLOCKS_MAX => blocks.push(Block { lines: vec![line] }),
                None => return blocks,
            }
        }
    }
    blocks
}

/// Whether a line stands closely under a block and in line with it.
fn goes_on(block: &Block, line: &Line, limit: f32) -> bool {
    let Some(last) = block.lines.last() else { return false };
    let height = (last.rect.y1 - last.rect.y0).max(line.rect.y1 - line.rect.y0).max(4.0);
    let gap = line.rect.y0 - last.rect.y1;
    last.row < line.row && gap > -height * 0.5 && gap < height * limit && is_aligned(last.rect, line.rect)
}

impl Block {
    fn top(&self) -> f32 {
        self.lines.first().map_or(0.0, |line| line.rect.y0)
    }

    fn side(&self) -> Option<Side> {
        self.lines.iter().find_map(|line| line.side)
    }

    fn has_town(&self) -> bool {
        self.lines.iter().skip(1).any(|line| !line.is_label && is_town(&line.span.text))
    }

    /// Whether a town stands in it, also behind a street on one line: "Hafenstr. 1, 24103 Kiel".
    fn has_address(&self) -> bool {
        let is_address = |line: &Line| line.span.text.split(',').any(|part| is_town(part.trim()));
        self.lines.iter().skip(1).any(|line| !line.is_label && is_address(line))
    }

    /// The first line that may be a name.
    fn name(&self, rule: &FieldRule) -> Option<&Line> {
        let may_be = |line: &&Line| {
            let text = &line.span.text;
            let is_free = !line.is_label && line.side.is_none() && !is_refused(rule, text);
            is_free && !is_town(text) && !is_sender(text)
        };
        self.lines.iter().take(LINES_MAX).find(may_be)
    }
}

/// The sender in one small line over the window: name, street and town between marks.
fn sender_lines(page: &SheetPage<'_>, rule: &FieldRule) -> Vec<Source> {
    let upper = page.rows.iter().take_while(|row| row.bbox.y1 < page.page.height * WINDOW_SHARE.end);
    upper.filter_map(|row| sender_line(page, row, rule)).collect()
}

fn sender_line(page: &SheetPage<'_>, row: &TextRow, rule: &FieldRule) -> Option<Source> {
    // With commas the line is one piece; other marks may stand apart from what they part.
    let first = row.pieces.first()?;
    let whole = if marks_in(&row.text, false).len() >= 2 { 0..row.chars.len() } else { first.chars.clone() };
    let span = row.span(page.page.number, &whole);
    let end = marks_in(&span.text, true).into_iter().next()?;
    let name = trimmed(&span.part(&(0..end)));
    let is_whole = is_sender(&span.text) && !is_refused(rule, &name.text);
    is_whole.then(|| Source::new(name, SENDER_LINE, "first of the sender's line"))
}

/// Marks that part the sender's line, each with blanks around it; commas count where they are asked for, but for one
/// before a legal form.
fn marks_in(text: &str, with_commas: bool) -> Vec<usize> {
    let is_mark = |c: char| matches!(c, '·' | '•' | '●' | '|' | '∙' | '‧' | '*' | '–' | '-' | '/');
    let chars: Vec<char> = text.chars().collect();
    let is_form = |at: usize| {
        let next: String =
            chars[at + 1..].iter().skip_while(|c| **c == ' ').take_while(|c| **c != ' ').collect();
        is_company(&format!("x {next}"))
    };
    let is_parting = |at: &usize| {
        let is_spaced = chars[at - 1].is_whitespace() && chars[at + 1].is_whitespace();
        (is_mark(chars[*at]) && is_spaced) || (with_commas && chars[*at] == ',' && !is_form(*at))
    };
    (1..chars.len().saturating_sub(1)).filter(is_parting).collect()
}

/// "Meier GmbH · Hauptstraße 1 · 12345 Ort": at least two marks, and a town behind one of them.
fn is_sender(text: &str) -> bool {
    let marks = marks_in(text, true);
    let chars: Vec<char> = text.chars().collect();
    let ends = marks.iter().skip(1).copied().chain([chars.len()]);
    let mut parts =
        marks.iter().zip(ends).map(|(start, end)| chars[start + 1..end].iter().collect::<String>());
    marks.len() >= 2 && parts.any(|part| is_town(part.trim()))
}

fn trimmed(span: &Span) -> Span {
    let count = span.text.trim_end().chars().count();
    span.part(&(0..count))
}

/// The letterhead: what stands on top of the page under no heading of the buyer's.
fn heads(blocks: &[Block], page: &SheetPage<'_>, rule: &FieldRule, context: Context<'_>) -> Vec<Source> {
    let limit = page.page.height * HEAD_SHARE;
    let mut found: Vec<Source> = Vec::new();
    for block in blocks.iter().filter(|b| b.top() < limit && b.side() != Some(Side::Buyer)) {
        // Under a heading of its own the block was found already.
        let Some(name) = block.name(rule).filter(|_| block.side().is_none()) else { continue };
        let is_large = name.span.font_size > context.body_size * LARGE_SHARE;
        let is_form = is_company(&name.span.text);
        let is_top = name.rect.y0 < limit * 0.6;
        let is_known = is_form || is_large || (block.has_town() && is_top);
        let has_all = is_form && (is_large || block.has_address());
        let mut score = if is_known { LETTERHEAD } else { BARE_HEAD };
        if has_all {
            score += 0.03;
        }
        // Further down the page the buyer's window begins.
        let share = name.rect.y0 / page.page.height;
        score -= share * 0.3;
        found.push(Source::new(name.span.clone(), score, "in the letterhead"));
    }
    found
}

/// The foot of a page: the first line of a block that names a company.
fn feet(party: &Party, rule: &FieldRule, context: Context<'_>) -> Vec<Source> {
    let mut found = Vec::new();
    for page in context.sheet.pages.iter().take(2) {
        let limit = page.page.height * FOOT_SHARE;
        for row in page.rows.iter().filter(|row| row.bbox.y0 > limit) {
            for piece in &row.pieces {
                let span = row.span(page.page.number, &piece.chars);
                if is_company(&span.text) && !is_refused(rule, &span.text) && span.text.chars().count() <= 60
                {
                    found.push(Source::new(span, FOOT, "in the foot of the page"));
                }
            }
        }
    }
    found.truncate(if party.side == Side::Seller { 4 } else { 0 });
    found
}

/// Whether the text stands on its own, or first of a line, at another place too.
fn is_repeated(name: &str, context: Context<'_>) -> bool {
    let wanted = fold(name.trim());
    let starts = |row: &TextRow| {
        let begins = |(at, _): &(usize, &str)| *at == 0 || row.folded[..*at].ends_with('\t');
        row.folded.match_indices(&wanted).filter(begins).count()
    };
    wanted.chars().count() >= 4 && context.sheet.rows().map(|(_, _, row)| starts(row)).sum::<usize>() > 1
}

/// Addresses in the window of a letter that no heading gives to somebody else.
fn windows(blocks: &[Block], page: &SheetPage<'_>, rule: &FieldRule) -> Vec<Source> {
    let height = page.page.height;
    let is_window = |block: &&Block| {
        let share = block.top() / height;
        let is_headed = block.lines.first().is_some_and(|line| line.is_label) || block.side().is_some();
        WINDOW_SHARE.contains(&share) && !is_headed && block.has_town() && block.lines.len() >= 2
    };
    let mut names: Vec<Span> = Vec::new();
    for block in blocks.iter().filter(is_window) {
        let Some(first) = block.name(rule) else { continue };
        let mut name = first.span.clone();
        let next = block.lines.iter().find(|line| line.row > first.row);
        if let Some(next) = next.filter(|_| SALUTATIONS.contains(&fold(name.text.trim()).as_str())) {
            name.push_line(&next.span);
        }
        names.push(name);
    }
    let is_one = names.windows(2).all(|pair| fold(&pair[0].text) == fold(&pair[1].text));
    let factor = if is_one { 1.0 } else { SEVERAL_FACTOR };
    names.into_iter().map(|name| Source::new(name, WINDOW * factor, "in the window of the letter")).collect()
}
