//! Which of several lines is meant: by number, by type, as a company or as the top of an address.

use ode_pdf::Rect;

use super::{Source, is_on_page};
use crate::mapping::FieldRule;
use crate::mapping::file::{LineFile, ZoneFile};
use crate::sheet::{Sheet, Span};

pub(super) fn is_inside(rect: Rect, cell: Rect) -> bool {
    let (x, y) = (f32::midpoint(rect.x0, rect.x1), f32::midpoint(rect.y0, rect.y1));
    cell.x0 <= x && x <= cell.x1 && cell.y0 <= y && y <= cell.y1
}

pub(super) fn zone_lines(zone: ZoneFile, sheet: &Sheet<'_>) -> Vec<Span> {
    let Some(page) =
        sheet.pages.iter().enumerate().find(|(at, _)| is_on_page(Some(zone.page), *at, sheet.pages.len()))
    else {
        return Vec::new();
    };
    let page = page.1;
    let [x0, y0, x1, y1] = zone.r#box;
    let (w, h) = (page.page.width / 100.0, page.page.height / 100.0);
    let cell = page.mirrored(Rect { x0: x0 * w, y0: y0 * h, x1: x1 * w, y1: y1 * h });
    let pieces = page.rows.iter().flat_map(|row| row.pieces.iter().map(move |p| (row, p)));
    pieces
        .filter(|(_, p)| is_inside(p.bbox, cell))
        .map(|(row, p)| row.span(page.page.number, &p.chars))
        .collect()
}

/// Keeps the line that the rule asks for; without one, all of them count, the earlier the better.
pub(super) fn select_lines(
    rule: &FieldRule,
    mut lines: Vec<Span>,
    score: f32,
    how: &str,
    sources: &mut Vec<Source>,
) {
    lines.retain(|line| !rule.not.iter().any(|pattern| pattern.is_match(&line.text)));
    let first = match rule.line {
        Some(LineFile::Number(n)) if n > 0 => Some(n.unsigned_abs() as usize - 1),
        Some(LineFile::Number(n)) => lines.len().checked_sub(n.unsigned_abs() as usize),
        Some(LineFile::LargestFont) => largest(&lines),
        Some(LineFile::Bold) => lines.iter().position(|l| l.is_bold),
        Some(LineFile::Addressee) => addressee(&lines),
        Some(LineFile::Company) => lines.iter().position(|l| is_company(&l.text)),
        None if rule.lines > 1 => Some(0),
        None => {
            let mut factor = 1.0;
            for span in lines {
                sources.push(Source::new(span, score * factor, how));
                factor *= 0.97;
            }
            return;
        }
    };
    let Some(first) = first.filter(|first| *first < lines.len()) else { return };
    let is_styled = matches!(rule.line, Some(LineFile::Bold | LineFile::LargestFont));
    let style = |line: &Span| (line.is_bold, line.font_size.round() as i32);
    let own = style(&lines[first]);
    let wanted = lines[first..].iter().take(rule.lines).take_while(|l| !is_styled || style(l) == own);
    let joined = join(wanted);
    sources.push(Source::new(joined, score, how));
}

/// Lines as one span; where the page leaves a line blank, so does the span, for patterns to see.
fn join<'a>(lines: impl Iterator<Item = &'a Span>) -> Span {
    let mut joined = Span::default();
    let mut last: Option<Rect> = None;
    for line in lines {
        let rect = line.rect(&(0..line.chars.len()));
        if let (Some(upper), Some(lower)) = (last, rect)
            && lower.y0 - upper.y1 > (lower.y1 - lower.y0) * BLANK_SHARE
        {
            joined.text.push('\n');
            joined.chars.push(None);
        }
        joined.push_line(line);
        last = rect.or(last);
    }
    joined
}

/// A gap of this share of a line's height is a blank line.
const BLANK_SHARE: f32 = 0.8;

fn largest(lines: &[Span]) -> Option<usize> {
    let size = lines.iter().map(|l| l.font_size).fold(0.0, f32::max);
    lines.iter().position(|l| l.font_size >= size - 0.1)
}

/// The first line of the first block that reads like a postal address: two to seven lines set closely under each
/// other, one of which begins with a postal code and a town.
fn addressee(lines: &[Span]) -> Option<usize> {
    let boxes: Vec<Rect> = lines.iter().map(|l| l.rect(&(0..l.chars.len())).unwrap_or_default()).collect();
    let towns = lines.iter().enumerate().skip(1).filter(|(_, line)| is_town(&line.text)).map(|(at, _)| at);
    towns.take(8).find_map(|town| first_above(lines, &boxes, town))
}

/// The top of the lines set closely over a town, if there are any.
fn first_above(lines: &[Span], boxes: &[Rect], town: usize) -> Option<usize> {
    let mut first = town;
    for at in (0..town).rev() {
        let (upper, lower) = (boxes[at], boxes[first]);
        let is_aligned = (upper.x0 - lower.x0).abs() < 4.0;
        let gap = lower.y0 - upper.y1;
        if is_aligned && gap < (lower.y1 - lower.y0) * 2.6 && town - at < 12 && !is_town(&lines[at].text) {
            first = at;
        } else if is_aligned {
            break;
        }
    }
    (first < town).then_some(first)
}

/// A postal code beside a town: "40235 Düsseldorf", "D-63571 Gelnhausen", "75018 PARIS, FR", "110 00 Praha 1",
/// "00-238 Warszawa", "1016 DV Amsterdam", and with the town first "Leeds LS1 4AP", "Austin, TX 78701", "Jakarta 12190".
pub(super) fn is_town(text: &str) -> bool {
    let text = text.trim();
    if text.contains(':') || text.chars().count() > TOWN_CHARS_MAX {
        return false;
    }
    let words: Vec<&str> = text.split([' ', '\u{a0}', ',']).filter(|w| !w.is_empty()).collect();
    starts_with_code(&words) || ends_with_code(&words)
}

/// Longer lines are sentences.
const TOWN_CHARS_MAX: usize = 60;

fn is_digits(word: &str, lengths: &[usize]) -> bool {
    lengths.contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())
}

fn is_name(word: &&&str) -> bool {
    word.chars().next().is_some_and(|c| c.is_uppercase() || c == '\'')
        && !word.chars().any(|c| c.is_ascii_digit())
}

/// The code first: in one piece, in two groups, or with a hyphen inside.
fn starts_with_code(words: &[&str]) -> bool {
    let Some(first) = words.first() else { return false };
    let bare = match first.split_once('-') {
        Some((country, code)) if country.len() <= 3 && country.bytes().all(|b| b.is_ascii_uppercase()) => {
            code
        }
        _ => first,
    };
    let is_whole = is_digits(bare, &[4, 5, 6]);
    let parts = bare.split_once('-');
    let is_hyphened = parts.is_some_and(|(a, b)| is_digits(a, &[2, 4]) && is_digits(b, &[3]));
    let rest = if is_whole || is_hyphened {
        &words[1..]
    } else if words.len() > 2 && is_digits(bare, &[3]) && is_digits(words[1], &[2]) {
        &words[2..]
    } else {
        return false;
    };
    rest.iter().take(2).find(is_name).is_some()
}

/// The town first: five or six digits behind it, a state and a code, or a British code.
fn ends_with_code(words: &[&str]) -> bool {
    let has_town = words.first().is_some_and(|w| is_name(&w));
    let Some((last, head)) = words.split_last().filter(|(_, head)| has_town && !head.is_empty()) else {
        return false;
    };
    let zip = last.split_once('-').map_or(*last, |(zip, _)| zip);
    let is_state = |word: &&str| matches!(word.len(), 2 | 3) && word.bytes().all(|b| b.is_ascii_uppercase());
    let is_british = last.len() == 3
        && last.as_bytes()[0].is_ascii_digit()
        && last.as_bytes()[1..].iter().all(u8::is_ascii_uppercase)
        && head.last().is_some_and(|w| (2..=4).contains(&w.len()) && w.bytes().any(|b| b.is_ascii_digit()))
        && head.len() > 1;
    is_british
        || (is_digits(zip, &[5, 6]) && head.iter().all(|w| is_name(&w)))
        || (is_digits(zip, &[4, 5]) && head.last().is_some_and(is_state) && head.len() > 1)
}

/// Legal forms, folded, as they stand behind a company's name.
const FORMS: &[&str] = &[
    "gmbh",
    "ag",
    "kg",
    "kgaa",
    "ohg",
    "ug",
    "gbr",
    "se",
    "e.k",
    "ek",
    "e.v",
    "ev",
    "eg",
    "mbh",
    "a.g",
    "ltd",
    "limited",
    "inc",
    "incorporated",
    "llc",
    "llp",
    "lp",
    "corp",
    "corporation",
    "plc",
    "company",
    "co",
    "sarl",
    "s.a.r.l",
    "sas",
    "s.a.s",
    "sa",
    "s.a",
    "eurl",
    "sasu",
    "snc",
    "bv",
    "b.v",
    "nv",
    "n.v",
    "vof",
    "srl",
    "s.r.l",
    "spa",
    "s.p.a",
    "sl",
    "s.l",
    "lda",
    "ltda",
    "oy",
    "oyj",
    "ab",
    "aps",
    "as",
    "a/s",
    "asa",
    "pty",
    "sdn",
    "bhd",
    "pte",
    "tbk",
    "kft",
    "zrt",
    "sro",
    "s.r.o",
    "doo",
    "d.o.o",
    "d.d",
    "a.s",
    "j.s.a",
    "k.s",
    "s.k.a",
    "sp.j",
    "sp.k",
    "z.o.o",
    "spol",
    "sapa",
    "unipessoal",
    "nyrt",
    "bt",
    "kkt",
    "ood",
    "eood",
    "ad",
    "ae",
    "α.ε",
    "ε.π.ε",
    "επε",
    "ι.κ.ε",
    "ικε",
    "ο.ε",
    "sti",
    "uab",
    "ou",
    "sia",
    "osauhing",
    "ky",
    "ry",
    "ans",
    "da",
    "i/s",
    "k/s",
    "hb",
    "kb",
    "sca",
    "scop",
    "sci",
    "cvba",
    "bvba",
    "vzw",
    "asbl",
    "scrl",
    "partners",
    "foundation",
    "stiftung",
    "sp",
    "gesellschaft",
];

/// Legal forms that stand before the name.
const PREFIX_FORMS: &[&str] =
    &["pt", "pt.", "cv", "cv.", "ud", "ud.", "koperasi", "firma", "fa", "yayasan", "perum", "pd"];

/// Whether a line names a company by its legal form.
pub(super) fn is_company(text: &str) -> bool {
    let folded = crate::sheet::fold(text);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let is_form = |word: &&str| FORMS.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()));
    let has_prefix = words.first().is_some_and(|w| PREFIX_FORMS.contains(w)) && words.len() > 1;
    has_prefix || words.iter().skip(1).any(is_form)
}
