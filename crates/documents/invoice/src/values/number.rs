//! Numbers as people print them: grouping by point, comma, apostrophe or space, signs before, behind or as
//! brackets, money marks on either side.

use std::ops::Range;
use std::str::FromStr;

use rust_decimal::Decimal;

use super::{Locale, Reading, currency, unit};
use crate::record::Typed;

/// Which mark separates decimals where a number alone does not tell (`1.234`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberStyle {
    /// Not known: `1.234` is refused rather than guessed.
    #[default]
    Unknown,
    /// `1.234,56`, `1 234,56`.
    Comma,
    /// `1,234.56`, `1'234.56`.
    Point,
}

/// Longest run of digits and marks that is still looked at as one number.
const NUMBER_CHARS_MAX: usize = 32;

/// More digits than this without any mark are a number of something, not an amount.
const BARE_DIGITS_MAX: usize = 9;

/// One run of digits and grouping marks, with its sign.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    chars: Range<usize>,
    body: String,
    is_negative: bool,
}

/// Every amount in the text. Digits inside words, dates and identifiers are left alone, and so are rates.
pub fn amounts(text: &str, locale: &Locale) -> Vec<Reading> {
    let chars: Vec<char> = text.chars().map(western).collect();
    let is_rate = |run: &Run| chars[run.chars.end..].iter().find(|c| !c.is_whitespace()) == Some(&'%');
    let is_code =
        |run: &Run| run.body.len() > BARE_DIGITS_MAX && run.body.chars().all(|c| c.is_ascii_digit());
    let runs = runs(text, &is_word_part).into_iter().filter(|run| !is_rate(run) && !is_code(run));
    runs.filter_map(|run| reading(run, locale.numbers)).collect()
}

/// Numbers that may carry a unit (`-5,0000 Stk.`, `3h`): the unit's letters may touch the digits.
pub fn quantities(text: &str, locale: &Locale) -> Vec<Reading> {
    let free = |c: char| matches!(c, '#' | '_' | '/');
    runs(text, &free).into_iter().filter_map(|run| reading(run, locale.numbers)).collect()
}

/// Numbers with a percent sign behind them; without any, the first bare number.
pub fn percents(text: &str, locale: &Locale) -> Vec<Reading> {
    let chars: Vec<char> = text.chars().map(western).collect();
    let all = quantities(text, locale);
    let marked = |r: &&Reading| chars[r.chars.end..].iter().find(|c| **c != ' ') == Some(&'%');
    let with_sign: Vec<Reading> = all.iter().filter(marked).cloned().collect();
    if with_sign.is_empty() { all.into_iter().take(1).collect() } else { with_sign }
}

/// Letters that may stand before a rate: "at", "von", "zzgl.".
const RATE_LETTERS_MAX: usize = 4;

/// The rate that a text begins with, and how many characters it takes: "@ 20 %", " (9.25%)".
pub fn leading_rate(text: &str, locale: &Locale) -> Option<(Reading, usize)> {
    let chars: Vec<char> = text.chars().map(western).collect();
    let rate = quantities(text, locale).into_iter().next()?;
    let before = &chars[..rate.chars.start];
    let letters = before.iter().filter(|c| c.is_alphanumeric()).count();
    let sign = rate.chars.end + chars[rate.chars.end..].iter().position(|c| !c.is_whitespace())?;
    if letters > RATE_LETTERS_MAX || before.contains(&'\t') || chars[sign] != '%' {
        return None;
    }
    let is_closed = chars.get(sign + 1).is_some_and(|c| matches!(c, ')' | ']'));
    Some((rate, sign + 1 + usize::from(is_closed)))
}

/// The unit printed beside a number: what is left of the text when the number is taken out.
pub fn unit_beside(text: &str, number: &Range<usize>) -> Option<String> {
    let behind: String = text.chars().skip(number.end).collect();
    let word = behind.split_whitespace().next()?;
    let word = word.trim_matches(|c: char| matches!(c, '.' | ',' | ';'));
    (word.chars().next().is_some_and(char::is_alphabetic)).then(|| unit::code(word).to_owned())
}

fn reading(run: Run, style: NumberStyle) -> Option<Reading> {
    let number = parse(&run.body, style)?;
    let signed = if run.is_negative { -number } else { number };
    Some(Reading { typed: Typed::Number(signed), chars: run.chars, is_sure: has_decimals(&run.body) })
}

fn has_decimals(body: &str) -> bool {
    let tail = body.rsplit(['.', ',']).next().unwrap_or_default();
    tail.len() == 2 && tail.len() < body.len()
}

/// Characters that make a run of digits part of a word, a date or an identifier.
fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '#' | '_' | '@')
}

fn is_mark(c: char) -> bool {
    matches!(c, '.' | ',' | '\'' | '’')
}

fn is_minus(c: char) -> bool {
    matches!(c, '-' | '−' | '–')
}

/// Digits and marks of numbers as Latin writes them: Arabic, Persian and full-width ones count alike.
pub(super) fn western(c: char) -> char {
    let digit = |zero: char| char::from_digit(u32::from(c) - u32::from(zero), 10).unwrap_or(c);
    match c {
        '٠'..='٩' => digit('٠'),
        '۰'..='۹' => digit('۰'),
        '０'..='９' => digit('０'),
        '٫' | '．' => '.',
        '٬' | '，' => ',',
        '٪' | '％' => '%',
        '／' => '/',
        c => c,
    }
}

fn runs(text: &str, forbidden: &dyn Fn(char) -> bool) -> Vec<Run> {
    let chars: Vec<char> = text.chars().map(western).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if !chars[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = run_end(&chars, at);
        if let Some(run) = signed_run(&chars, at..end, forbidden) {
            found.push(run);
        }
        at = end.max(at + 1);
        // What hangs on to a refused run belongs to it: "PO-10525-7" is no number at its end either.
        while at < chars.len() && is_word_part(chars[at]) {
            at += 1;
        }
    }
    found
}

/// Where the run of digits, marks and grouping spaces ends.
fn run_end(chars: &[char], start: usize) -> usize {
    let mut end = start;
    while end < chars.len() && end - start < NUMBER_CHARS_MAX {
        let c = chars[end];
        let digit_follows = chars.get(end + 1).is_some_and(char::is_ascii_digit);
        let is_part = c.is_ascii_digit()
            || (is_mark(c) && digit_follows)
            || (is_group_space(c) && is_space_group(chars, start, end));
        if !is_part {
            break;
        }
        end += 1;
    }
    end
}

fn is_group_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// A space groups digits when one to three stand before it, exactly three behind it, and the number goes on to
/// decimals or was grouped so already: "1 234,50", but not "5 100" (five, and a hundred).
fn is_space_group(chars: &[char], start: usize, space: usize) -> bool {
    let head = &chars[start..space];
    if head.iter().any(|c| is_mark(*c)) {
        return false;
    }
    let lead = head.rsplit(|c| is_group_space(*c)).next().unwrap_or_default().len();
    let mut at = space;
    let mut groups = 0;
    while chars.get(at).copied().is_some_and(is_group_space) && digits_from(chars, at + 1) == 3 {
        at += 4;
        groups += 1;
    }
    let is_decimal = matches!(chars.get(at), Some(',' | '.')) && digits_from(chars, at + 1) == 2;
    let was_grouped = head.iter().copied().any(is_group_space);
    (1..=3).contains(&lead) && groups > 0 && (is_decimal || was_grouped || chars[space] != ' ')
}

fn digits_from(chars: &[char], start: usize) -> usize {
    chars[start.min(chars.len())..].iter().take_while(|c| c.is_ascii_digit()).count()
}

/// Widens the digits by sign, brackets and nothing else; refuses them where they are part of something else.
fn signed_run(chars: &[char], digits: Range<usize>, forbidden: &dyn Fn(char) -> bool) -> Option<Run> {
    let body: String = chars[digits.clone()].iter().filter(|c| c.is_ascii_digit() || is_mark(**c)).collect();
    let before = digits.start.checked_sub(1).map(|at| chars[at]);
    let after = chars.get(digits.end).copied();
    let is_forbidden = |c: char| forbidden(c) && !currency::is_symbol(c);
    if after.is_some_and(is_forbidden) || after.is_some_and(|c| is_mark(c) && !is_trailing(chars, digits.end))
    {
        return None;
    }
    let mut start = digits.start;
    let mut is_negative = false;
    if let Some(sign) = before {
        let ahead = start.checked_sub(2).map(|at| chars[at]);
        if is_minus(sign) {
            // "10-5" and "INV-05" hold no negative number.
            if ahead.is_some_and(|c| c.is_alphanumeric() || c == '.') {
                return None;
            }
            start -= 1;
            is_negative = true;
        } else if sign == '.' || (forbidden(sign) && !currency::ends_with_code(&chars[..start])) {
            return None;
        }
    }
    let mut end = digits.end;
    if let Some(sign) = after.filter(|c| is_minus(*c)) {
        let is_last = chars.get(end + 1).is_none_or(|c| c.is_whitespace());
        if !is_last {
            // "12-14" is a range; neither end of it is an amount.
            return chars.get(end + 1).is_some_and(|c| c.is_alphabetic()).then_some(Run {
                chars: start..end,
                body,
                is_negative,
            });
        }
        is_negative |= sign != '–';
        end += 1;
    }
    is_negative |= is_bracketed(chars, start..end) || minus_before_mark(chars, start);
    Some(Run { chars: start..end, body, is_negative })
}

/// A point or comma at the end of a sentence, not of a longer number.
fn is_trailing(chars: &[char], at: usize) -> bool {
    chars.get(at + 1).is_none_or(|c| !c.is_ascii_digit())
}

/// "(35,13 €)" is how some print a minus; a bracket with other words in it is not.
fn is_bracketed(chars: &[char], range: Range<usize>) -> bool {
    let open = chars[..range.start].iter().rposition(|c| !c.is_whitespace() && !currency::is_symbol(*c));
    let close = chars[range.end..].iter().position(|c| !c.is_whitespace() && !currency::is_symbol(*c));
    let has_marks = chars[range.clone()].iter().any(|c| is_mark(*c));
    has_marks
        && open.is_some_and(|at| chars[at] == '(')
        && close.is_some_and(|at| chars[range.end + at] == ')')
}

/// "- € 12,00" and "-Rp 12.000": the minus stands before the money mark.
fn minus_before_mark(chars: &[char], start: usize) -> bool {
    let head: String = chars[..start].iter().collect();
    let head = head.trim_end();
    let bare = head.trim_end_matches(|c: char| currency::is_symbol(c) || c.is_alphabetic());
    bare.len() < head.len()
        && bare.trim_end().chars().next_back().is_some_and(is_minus)
        && currency::is_mark(head[bare.len()..].trim())
}

/// The number's value, where its form allows just one reading or the document's style decides.
pub fn parse(body: &str, style: NumberStyle) -> Option<Decimal> {
    let plain = body.replace(['\'', '’'], "");
    let has_apostrophe = plain.len() < body.len();
    let points = plain.matches('.').count();
    let commas = plain.matches(',').count();
    let decimal_mark = match (points, commas) {
        (0, 0) => None,
        (_, _) if points > 0 && commas > 0 => Some(mark_of_mixed(&plain, points, commas)?),
        (1, 0) => single_mark(&plain, '.', style, has_apostrophe)?,
        (0, 1) => single_mark(&plain, ',', style, has_apostrophe)?,
        _ => None,
    };
    let (whole, fraction) = match decimal_mark {
        Some(mark) => plain.rsplit_once(mark)?,
        None => (plain.as_str(), ""),
    };
    if !is_well_grouped(whole) {
        return None;
    }
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    let text = if fraction.is_empty() { digits } else { format!("{digits}.{fraction}") };
    Decimal::from_str(&text).ok()
}

fn mark_of_mixed(plain: &str, points: usize, commas: usize) -> Option<char> {
    let last = if plain.rfind('.') > plain.rfind(',') { '.' } else { ',' };
    let is_single = if last == '.' { points == 1 } else { commas == 1 };
    is_single.then_some(last)
}

/// Whether the only mark separates decimals (`Some(Some)`) or groups (`Some(None)`); `None` when nobody can tell.
fn single_mark(plain: &str, mark: char, style: NumberStyle, has_apostrophe: bool) -> Option<Option<char>> {
    let (whole, tail) = plain.split_once(mark)?;
    let may_group = tail.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
    if !may_group || has_apostrophe {
        return Some(Some(mark));
    }
    match (style, mark) {
        (NumberStyle::Comma, ',') | (NumberStyle::Point, '.') => Some(Some(mark)),
        (NumberStyle::Comma, _) | (NumberStyle::Point, _) => Some(None),
        (NumberStyle::Unknown, _) => None,
    }
}

/// Groups are of three digits; the Indian way of two (12,34,567) is taken too.
fn is_well_grouped(whole: &str) -> bool {
    let mut groups = whole.split(['.', ',']);
    let first = groups.next().unwrap_or_default();
    let rest: Vec<&str> = groups.collect();
    let Some((last, middle)) = rest.split_last() else { return !first.is_empty() };
    (1..=3).contains(&first.len()) && last.len() == 3 && middle.iter().all(|g| matches!(g.len(), 2 | 3))
}

/// Decides how a document writes decimals from the numbers that leave no doubt.
pub fn style_of<'a>(texts: impl Iterator<Item = &'a str>) -> NumberStyle {
    let (mut comma, mut point) = (0u32, 0u32);
    for text in texts {
        for run in runs(text, &is_word_part) {
            match vote(&run.body) {
                Some(',') => comma += 1,
                Some('.') => point += 1,
                _ => {}
            }
        }
    }
    match comma.cmp(&point) {
        std::cmp::Ordering::Greater => NumberStyle::Comma,
        std::cmp::Ordering::Less => NumberStyle::Point,
        std::cmp::Ordering::Equal => NumberStyle::Unknown,
    }
}

/// The same for money without cents, where no number has decimals: the one mark that is used parts thousands.
pub fn style_of_whole_money<'a>(texts: impl Iterator<Item = &'a str>) -> NumberStyle {
    let (mut comma, mut point) = (false, false);
    for run in texts.flat_map(|text| runs(text, &is_word_part)) {
        comma |= run.body.contains(',');
        point |= run.body.contains('.');
    }
    match (comma, point) {
        (true, false) => NumberStyle::Point,
        (false, true) => NumberStyle::Comma,
        (true, true) | (false, false) => NumberStyle::Unknown,
    }
}

/// The decimal mark that a number gives away, if it does: by two decimals, by both marks, by repeated grouping.
fn vote(body: &str) -> Option<char> {
    let points = body.matches('.').count();
    let commas = body.matches(',').count();
    match (points, commas) {
        (1, 0) => (!is_group_like(body, '.')).then_some('.'),
        (0, 1) => (!is_group_like(body, ',')).then_some(','),
        (2.., 0) if is_well_grouped(body) => Some(','),
        (0, 2..) if is_well_grouped(body) => Some('.'),
        (1.., 1) if body.rfind(',') > body.rfind('.') => Some(','),
        (1, 1..) if body.rfind('.') > body.rfind(',') => Some('.'),
        _ => None,
    }
}

fn is_group_like(body: &str, mark: char) -> bool {
    body.rsplit(mark).next().is_some_and(|tail| tail.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, style: NumberStyle, expected: &[&str]) {
        let locale = Locale { numbers: style, ..Locale::default() };
        let found: Vec<String> = amounts(text, &locale)
            .into_iter()
            .map(|r| match r.typed {
                Typed::Number(n) => n.to_string(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(found, expected, "in {text:?} as {style:?}");
    }

    #[test]
    fn grouping_styles_read_as_the_same_number() {
        for text in ["1.234.567,00", "1,234,567.00", "1'234'567.00", "1 234 567,00", "12,34,567.00"] {
            check(text, NumberStyle::Unknown, &["1234567.00"]);
        }
        check("1.234.567", NumberStyle::Unknown, &["1234567"]);
    }

    #[test]
    fn digits_of_other_scripts_and_marks_of_money_behind_them_are_read() {
        for text in ["١٬٢٣٤٫٥٠", "１，２３４．５０", "1,234.50元", "1,234.50 ₪"] {
            check(text, NumberStyle::Unknown, &["1234.50"]);
        }
        check("12,000円", NumberStyle::Point, &["12000"]);
        assert_eq!(style_of_whole_money(["12,000円", "3"].into_iter()), NumberStyle::Point);
        assert_eq!(style_of_whole_money(["12.000", "3"].into_iter()), NumberStyle::Comma);
        assert_eq!(style_of_whole_money(["12.000", "1,5"].into_iter()), NumberStyle::Unknown);
    }

    #[test]
    fn the_documents_style_decides_where_a_number_alone_does_not() {
        check("1.234", NumberStyle::Comma, &["1234"]);
        check("1.234", NumberStyle::Point, &["1.234"]);
        check("1.234", NumberStyle::Unknown, &[]);
        check("0.025", NumberStyle::Comma, &["0.025"]);
        check("1.4500", NumberStyle::Comma, &["1.4500"]);
    }

    #[test]
    fn signs_may_stand_before_behind_or_around() {
        check("-8,79", NumberStyle::Comma, &["-8.79"]);
        check("8,79-", NumberStyle::Comma, &["-8.79"]);
        check("(35,13 €)", NumberStyle::Comma, &["-35.13"]);
        check("- € 12,50", NumberStyle::Comma, &["-12.50"]);
        check("−12,50 EUR", NumberStyle::Comma, &["-12.50"]);
        check("MwSt. (19 %) 71,51", NumberStyle::Comma, &["71.51"]);
    }

    #[test]
    fn money_marks_may_touch_and_other_letters_may_not() {
        check("Rp9.942.000,00", NumberStyle::Comma, &["9942000.00"]);
        check("EUR529,87", NumberStyle::Comma, &["529.87"]);
        check("$4.11", NumberStyle::Point, &["4.11"]);
        check("PO-10525 A4 20x150g", NumberStyle::Point, &[]);
        check("05.03.2014", NumberStyle::Comma, &[]);
        check("00.676.302.4-000.000", NumberStyle::Comma, &[]);
        check("03/10/2025", NumberStyle::Comma, &[]);
    }

    #[test]
    fn a_space_groups_only_before_decimals() {
        check("5 100", NumberStyle::Comma, &["5", "100"]);
        check("1 234,50 €", NumberStyle::Comma, &["1234.50"]);
        check("12\u{a0}345", NumberStyle::Comma, &["12345"]);
    }

    #[test]
    fn a_text_may_begin_with_a_rate() {
        fn check(text: &str, expected: Option<(&str, usize)>) {
            let found = leading_rate(text, &Locale { numbers: NumberStyle::Point, ..Locale::default() });
            let found = found.map(|(rate, end)| (crate::facts::plain(&rate.typed), end));
            assert_eq!(found, expected.map(|(rate, end)| (rate.to_owned(), end)), "{text}");
        }
        check(" 20%", Some(("20", 4)));
        check(" (9.25 %) x", Some(("9.25", 9)));
        check(" at 20% on", Some(("20", 7)));
        check(" 200.00", None);
        check(" 200.00 20%", None);
        check(" of all goods 20%", None);
        check("\t20%", None);
    }

    #[test]
    fn a_unit_may_touch_a_quantity() {
        let locale = Locale { numbers: NumberStyle::Comma, ..Locale::default() };
        let found = quantities("3 Std19 % VAT", &locale);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(unit_beside("-5,0000 Stk.", &(0..7)).as_deref(), Some("H87"));
    }

    #[test]
    fn the_style_is_voted_by_numbers_that_leave_no_doubt() {
        assert_eq!(style_of(["12,50", "1.234", "99,00"].into_iter()), NumberStyle::Comma);
        assert_eq!(style_of(["IDR 940,500.00", "2"].into_iter()), NumberStyle::Point);
        assert_eq!(style_of(["1.234.567", "20"].into_iter()), NumberStyle::Comma);
        assert_eq!(style_of(["1.234"].into_iter()), NumberStyle::Unknown);
    }
}
