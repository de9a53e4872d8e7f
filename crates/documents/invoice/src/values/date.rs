//! Days as people print them, with month names in twenty languages.

use std::ops::Range;

use jiff::civil::Date;

use super::Reading;
use super::number::western;
use crate::record::Typed;

/// In which order a date of three numbers is read where it does not tell by itself (`03/10/2025`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    /// Day, month, year: most of the world.
    #[default]
    DayFirst,
    /// Month, day, year.
    MonthFirst,
}

/// How a document writes its dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateStyle {
    /// Order of day and month in figures.
    pub order: DateOrder,
}

/// Month names by the shortest beginning that tells them apart, in lower case without accents:
/// Indonesian, English, German, French, Dutch, Spanish, Italian, Portuguese, Polish, Czech, Slovak, Danish, Swedish,
/// Norwegian, Finnish, Romanian, Hungarian, Croatian, Slovenian, Greek, Turkish, Russian, Ukrainian, Arabic, Hebrew. "Listopad" is November in Polish and Czech,
/// and October in Croatian: there it is printed in figures far more often, and November is taken.
const MONTHS: &[(&str, i8)] = &[
    ("januari", 1),
    ("january", 1),
    ("januar", 1),
    ("janner", 1),
    ("janvier", 1),
    ("janv", 1),
    ("enero", 1),
    ("ene", 1),
    ("gennaio", 1),
    ("gen", 1),
    ("janeiro", 1),
    ("jan", 1),
    ("februari", 2),
    ("february", 2),
    ("februar", 2),
    ("fevrier", 2),
    ("fevr", 2),
    ("febrero", 2),
    ("febbraio", 2),
    ("fevereiro", 2),
    ("pebruari", 2),
    ("feb", 2),
    ("fev", 2),
    ("maret", 3),
    ("march", 3),
    ("marz", 3),
    ("maerz", 3),
    ("mars", 3),
    ("maart", 3),
    ("marzo", 3),
    ("marco", 3),
    ("mar", 3),
    ("mrt", 3),
    ("april", 4),
    ("avril", 4),
    ("abril", 4),
    ("aprile", 4),
    ("apr", 4),
    ("avr", 4),
    ("abr", 4),
    ("mei", 5),
    ("may", 5),
    ("mai", 5),
    ("mayo", 5),
    ("maggio", 5),
    ("maio", 5),
    ("mag", 5),
    ("juni", 6),
    ("june", 6),
    ("juin", 6),
    ("junio", 6),
    ("giugno", 6),
    ("junho", 6),
    ("jun", 6),
    ("giu", 6),
    ("juli", 7),
    ("july", 7),
    ("juillet", 7),
    ("juil", 7),
    ("julio", 7),
    ("luglio", 7),
    ("julho", 7),
    ("jul", 7),
    ("lug", 7),
    ("agustus", 8),
    ("august", 8),
    ("aout", 8),
    ("augustus", 8),
    ("agosto", 8),
    ("aug", 8),
    ("agu", 8),
    ("ago", 8),
    ("agt", 8),
    ("ags", 8),
    ("september", 9),
    ("septembre", 9),
    ("septiembre", 9),
    ("settembre", 9),
    ("setembro", 9),
    ("sept", 9),
    ("sep", 9),
    ("set", 9),
    ("oktober", 10),
    ("october", 10),
    ("octobre", 10),
    ("octubre", 10),
    ("ottobre", 10),
    ("outubro", 10),
    ("okt", 10),
    ("oct", 10),
    ("ott", 10),
    ("out", 10),
    ("november", 11),
    ("nopember", 11),
    ("novembre", 11),
    ("noviembre", 11),
    ("novembro", 11),
    ("nov", 11),
    ("nop", 11),
    ("desember", 12),
    ("december", 12),
    ("dezember", 12),
    ("decembre", 12),
    ("diciembre", 12),
    ("dicembre", 12),
    ("dezembro", 12),
    ("des", 12),
    ("dec", 12),
    ("dez", 12),
    ("dic", 12),
    ("stycznia", 1),
    ("styczen", 1),
    ("ledna", 1),
    ("leden", 1),
    ("januara", 1),
    ("jan", 1),
    ("tammikuuta", 1),
    ("tammikuu", 1),
    ("ianuarie", 1),
    ("ian", 1),
    ("sijecnja", 1),
    ("sijecanj", 1),
    ("januarja", 1),
    ("ιανουαριου", 1),
    ("ιανουαριος", 1),
    ("ocak", 1),
    ("lutego", 2),
    ("luty", 2),
    ("unora", 2),
    ("unor", 2),
    ("februara", 2),
    ("helmikuuta", 2),
    ("helmikuu", 2),
    ("februarie", 2),
    ("februarja", 2),
    ("veljace", 2),
    ("veljaca", 2),
    ("φεβρουαριου", 2),
    ("φεβρουαριος", 2),
    ("subat", 2),
    ("marca", 3),
    ("marzec", 3),
    ("brezna", 3),
    ("brezen", 3),
    ("marts", 3),
    ("maaliskuuta", 3),
    ("maaliskuu", 3),
    ("martie", 3),
    ("marcius", 3),
    ("ozujka", 3),
    ("ozujak", 3),
    ("marec", 3),
    ("μαρτιου", 3),
    ("μαρτιος", 3),
    ("mart", 3),
    ("kwietnia", 4),
    ("kwiecien", 4),
    ("dubna", 4),
    ("duben", 4),
    ("aprila", 4),
    ("huhtikuuta", 4),
    ("huhtikuu", 4),
    ("aprilie", 4),
    ("aprilis", 4),
    ("travnja", 4),
    ("travanj", 4),
    ("απριλιου", 4),
    ("απριλιος", 4),
    ("nisan", 4),
    ("maja", 5),
    ("maj", 5),
    ("kvetna", 5),
    ("kveten", 5),
    ("toukokuuta", 5),
    ("toukokuu", 5),
    ("majus", 5),
    ("svibnja", 5),
    ("svibanj", 5),
    ("μαιου", 5),
    ("μαιος", 5),
    ("mayis", 5),
    ("czerwca", 6),
    ("czerwiec", 6),
    ("cervna", 6),
    ("cerven", 6),
    ("juna", 6),
    ("kesakuuta", 6),
    ("kesakuu", 6),
    ("iunie", 6),
    ("junius", 6),
    ("lipnja", 6),
    ("lipanj", 6),
    ("junija", 6),
    ("ιουνιου", 6),
    ("ιουνιος", 6),
    ("haziran", 6),
    ("lipca", 7),
    ("cervence", 7),
    ("cervenec", 7),
    ("jula", 7),
    ("heinakuuta", 7),
    ("heinakuu", 7),
    ("iulie", 7),
    ("julius", 7),
    ("srpnja", 7),
    ("srpanj", 7),
    ("julija", 7),
    ("ιουλιου", 7),
    ("ιουλιος", 7),
    ("temmuz", 7),
    ("sierpnia", 8),
    ("sierpien", 8),
    ("srpna", 8),
    ("srpen", 8),
    ("augusta", 8),
    ("augusti", 8),
    ("elokuuta", 8),
    ("elokuu", 8),
    ("augusztus", 8),
    ("kolovoza", 8),
    ("kolovoz", 8),
    ("avgusta", 8),
    ("avgust", 8),
    ("αυγουστου", 8),
    ("αυγουστος", 8),
    ("agustos", 8),
    ("wrzesnia", 9),
    ("wrzesien", 9),
    ("zari", 9),
    ("septembra", 9),
    ("syyskuuta", 9),
    ("syyskuu", 9),
    ("septembrie", 9),
    ("szeptember", 9),
    ("rujna", 9),
    ("rujan", 9),
    ("σεπτεμβριου", 9),
    ("σεπτεμβριος", 9),
    ("eylul", 9),
    ("pazdziernika", 10),
    ("pazdziernik", 10),
    ("rijna", 10),
    ("rijen", 10),
    ("oktobra", 10),
    ("lokakuuta", 10),
    ("lokakuu", 10),
    ("octombrie", 10),
    ("listopada", 11),
    ("listopad", 11),
    ("οκτωβριου", 10),
    ("οκτωβριος", 10),
    ("ekim", 10),
    ("listopadu", 11),
    ("novembra", 11),
    ("marraskuuta", 11),
    ("marraskuu", 11),
    ("noiembrie", 11),
    ("studenoga", 11),
    ("studenog", 11),
    ("studeni", 11),
    ("νοεμβριου", 11),
    ("νοεμβριος", 11),
    ("kasim", 11),
    ("grudnia", 12),
    ("grudzien", 12),
    ("prosince", 12),
    ("prosinec", 12),
    ("decembra", 12),
    ("joulukuuta", 12),
    ("joulukuu", 12),
    ("decembrie", 12),
    ("prosinca", 12),
    ("prosinac", 12),
    ("δεκεμβριου", 12),
    ("δεκεμβριος", 12),
    ("aralik", 12),
    ("січня", 1),
    ("января", 1),
    ("ינואר", 1),
    ("يناير", 1),
    ("лютого", 2),
    ("февраля", 2),
    ("פברואר", 2),
    ("فبراير", 2),
    ("березня", 3),
    ("марта", 3),
    ("מרס", 3),
    ("מרץ", 3),
    ("مارس", 3),
    ("апреля", 4),
    ("квітня", 4),
    ("אפריל", 4),
    ("ابريل", 4),
    ("мая", 5),
    ("травня", 5),
    ("מאי", 5),
    ("مايو", 5),
    ("июня", 6),
    ("червня", 6),
    ("יוני", 6),
    ("يونيو", 6),
    ("июля", 7),
    ("липня", 7),
    ("יולי", 7),
    ("يوليو", 7),
    ("августа", 8),
    ("серпня", 8),
    ("אוגוסט", 8),
    ("اغسطس", 8),
    ("вересня", 9),
    ("сентября", 9),
    ("ספטמבר", 9),
    ("سبتمبر", 9),
    ("жовтня", 10),
    ("октября", 10),
    ("אוקטובר", 10),
    ("اكتوبر", 10),
    ("листопада", 11),
    ("ноября", 11),
    ("נובמבר", 11),
    ("نوفمبر", 11),
    ("грудня", 12),
    ("декабря", 12),
    ("דצמבר", 12),
    ("ديسمبر", 12),
];

/// A piece of a text that may be part of a date.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Number {
        value: i16,
        digits: usize,
    },
    Month(i8),
    /// A whole date in eight figures, 20250131.
    Whole(Date),
    /// Words and marks that stand inside dates: ".", "/", "-", ",", "de", "den", "of", "st", "th".
    Joint,
    Other,
}

/// Every date in the text, from left to right.
pub fn dates(text: &str, style: &DateStyle) -> Vec<Reading> {
    let parts = parts(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        match date_at(&parts, at, style) {
            Some((date, end)) => {
                let chars = parts[at].1.start..parts[end - 1].1.end;
                found.push(Reading { typed: Typed::Date(date), chars, is_sure: true });
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// Whether day and month of a printed date may be taken for each other: 04/05/2025.
pub fn may_be_turned(printed: &str) -> bool {
    let parts: Vec<Option<u32>> =
        printed.trim().split(['/', '-']).map(|part| part.trim().parse().ok()).collect();
    let [Some(first), Some(second), Some(_)] = parts[..] else { return false };
    let is_month = |number: u32| (1..=12).contains(&number);
    is_month(first) && is_month(second) && first != second
}

/// Whether a document's dates put the month first: some date in figures can be read no other way. None where all of
/// them can be read both ways.
pub fn order_of<'a>(texts: impl Iterator<Item = &'a str>) -> Option<DateOrder> {
    let (mut day_first, mut month_first) = (0, 0);
    for text in texts.filter(|text| text.contains(|c: char| c.is_numeric())) {
        let parts = parts(text);
        for window in parts.windows(5) {
            let [(a, _), (j1, _), (b, _), (j2, _), (c, _)] = window else { continue };
            let (Part::Number { value: a, .. }, Part::Number { value: b, .. }) = (a, b) else { continue };
            let is_date =
                *j1 == Part::Joint && *j2 == Part::Joint && matches!(c, Part::Number { digits: 4, .. });
            if is_date && *a <= 12 && (13..=31).contains(b) {
                month_first += 1;
            } else if is_date && (13..=31).contains(a) && *b <= 12 {
                day_first += 1;
            }
        }
    }
    match month_first.cmp(&day_first) {
        std::cmp::Ordering::Greater => Some(DateOrder::MonthFirst),
        std::cmp::Ordering::Less => Some(DateOrder::DayFirst),
        std::cmp::Ordering::Equal => None,
    }
}

fn parts(text: &str) -> Vec<(Part, Range<usize>)> {
    let chars: Vec<char> = text.chars().map(western).collect();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        let class = class_of(chars[at]);
        while at < chars.len() && class_of(chars[at]) == class && (class != Class::Mark || at == start) {
            at += 1;
        }
        let word = &chars[start..at];
        let part = match class {
            Class::Space => continue,
            Class::Digit => number_part(word),
            Class::Letter => word_part(word),
            Class::Mark if matches!(word[0], '.' | '/' | '-' | ',' | '–') => Part::Joint,
            Class::Mark => Part::Other,
        };
        parts.push((part, start..at));
    }
    parts
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Digit,
    Letter,
    Space,
    Mark,
}

fn class_of(c: char) -> Class {
    if c.is_ascii_digit() {
        Class::Digit
    } else if c.is_alphabetic() {
        Class::Letter
    } else if c.is_whitespace() {
        Class::Space
    } else {
        Class::Mark
    }
}

fn number_part(word: &[char]) -> Part {
    let text: String = word.iter().collect();
    match (word.len(), text.parse::<i16>()) {
        (1 | 2 | 4, Ok(value)) => Part::Number { value, digits: word.len() },
        _ if word.len() == 8 => whole_part(&text),
        _ => Part::Other,
    }
}

fn whole_part(text: &str) -> Part {
    let date = || -> Option<Date> {
        let year: i16 = text[..4].parse().ok()?;
        // Eight figures are a number first of all; only years near ours make a date of them.
        (1990..=2059).contains(&year).then_some(())?;
        date(year, text[4..6].parse().ok()?, text[6..].parse().ok()?)
    };
    date().map_or(Part::Other, Part::Whole)
}

fn word_part(word: &[char]) -> Part {
    let folded: String = word.iter().map(|c| crate::sheet::fold_char(*c)).collect();
    match folded.as_str() {
        "de" | "del" | "den" | "of" | "st" | "nd" | "rd" | "th" | "er" | "d" => Part::Joint,
        // "2026年3月5日", "2026년 3월 5일".
        "年" | "月" | "日" | "년" | "월" | "일" => Part::Joint,
        word => month(word).map_or(Part::Other, Part::Month),
    }
}

/// The month of a name. Looked up for every word of a page, so by its first letter first.
fn month(word: &str) -> Option<i8> {
    let first = word.as_bytes().first()?;
    let known = MONTHS.iter().filter(|(name, _)| name.as_bytes().first() == Some(first));
    known.filter(|(name, _)| *name == word).map(|(_, month)| *month).next()
}

/// The date that starts at this part, and the part after its end.
fn date_at(parts: &[(Part, Range<usize>)], at: usize, style: &DateStyle) -> Option<(Date, usize)> {
    if continues_figure(parts, at) {
        return None;
    }
    if let Part::Whole(date) = parts[at].0 {
        let is_apart = !touches_word(parts, at);
        return is_apart.then_some((date, at + 1));
    }
    let (first, next) = (&parts[at].0, skip_joints(parts, at + 1));
    let second = &parts.get(next)?.0;
    let after = skip_joints(parts, next + 1);
    let third = parts.get(after).map(|p| &p.0)?;
    let by_marks = touches(parts, at) && touches(parts, next);
    let date = match (first, second, third) {
        (Part::Number { value: d, digits: 1 | 2 }, Part::Month(m), Part::Number { value: y, digits }) => {
            date(year(*y, *digits)?, *m, *d)
        }
        (Part::Month(m), Part::Number { value: d, digits: 1 | 2 }, Part::Number { value: y, digits: 4 }) => {
            date(*y, *m, *d)
        }
        (
            Part::Number { value: y, digits: 4 },
            Part::Number { value: m, digits: 1 | 2 },
            Part::Number { value: d, digits: 1 | 2 },
        ) if by_marks && (is_padded(second, third) || has_marks(parts, at, after)) => {
            date(year(*y, 4)?, i8::try_from(*m).ok()?, *d)
        }
        (
            Part::Number { value: a, digits: 1 | 2 },
            Part::Number { value: b, digits: 1 | 2 },
            Part::Number { value: y, digits },
        ) if by_marks && has_marks(parts, at, after) => figures(*a, *b, year(*y, *digits)?, style.order),
        _ => None,
    };
    date.map(|date| (date, after + 1))
}

/// Whether both numbers have two figures.
fn is_padded(month: &Part, day: &Part) -> bool {
    [month, day].iter().all(|part| matches!(part, Part::Number { digits: 2, .. }))
}

/// A date does not start in the middle of a longer figure such as "1.25.04.2018".
fn continues_figure(parts: &[(Part, Range<usize>)], at: usize) -> bool {
    let Some([(before, number), (joint, mark)]) = at.checked_sub(2).map(|from| &parts[from..at]) else {
        return false;
    };
    let is_tight = number.end == mark.start && mark.end == parts[at].1.start;
    is_tight && *joint == Part::Joint && matches!(before, Part::Number { .. })
}

/// At most two joints in a row belong to a date ("1. Mai", "3 , 2014").
fn skip_joints(parts: &[(Part, Range<usize>)], from: usize) -> usize {
    let joints = parts[from.min(parts.len())..].iter().take(2).take_while(|p| p.0 == Part::Joint).count();
    from + joints
}

/// Whether the part stands directly against the next one.
fn touches(parts: &[(Part, Range<usize>)], at: usize) -> bool {
    parts.get(at + 1).is_some_and(|next| next.1.start <= parts[at].1.end + 1)
}

/// Whether something other than space stands directly before or behind the part.
fn touches_word(parts: &[(Part, Range<usize>)], at: usize) -> bool {
    let range = &parts[at].1;
    let before = at.checked_sub(1).is_some_and(|i| parts[i].1.end == range.start);
    before || parts.get(at + 1).is_some_and(|next| next.1.start == range.end)
}

/// Dates in figures hold the same mark twice: "05.03.2014", "03/10/2025", "05-03-2026".
fn has_marks(parts: &[(Part, Range<usize>)], start: usize, end: usize) -> bool {
    end == start + 4 && parts[start + 1].1.len() == 1 && parts[start + 3].1.len() == 1
}

fn figures(a: i16, b: i16, year: i16, order: DateOrder) -> Option<Date> {
    let (day, month) = match order {
        DateOrder::MonthFirst if a <= 12 => (b, a),
        DateOrder::DayFirst if b > 12 && a <= 12 => (b, a),
        DateOrder::DayFirst | DateOrder::MonthFirst => (a, b),
    };
    date(year, i8::try_from(month).ok()?, day)
}

/// Two figures mean the years 1970 to 2069.
fn year(value: i16, digits: usize) -> Option<i16> {
    match digits {
        4 if (1900..=2199).contains(&value) => Some(value),
        2 => Some(if value < 70 { 2000 + value } else { 1900 + value }),
        _ => None,
    }
}

fn date(year: i16, month: i8, day: i16) -> Option<Date> {
    if !(1900..=2199).contains(&year) {
        return None;
    }
    Date::new(year, month, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_small_numbers_may_be_turned() {
        for (printed, expected) in [
            ("04/05/2025", true),
            ("4-5-25", true),
            ("05/05/2025", false),
            ("13/05/2025", false),
            ("04.05.2025", false),
            ("2025-04-05", false),
            ("4 May 2025", false),
        ] {
            assert_eq!(may_be_turned(printed), expected, "{printed}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = dates(text, &DateStyle::default())
            .into_iter()
            .map(|r| match r.typed {
                Typed::Date(date) => date.to_string(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(found, expected, "in {text:?}");
    }

    #[test]
    fn dates_of_many_languages_are_read() {
        check("21 Januari 2025", &["2025-01-21"]);
        check("August 3 , 2014", &["2014-08-03"]);
        check("11. März 2014", &["2014-03-11"]);
        check("le 1er février 2024", &["2024-02-01"]);
        check("3 mei 2024", &["2024-05-03"]);
        check("5 de octubre de 2023", &["2023-10-05"]);
        check("7 luglio 2022", &["2022-07-07"]);
        check("9 de março de 2021", &["2021-03-09"]);
        check("Jan 31, 2022", &["2022-01-31"]);
        check("20 марта 2026 г.", &["2026-03-20"]);
        check("5 אפריל 2026", &["2026-04-05"]);
        check("2026年3月5日", &["2026-03-05"]);
        check("2026년 12월 31일", &["2026-12-31"]);
    }

    #[test]
    fn figures_are_read_day_first_unless_they_cannot_be() {
        check("03/10/2025", &["2025-10-03"]);
        check("11/17/2017", &["2017-11-17"]);
        check("05-03-2026", &["2026-03-05"]);
        check("21.05.14", &["2014-05-21"]);
        check("DATE : 20200115", &["2020-01-15"]);
        check("RE-20150613/503", &[]);
        check("2019-06-10", &["2019-06-10"]);
        check("von 13.06.2015", &["2015-06-13"]);
        check("2026/3/5", &["2026-03-05"]);
        check("١٥/٠٣/٢٠٢٦", &["2026-03-15"]);
    }

    #[test]
    fn what_is_no_date_is_left_alone() {
        check("00.676.302.4-000.000", &[]);
        check("1.234.567,00", &[]);
        check("31.02.2024", &[]);
        check("Seite 1 von 4", &[]);
        check("INV/2025/10/0002", &[]);
    }

    #[test]
    fn a_period_gives_both_its_days() {
        check("01.04.2014 - 30.06.2014", &["2014-04-01", "2014-06-30"]);
    }

    #[test]
    fn one_date_that_puts_the_month_first_decides_for_all() {
        assert_eq!(order_of(["11/03/2017", "11/17/2017"].into_iter()), Some(DateOrder::MonthFirst));
        assert_eq!(order_of(["11/03/2017"].into_iter()), None);
    }
}
