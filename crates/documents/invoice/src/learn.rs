//! A mapping from one document and what it says: labels and headings are found by looking where each expected value
//! stands, every rule is tried on the document, and only one that gives the expected value is kept. The rest is left
//! to the generic mapping, which the new one extends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ode_pdf::{Document, Rect};
use serde_json::Value as Json;

use crate::engine;
use crate::error::{ExtractError, MappingError};
use crate::label::{as_pattern, normal};
use crate::mapping::{self, Mapping};
use crate::pattern::escape;
use crate::record::{Record, Typed};
use crate::registry::Registry;
use crate::sheet::{Piece, Sheet, TextRow, fold};
use crate::values::{self, Kind, Locale, tidy};

/// What the learned mapping extends.
const BASE: &str = "generic_invoice_v1";
/// Places of a value that are looked at; a figure may stand on a page many times.
const PLACES_MAX: usize = 12;
/// How many lines up a label or a heading may stand.
const LABEL_REACH: usize = 3;
/// How many labels tell the layout.
const TERMS_MAX: usize = 10;

/// Fields whose labels end a table of lines.
const TOTALS: &[&str] = &["net_total", "tax_total", "gross_total", "line_total", "payable"];

/// Letters that make a word worth comparing.
const STEM_LETTERS: usize = 5;
/// A label right before the value, or one known for it.
const STRONG_RULE: f32 = 1.0;

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Learned {
    /// The mapping file.
    pub text: String,
    /// Fields with a rule of their own.
    pub own: Vec<String>,
    /// Fields that the generic mapping already reads rightly.
    pub generic: Vec<String>,
    /// Expected fields that no rule gives.
    pub missed: Vec<String>,
    /// Cells of the lines that come out as expected, and how many there are.
    pub cells: (usize, usize),
}

/// One document to learn from.
#[derive(Clone, Copy, Debug)]
pub struct Lesson<'a> {
    pub document: &'a Document,
    /// Path that the mapping's own test names.
    pub file: &'a str,
    /// Field names to values, `lines` to a list of rows; numbers as text with a point, dates as ISO 8601.
    pub expected: &'a Json,
    /// Name of the new mapping.
    pub name: &'a str,
}

#[derive(Clone, Debug)]
struct Spot {
    page: usize,
    row: usize,
    chars: std::ops::Range<usize>,
}

struct Learner<'a> {
    sheet: Sheet<'a>,
    locale: Locale,
    base: Arc<Mapping>,
}

/// Writes a mapping that reads the document as expected.
pub fn learn(lesson: Lesson<'_>, registry: &Registry) -> Result<Learned, ExtractError> {
    let sheet = Sheet::new(lesson.document);
    if sheet.is_empty() {
        return Err(ExtractError::NoText);
    }
    let base = registry.current().get(BASE)?.clone();
    let locale = engine::locale_of(base.locale(), None, &sheet);
    let learner = Learner { sheet, locale, base };
    check_shape(lesson.expected).map_err(|reason| ExtractError::NothingLearned { reason })?;
    let expected = expected_fields(lesson.expected);
    if expected.is_empty() {
        return Err(ExtractError::NothingLearned { reason: "no values were given".into() });
    }
    let rows = expected_rows(lesson.expected);
    let mut rules: BTreeMap<String, (String, String)> = BTreeMap::new();
    let known = learner.run("", true).unwrap_or_default();
    for (name, value) in &expected {
        let is_known = known.fields.get(name).is_some_and(|f| is_expected(&f.value.typed, value));
        if let Some((score, rule, label)) = learner.field_rule(name, value) {
            // A weak rule of its own would only stand in the way of a general one that works.
            if score >= STRONG_RULE || !is_known {
                rules.insert(name.clone(), (rule, label));
            }
        }
    }
    let table = learner.table(&rows);
    let text = learner.settle(&lesson, &expected, &mut rules, &table)?;
    learner.report(text, &expected, &rows, &rules)
}

/// An object of texts and numbers by field, and `lines` as a list of such objects.
fn check_shape(expected: &Json) -> Result<(), String> {
    let Some(map) = expected.as_object() else {
        return Err(
            "the expected values are one JSON object, {\"invoice_number\": \"…\", \"lines\": […]}".into()
        );
    };
    for (name, value) in
        map.iter().filter(|(name, _)| !matches!(name.as_str(), "kind" | "source" | "findings"))
    {
        let is_table = value.as_array().is_some_and(|rows| rows.iter().all(Json::is_object));
        if !is_table && (value.is_array() || value.is_object() || value.is_boolean()) {
            return Err(format!("{name} is neither a text, a number nor a list of rows"));
        }
        let text = as_text(value).unwrap_or_default();
        let is_odd = match kind_of(name) {
            Kind::Date => text.trim().parse::<jiff::civil::Date>().is_err(),
            Kind::Amount => text.trim().parse::<rust_decimal::Decimal>().is_err(),
            _ => false,
        };
        if is_odd && !text.trim().is_empty() {
            return Err(format!("{name} is {text:?}; write days as 2026-03-05 and amounts as 1234.50"));
        }
    }
    Ok(())
}

fn expected_fields(expected: &Json) -> BTreeMap<String, String> {
    let Some(map) = expected.as_object() else { return BTreeMap::new() };
    let texts = map.iter().filter_map(|(name, value)| Some((name.clone(), as_text(value)?)));
    texts.filter(|(_, text)| !text.trim().is_empty()).collect()
}

fn as_text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

fn expected_rows(expected: &Json) -> Vec<BTreeMap<String, String>> {
    let rows = expected.get("lines").and_then(Json::as_array);
    rows.map(|rows| rows.iter().map(expected_fields).collect()).unwrap_or_default()
}

/// What kind of value a name of ours holds.
fn kind_of(name: &str) -> Kind {
    match name {
        "currency" => Kind::Currency,
        "iban" => Kind::Iban,
        "bic" => Kind::Bic,
        "quantity" => Kind::Quantity,
        "tax_rate" | "rate" => Kind::Percent,
        "payable" | "prepaid" | "rounding" | "total" | "unit_price" | "amount" | "basis" => Kind::Amount,
        _ if name.ends_with("_date") => Kind::Date,
        _ if name.ends_with("_total") => Kind::Amount,
        _ if name.ends_with("_vat_id") => Kind::VatId,
        _ => Kind::Text,
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Id => "id",
        Kind::Amount => "amount",
        Kind::Number => "number",
        Kind::Quantity => "quantity",
        Kind::Unit => "unit",
        Kind::Int => "int",
        Kind::Percent => "percent",
        Kind::Date => "date",
        Kind::Currency => "currency",
        Kind::Iban => "iban",
        Kind::Bic => "bic",
        Kind::VatId => "vat-id",
        Kind::TaxNumber => "tax-number",
    }
}

/// Whether a value is the expected one: numbers by value, texts without case and space.
fn is_expected(typed: &Typed, expected: &str) -> bool {
    match typed {
        Typed::Number(number) => expected.trim().parse().is_ok_and(|e: rust_decimal::Decimal| e == *number),
        Typed::Date(date) => date.to_string() == expected.trim(),
        Typed::Text(text) | Typed::Code(text) => squeeze(text) == squeeze(expected),
    }
}

fn squeeze(text: &str) -> String {
    fold(text).chars().filter(|c| !c.is_whitespace()).collect()
}

/// A text as TOML writes it.
fn quote(text: &str) -> String {
    Json::from(text).to_string()
}

impl Learner<'_> {
    /// Everywhere the value stands.
    fn spots(&self, kind: Kind, expected: &str) -> Vec<Spot> {
        let mut spots = Vec::new();
        for (page, at, row) in self.sheet.rows() {
            if kind == Kind::Text {
                spots.extend(text_spots(row, expected).map(|chars| Spot { page, row: at, chars }));
                continue;
            }
            let readings = values::read_all(kind, &row.text, &self.locale).into_iter();
            let same = readings.filter(|r| is_expected(&r.typed, expected));
            spots.extend(same.map(|r| Spot { page, row: at, chars: r.chars }));
        }
        spots.truncate(PLACES_MAX);
        spots
    }

    /// The best rule that gives the value: what it is worth, its text in TOML, and the label it hangs on.
    fn field_rule(&self, name: &str, expected: &str) -> Option<(f32, String, String)> {
        let kind = kind_of(name);
        let mut tried: Vec<(f32, String, String)> = Vec::new();
        for spot in self.spots(kind, expected) {
            for (score, rule, label) in self.rules_for(name, kind, &spot) {
                if !tried.iter().any(|(_, r, _)| *r == rule) {
                    tried.push((score, rule, label));
                }
            }
        }
        tried.sort_by(|a, b| b.0.total_cmp(&a.0));
        let gives = |rule: &str| {
            let record = self.run(&format!("[fields.{name}]\n{rule}"), false)?;
            is_expected(&record.fields.get(name)?.value.typed, expected).then_some(())
        };
        tried.into_iter().find(|(_, rule, _)| gives(rule).is_some())
    }

    /// Rules by which a place could be found, with how much they are worth.
    fn rules_for(&self, name: &str, kind: Kind, spot: &Spot) -> Vec<(f32, String, String)> {
        let row = self.sheet.row(spot.page, spot.row);
        let mut rules = Vec::new();
        let typed = format!("type = {}\n", quote(kind_name(kind)));
        let mut push = |score: f32, label: String, place: &str| {
            let score = score + self.fitness(name, &label);
            let anchor = term_of(&label);
            let plain = format!("anchor = {}\nwhere = {}\n{typed}", quote(&anchor), quote(place));
            if let Some(section) = self.section(spot) {
                rules.push((score - 0.2, format!("{plain}{section}"), label.clone()));
            }
            rules.push((score, plain, label));
        };
        if let Some(label) = label_before(row, spot) {
            // A line of many pieces is a row of a table, whose first words label nothing.
            push(if row.pieces.len() <= 3 { 1.0 } else { 0.7 }, label, "right");
        }
        for (distance, label) in self.labels_above(spot) {
            push(0.8 - 0.1 * distance as f32, label.clone(), "below");
            if kind == Kind::Text {
                push(0.75 - 0.1 * distance as f32, label, "block");
            }
        }
        if let Some(zone) = self.zone(spot) {
            rules.push((0.1, format!("{zone}{typed}line = 1\n"), String::new()));
        }
        rules
    }

    /// A label that the generic mapping knows for this field is a good one, for another field a bad one.
    fn fitness(&self, name: &str, label: &str) -> f32 {
        let wanted = normal(label);
        let knows = |field: &crate::mapping::file::FieldFile| {
            let ways = std::iter::once(field).chain(&field.or);
            ways.flat_map(|f| &f.anchor.0).any(|a| as_pattern(a).is_none() && normal(a) == wanted)
        };
        let file = self.base.file();
        let own = file.fields.get(name).is_some_and(knows);
        let other = file.fields.iter().any(|(n, field)| n != name && knows(field));
        match (own, other) {
            (true, _) => 0.5,
            (false, true) => -0.5,
            // Part of a known label still says something: "Rechnungssumme ohne USt." beside "Rechnungssumme netto".
            (false, false) => 0.3 * self.kinship(name, &wanted),
        }
    }

    /// Share of a label's longer words that occur in the known labels of the field, also as parts of compounds.
    fn kinship(&self, name: &str, label: &str) -> f32 {
        let known = self.base.file().fields.get(name).map(|f| f.anchor.0.join(" ")).unwrap_or_default();
        let known = fold(&known);
        let words: Vec<&str> =
            label.split_whitespace().filter(|w| w.chars().count() >= STEM_LETTERS).collect();
        let is_kin = |word: &&&str| {
            let stem: String = word.chars().take(STEM_LETTERS + 1).collect();
            known.contains(&stem)
        };
        words.iter().filter(is_kin).count() as f32 / words.len().max(1) as f32
    }

    /// The section that a place stands in: from the nearest line that is a heading to the next one set like it.
    fn section(&self, spot: &Spot) -> Option<String> {
        let page = &self.sheet.pages[spot.page];
        let is_heading = |row: &TextRow| match row.pieces.as_slice() {
            [only] => {
                let text = row.slice(&only.chars);
                let is_short = text.chars().count() <= 40 && !text.chars().any(|c| c.is_ascii_digit());
                is_short && (only.is_bold || text.trim_end().ends_with(':'))
            }
            _ => false,
        };
        let from = (0..spot.row).rev().take(14).find(|at| is_heading(&page.rows[*at]))?;
        let head = page.rows[from].pieces[0].clone();
        let is_alike = |row: &&TextRow| {
            let piece = row.pieces.first();
            is_heading(row)
                && piece.is_some_and(|p| p.is_bold == head.is_bold && (p.bbox.x0 - head.bbox.x0).abs() < 2.0)
        };
        let to = page.rows[spot.row + 1..].iter().find(is_alike).map(|row| clean(&row.text));
        let to = to.map(|to| format!(", to = {}", quote(&to))).unwrap_or_default();
        Some(format!("within = {{ from = {}{to} }}\n", quote(&clean(&page.rows[from].text))))
    }

    /// Labels over a place, the nearest first.
    fn labels_above(&self, spot: &Spot) -> Vec<(usize, String)> {
        let page = &self.sheet.pages[spot.page];
        let Some(rect) = page.rows[spot.row].rect(&spot.chars) else { return Vec::new() };
        let upper = page.rows[..spot.row].iter().rev().take(LABEL_REACH).enumerate();
        upper
            .filter_map(|(distance, row)| {
                let piece = row.pieces.iter().find(|p| touches(p, rect))?;
                let label = clean(&row.slice(&piece.chars));
                is_label(&label).then_some((distance, label))
            })
            .collect()
    }

    /// The part of the page around a place, in percent.
    fn zone(&self, spot: &Spot) -> Option<String> {
        let page = &self.sheet.pages[spot.page];
        let rect = page.rows[spot.row].rect(&spot.chars)?;
        let (w, h) = (page.page.width / 100.0, page.page.height / 100.0);
        let zone = page.mirrored(Rect { x0: rect.x0 - 2.0 * w, x1: rect.x0 + 45.0 * w, ..rect });
        let (x0, y0) = ((zone.x0 / w).max(0.0).floor(), (zone.y0 / h - 1.0).max(0.0).floor());
        let (x1, y1) = ((zone.x1 / w).min(100.0).ceil(), (zone.y1 / h + 1.0).min(100.0).ceil());
        let number = if spot.page == 0 { 1 } else { spot.page as i64 - self.sheet.pages.len() as i64 };
        Some(format!("zone = {{ page = {number}, box = [{x0}, {y0}, {x1}, {y1}] }}\n"))
    }

    /// Runs rules on the document, alone or on top of the generic mapping.
    fn run(&self, rules: &str, extends: bool) -> Option<Record> {
        let extends = if extends { format!("extends = {}\n", quote(BASE)) } else { String::new() };
        let text = format!("schema = 1\nname = \"trial\"\nversion = 1\n{extends}{rules}");
        let mapping = self.parse(&text).ok()?;
        Some(engine::run(&mapping, &self.sheet).record)
    }

    fn parse(&self, text: &str) -> Result<Mapping, MappingError> {
        mapping::parse_lazily("learned", text, &|id| (id == BASE).then(|| self.base.clone()))
    }

    /// Puts the file together, and takes back rules that give another value beside the others than alone. What no rule
    /// gives as expected stays blank: the generic mapping would give something else.
    fn settle(
        &self,
        lesson: &Lesson<'_>,
        expected: &BTreeMap<String, String>,
        rules: &mut BTreeMap<String, (String, String)>,
        table: &str,
    ) -> Result<String, ExtractError> {
        let mut blank: BTreeSet<String> = BTreeSet::new();
        loop {
            let blanks: String =
                blank.iter().map(|name| format!("\n[fields.{name}]\nblank = true\n")).collect();
            let rest = blanks + table;
            let text = self.file(lesson, expected, rules, &rest);
            let mapping = self.parse(&text)?;
            let record = engine::run(&mapping, &self.sheet).record;
            let is_right = |name: &String| {
                let found = record.fields.get(name);
                found.is_some_and(|f| is_expected(&f.value.typed, &expected[name]))
            };
            let wrong: Vec<String> = rules.keys().filter(|name| !is_right(name)).cloned().collect();
            let is_misread = |name: &&String| record.fields.contains_key(*name) && !is_right(name);
            let misread: Vec<String> = expected
                .keys()
                .filter(|name| !rules.contains_key(*name))
                .filter(is_misread)
                .cloned()
                .collect();
            if wrong.is_empty() && misread.is_empty() {
                // Its own test promises only what it gives; what is missed is told beside the file.
                let given: BTreeMap<String, String> = expected
                    .iter()
                    .filter(|(name, _)| is_right(name))
                    .map(|(n, v)| (n.clone(), v.clone()))
                    .collect();
                return Ok(self.file(lesson, &given, rules, &rest));
            }
            // A wrong rule may lead others astray, so it goes first.
            blank.extend(misread.into_iter().filter(|_| wrong.is_empty()));
            for name in wrong {
                rules.remove(&name);
            }
        }
    }

    fn file(
        &self,
        lesson: &Lesson<'_>,
        expected: &BTreeMap<String, String>,
        rules: &BTreeMap<String, (String, String)>,
        table: &str,
    ) -> String {
        let mut labels: Vec<String> = rules.values().map(|(_, label)| normal(label)).collect();
        labels.retain(|l| l.chars().count() > 2 && !l.chars().any(|c| c.is_ascii_digit()));
        labels.sort_by_key(|l| std::cmp::Reverse(l.chars().count()));
        labels.dedup();
        labels.truncate(TERMS_MAX);
        let terms: Vec<String> = labels.iter().map(|l| quote(l)).collect();
        let mut text = format!(
            "schema = 1\nname = {}\nversion = 1\nstatus = \"draft\"\nextends = {}\nabout = \"Learned from one document\"\n\n\
             [match]\nany = [{}]\nmin_any = {}\n",
            quote(lesson.name),
            quote(BASE),
            terms.join(", "),
            (labels.len() * 6).div_ceil(10),
        );
        for (name, (rule, _)) in rules {
            let term = self.base.rules().fields.get(name).and_then(|f| f.to.clone());
            let term = term.or_else(|| crate::terms::header(name).map(|term| term.number.to_owned()));
            let term = term.map(|t| format!("to = {}\n", quote(&t))).unwrap_or_default();
            text.push_str(&format!("\n[fields.{name}]\n{rule}inherit = true\n{term}"));
        }
        text.push_str(table);
        let values: Vec<String> = expected.iter().map(|(n, v)| format!("{n} = {}", quote(v))).collect();
        let file = quote(lesson.file);
        text.push_str(&format!("\n[[tests]]\nfile = {file}\nexpect = {{ {} }}\n", values.join(", ")));
        text
    }

    fn report(
        &self,
        text: String,
        expected: &BTreeMap<String, String>,
        rows: &[BTreeMap<String, String>],
        rules: &BTreeMap<String, (String, String)>,
    ) -> Result<Learned, ExtractError> {
        let record = engine::run(&self.parse(&text)?, &self.sheet).record;
        let is_right = |name: &&String| {
            record.fields.get(*name).is_some_and(|f| is_expected(&f.value.typed, &expected[*name]))
        };
        let (right, missed): (Vec<&String>, Vec<&String>) = expected.keys().partition(is_right);
        let (own, generic): (Vec<&String>, Vec<&String>) =
            right.into_iter().partition(|n| rules.contains_key(*n));
        if own.is_empty() && generic.is_empty() {
            let reason = "none of the expected values was found on its pages".into();
            return Err(ExtractError::NothingLearned { reason });
        }
        let names = |list: Vec<&String>| list.into_iter().cloned().collect();
        let cells = (cells_right(&record, rows), rows.iter().map(BTreeMap::len).sum());
        Ok(Learned { text, own: names(own), generic: names(generic), missed: names(missed), cells })
    }

    /// The lines' table: headings over the places of the cells, tried in several ways and compared with the
    /// generic one.
    fn table(&self, rows: &[BTreeMap<String, String>]) -> String {
        let Some(columns) = self.columns(rows) else { return String::new() };
        let until = self.until(rows);
        let mut best = (self.run("", true).map_or(0, |record| cells_right(&record, rows)), String::new());
        for starts in ["total", "unit_price", "quantity", "tax_rate"] {
            if !columns.contains(&format!("name = \"{starts}\"")) {
                continue;
            }
            for joins in ["\"name\"", ""] {
                let row = format!("row = {{ starts = \"{starts}\", joins = [{joins}] }}\n");
                let text = format!(
                    "\n[[tables]]\nto = \"BG-25\"\nuntil = [{until}]\n{row}columns = [\n{columns}]\n"
                );
                let right = self.run(&text, true).map_or(0, |record| cells_right(&record, rows));
                if right > best.0 {
                    best = (right, text);
                }
            }
        }
        best.1
    }

    /// Columns with their headings, as TOML, from left to right.
    fn columns(&self, rows: &[BTreeMap<String, String>]) -> Option<String> {
        let first = rows.first()?;
        let total = first.get("total")?;
        let anchor = self.spots(Kind::Amount, total).into_iter().find(|spot| {
            let row = self.sheet.row(spot.page, spot.row);
            row.pieces.len() >= 3
        })?;
        let page = &self.sheet.pages[anchor.page];
        let mut columns: Vec<(f32, String)> = Vec::new();
        for (name, value) in first {
            let kind = kind_of(name);
            let near = self.spots(kind, value).into_iter().filter(|s| s.page == anchor.page);
            let near = near.filter(|s| s.row.abs_diff(anchor.row) <= 3);
            let Some(spot) = near.min_by_key(|s| s.row.abs_diff(anchor.row)) else { continue };
            let Some(rect) = page.rows[spot.row].rect(&spot.chars) else { continue };
            let rect = if name == "total" { page.rows[anchor.row].rect(&anchor.chars)? } else { rect };
            let Some(head) = heading_over(&page.rows[..anchor.row], rect) else { continue };
            let term = crate::terms::column("lines", name).map(|t| format!(", to = {}", quote(t.number)));
            let kind = quote(kind_name(kind));
            let term = term.unwrap_or_default();
            let line =
                format!("  {{ name = {}, head = {}, type = {kind}{term} }},\n", quote(name), quote(&head));
            columns.push((rect.x0, line));
        }
        columns.sort_by(|a, b| a.0.total_cmp(&b.0));
        (columns.len() >= 2).then(|| columns.into_iter().map(|(_, line)| line).collect())
    }

    /// Labels of the first lines under the last row.
    fn until(&self, rows: &[BTreeMap<String, String>]) -> String {
        let last = rows.last().and_then(|row| row.get("total"));
        let spots = last.map(|total| self.spots(Kind::Amount, total)).unwrap_or_default();
        let spot = spots.iter().find(|s| self.sheet.row(s.page, s.row).pieces.len() >= 3);
        let mut labels: Vec<String> = Vec::new();
        if let Some(spot) = spot {
            let below = self.sheet.rows().filter(|(page, at, _)| (*page, *at) > (spot.page, spot.row));
            for (_, _, row) in below.take(25) {
                let text = row.pieces.first().map(|p| clean(&row.slice(&p.chars))).unwrap_or_default();
                let is_money =
                    values::read_all(Kind::Amount, &row.text, &self.locale).iter().any(|r| r.is_sure);
                let is_short = text.chars().count() <= 30;
                if is_label(&text) && is_short && (is_money || row.pieces.len() == 1 && row.pieces[0].is_bold)
                {
                    labels.push(text);
                }
            }
        }
        labels.extend(TOTALS.iter().map(|name| format!("@{name}")));
        labels.sort();
        labels.dedup();
        labels.iter().map(|l| quote(l)).collect::<Vec<_>>().join(", ")
    }
}

/// How many cells come out as expected.
fn cells_right(record: &Record, rows: &[BTreeMap<String, String>]) -> usize {
    let Some(table) = record.tables.get("lines") else { return 0 };
    let pairs = rows.iter().zip(&table.rows);
    let right = |(expected, row): (&BTreeMap<String, String>, &crate::record::Row)| {
        let cells = expected
            .iter()
            .filter(|(name, value)| row.get(*name).is_some_and(|cell| is_expected(&cell.value.typed, value)));
        cells.count()
    };
    let count = pairs.map(right).sum::<usize>();
    // A row too many is as wrong as one too few.
    count.saturating_sub(3 * table.rows.len().abs_diff(rows.len()))
}

/// Where a text stands in a row, without regard to case and spaces.
fn text_spots<'a>(row: &'a TextRow, expected: &str) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
    let chars: Vec<(usize, char)> =
        row.folded.chars().enumerate().filter(|(_, c)| !c.is_whitespace()).collect();
    let wanted: Vec<char> = squeeze(expected).chars().collect();
    let mut found = Vec::new();
    for window in chars.windows(wanted.len().max(1)) {
        let (start, end) = (window[0].0, window[window.len() - 1].0 + 1);
        let is_same = window.iter().map(|(_, c)| c).eq(wanted.iter());
        let is_open = |at: Option<char>| at.is_none_or(|c| !c.is_alphanumeric());
        let before = start.checked_sub(1).and_then(|at| row.text.chars().nth(at));
        if is_same && is_open(before) && is_open(row.text.chars().nth(end)) {
            found.push(start..end);
        }
    }
    found.into_iter()
}

/// The label left of a place: the words before it in its piece, or the piece before.
fn label_before(row: &TextRow, spot: &Spot) -> Option<String> {
    let at = row.piece_at(spot.chars.start)?;
    let own = clean(&row.slice(&(row.pieces[at].chars.start..spot.chars.start)));
    if is_label(&own) {
        return Some(own);
    }
    let before = row.pieces[..at].iter().rev().map(|p| clean(&row.slice(&p.chars)));
    before.into_iter().find(|text| is_label(text))
}

/// A label's words without the marks around it.
fn clean(text: &str) -> String {
    let tidy = tidy(text);
    tidy.trim_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '=' | '|' | '•' | '-' | '€' | '$'))
        .to_owned()
}

/// Labels are words: at least two letters, not too long, not mostly figures.
fn is_label(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let figures = text.chars().filter(char::is_ascii_digit).count();
    letters >= 2 && figures * 2 <= letters && text.chars().count() <= 60
}

/// Figures in a label change from one document to the next ("PPN 11%").
fn term_of(label: &str) -> String {
    if !label.chars().any(|c| c.is_ascii_digit()) {
        return label.to_owned();
    }
    let mut pattern = String::new();
    let mut is_digit = false;
    for c in label.chars() {
        if c.is_ascii_digit() {
            if !is_digit {
                pattern.push_str("\\d+");
            }
        } else {
            pattern.push_str(&escape(&c.to_string()));
        }
        is_digit = c.is_ascii_digit();
    }
    format!("/({pattern})/")
}

fn touches(piece: &Piece, rect: Rect) -> bool {
    piece.bbox.x0 < rect.x1 + 2.0 && rect.x0 < piece.bbox.x1 + 2.0
}

/// The nearest words over a cell that are no figures.
fn heading_over(rows: &[TextRow], rect: Rect) -> Option<String> {
    let near = rows.iter().rev().take(8).flat_map(|row| row.pieces.iter().map(move |p| (row, p)));
    let over = near.filter(|(_, p)| touches(p, rect));
    over.map(|(row, p)| clean(&row.slice(&p.chars))).find(|text| is_label(text))
}
