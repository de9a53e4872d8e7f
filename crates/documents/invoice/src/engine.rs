//! One document through one mapping: candidates for every field, rows for every table, and arithmetic that
//! chooses among the candidates before anything is believed.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::facts::Ask;
use crate::field::{Candidate, Context, candidates};
use crate::finding::FindingCode;
use crate::label::Hits;
use crate::mapping::check::{Equation, Term};
use crate::mapping::file::{DatesFile, HintFile, LocaleFile, NumbersFile, OnFail, Pick};
use crate::mapping::{Check, Mapping, Rules};
use crate::rates;
use crate::record::{Field, Finding, Record, Row, Severity, Table, Typed, Value};
use crate::sheet::Sheet;
use crate::terms;
use crate::values::currency::{Currencies, is_whole_money};
use crate::values::date::{self, DateOrder, DateStyle};
use crate::values::number::{self, NumberStyle};
use crate::values::{Kind, Locale};

/// What a mapping made of a document.
#[derive(Clone, Debug, Default)]
pub struct Extraction {
    pub record: Record,
    /// The mapping that was used.
    pub mapping: String,
    /// What else each field could have been, best first.
    pub others: BTreeMap<String, Vec<Value>>,
    /// How every mapping did, best first; empty where one was asked for by name.
    pub candidates: Vec<crate::matching::MatchReport>,
    /// What canary and draft mappings would have said differently.
    pub shadows: Vec<crate::registry::ShadowReport>,
}

/// Alternatives per field that arithmetic looks at; with three fields that is a thousand sums at most.
const CHOICES_MAX: usize = 10;
/// Alternatives that are kept for a person to see.
const OTHERS_MAX: usize = 5;
/// Fields in one check among whose candidates is chosen.
const CHOSEN_FIELDS_MAX: usize = 4;

/// Names of parties: a heading or a label is none.
const NAMES: &[&str] = &["seller_name", "buyer_name"];

/// Runs a mapping over a document.
pub(crate) fn run(mapping: &Mapping, sheet: &Sheet<'_>) -> Extraction {
    let rules = mapping.rules();
    let hits: Hits = rules.labels.find(sheet);
    let file = mapping.locale();
    let hint = hint_of(rules, &file.hints, &hits);
    let locale = locale_of(file, hint, sheet);
    let context = Context { sheet, hits: &hits, locale: &locale, body_size: body_size(sheet) };
    let mut record = Record { kind: mapping.kind.clone(), source: mapping.id.clone(), ..Record::default() };
    for rule in &rules.tables {
        let rows = crate::table::rows(rule, context);
        if !rows.is_empty() {
            record
                .tables
                .insert(rule.name.clone(), Table { term: rule.to.clone(), rows: confirm_rows(rows) });
        }
    }
    let mut found: BTreeMap<&str, Vec<Candidate>> = BTreeMap::new();
    for (name, rule) in &rules.fields {
        let mut list = if rule.is_blank { Vec::new() } else { candidates(rule, context) };
        if NAMES.contains(&name.as_str()) {
            list.retain(|c| !rules.labels.is_label(&c.printed));
        }
        found.insert(name, ranked(list, rule.pick));
    }
    part_from_others(rules, &mut found);
    add_taxes(rules, context, &mut record, &mut found);
    let confirmed = choose(&rules.checks, &mut found, &record.tables);
    let mut others = BTreeMap::new();
    for (name, rule) in &rules.fields {
        let is_confirmed = confirmed.contains(&name.as_str());
        let mut list = found.remove(name.as_str()).unwrap_or_default();
        if list.first().is_some_and(|c| c.score < rule.sure && !is_confirmed) {
            list.clear();
        }
        let mut values = list.iter().map(|c| to_value(c, &list, is_confirmed));
        match values.next() {
            Some(value) => {
                record.fields.insert(name.clone(), Field { term: rule.to.clone(), value });
            }
            None if rule.is_required => record.findings.push(missing(name)),
            None => {}
        }
        let rest: Vec<Value> = values.take(OTHERS_MAX).collect();
        if !rest.is_empty() {
            others.insert(name.clone(), rest);
        }
    }
    assume_currency(rules, &locale, &mut record);
    record.findings.extend(failed_checks(&rules.checks, &record));
    let ambiguous: Vec<Finding> = ambiguous_dates(&record).collect();
    if !ambiguous.is_empty() && order_of(file, hint, sheet).is_none() {
        record.findings.extend(ambiguous);
    }
    let cells = record.tables.values_mut().flat_map(|table| &mut table.rows).flat_map(BTreeMap::values_mut);
    let fields = record.fields.values_mut().chain(cells).map(|field| &mut field.value);
    place_on_pages(sheet, fields.chain(others.values_mut().flatten()));
    Extraction { record, mapping: mapping.id.clone(), others, ..Extraction::default() }
}

/// Rows may be seen in a mirror or turned; values tell where they stand on the page.
fn place_on_pages<'a>(sheet: &Sheet<'_>, values: impl Iterator<Item = &'a mut Value>) {
    for place in values.filter_map(|value| value.place.as_mut()) {
        if let Some(page) = sheet.pages.iter().find(|page| page.page.number == place.page) {
            place.bbox = page.shown(place.bbox);
        }
    }
}

/// The size in which most pieces of text are set.
fn body_size(sheet: &Sheet<'_>) -> f32 {
    let mut sizes: Vec<f32> =
        sheet.rows().flat_map(|(_, _, row)| row.pieces.iter().map(|p| p.font_size)).collect();
    let middle = sizes.len() / 2;
    if sizes.is_empty() { 0.0 } else { *sizes.select_nth_unstable_by(middle, f32::total_cmp).1 }
}

/// Something that was not found, in the words of the standard where it has any.
pub(crate) fn missing(name: &str) -> Finding {
    let label = terms::header(name).map_or(name, |term| term.label);
    Finding {
        severity: Severity::Review,
        code: FindingCode::FieldMissing,
        field: Some(name.to_owned()),
        message: format!("No {label} was found."),
    }
}

/// How the document writes numbers and dates: as the mapping says, or as its own figures give away.
pub(crate) fn locale_of(file: &LocaleFile, hint: Option<&HintFile>, sheet: &Sheet<'_>) -> Locale {
    let texts = || sheet.rows().map(|(_, _, row)| row.text.as_str());
    let order = order_of(file, hint, sheet).unwrap_or_default();
    let mut marks = file.currency.marks.clone();
    marks.extend(hint.iter().flat_map(|hint| hint.marks.clone()));
    let currencies = Currencies { default: file.currency.default.clone(), marks };
    let numbers = match file.numbers {
        Some(NumbersFile::Comma) => NumberStyle::Comma,
        Some(NumbersFile::Point) => NumberStyle::Point,
        Some(NumbersFile::Auto) | None => match number::style_of(texts()) {
            NumberStyle::Unknown if texts().any(|text| is_whole_money(text, &currencies)) => {
                number::style_of_whole_money(texts())
            }
            style => style,
        },
    };
    Locale { numbers, dates: DateStyle { order }, currencies }
}

/// Which comes first in a date, the day or the month, where anything tells it.
fn order_of(file: &LocaleFile, hint: Option<&HintFile>, sheet: &Sheet<'_>) -> Option<DateOrder> {
    let ordered = |dates: Option<DatesFile>| match dates {
        Some(DatesFile::DayFirst) => Some(DateOrder::DayFirst),
        Some(DatesFile::MonthFirst) => Some(DateOrder::MonthFirst),
        Some(DatesFile::Auto) | None => None,
    };
    ordered(file.dates)
        .or_else(|| date::order_of(sheet.rows().map(|(_, _, row)| row.text.as_str())))
        .or_else(|| hint.and_then(|hint| ordered(hint.dates)))
}

/// Currencies of countries where both orders are in use.
const BOTH_ORDERS: &[&str] = &["USD", "CAD", "PHP"];

/// Dates whose day may be their month, on a page that does not tell what country it is from.
fn ambiguous_dates(record: &Record) -> impl Iterator<Item = Finding> {
    let has = |name: &str| record.fields.contains_key(name);
    let currency = record.fields.text("currency");
    let is_placed = has("iban") || currency.is_some_and(|code| !BOTH_ORDERS.contains(&code.as_str()));
    let dates = record.fields.iter().filter(move |_| record.kind == "invoice" && !is_placed);
    dates.filter_map(|(name, field)| {
        let Typed::Date(day) = field.value.typed else { return None };
        let printed = &field.value.printed;
        let label = terms::header(name).map_or(name.as_str(), |term| term.label);
        let message = format!(
            "The {label} is printed as {printed}, and nothing tells whether the day or the month comes first; it was read as \
             {day}."
        );
        let (severity, code) = (Severity::Review, FindingCode::DateAmbiguous);
        date::may_be_turned(printed).then(|| Finding { severity, code, field: Some(name.clone()), message })
    })
}

/// The hint with most of its words on the page; of equals the first.
fn hint_of<'a>(rules: &Rules, hints: &'a [HintFile], hits: &Hits) -> Option<&'a HintFile> {
    let counted = rules.hints.iter().map(|labels| hits.count(labels)).zip(hints);
    let found = counted.filter(|(count, _)| *count > 0);
    found
        .fold(None, |best: Option<(usize, &HintFile)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, hint)| hint)
}

/// Best first, each meaning once.
fn ranked(mut list: Vec<Candidate>, pick: Pick) -> Vec<Candidate> {
    let order = |c: &Candidate| c.place.map_or((0, 0.0, 0.0), |p| (p.page, p.bbox.y0, p.bbox.x0));
    let number = |c: &Candidate| match &c.typed {
        Typed::Number(n) => Some(*n),
        Typed::Text(_) | Typed::Code(_) | Typed::Date(_) => None,
    };
    let by_order = |a: &Candidate, b: &Candidate| {
        let (a, b) = (order(a), order(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    };
    match pick {
        Pick::Best | Pick::Only | Pick::Most => {
            list.sort_by(|a, b| b.score.total_cmp(&a.score).then(by_order(a, b)))
        }
        Pick::First => list.sort_by(by_order),
        Pick::Last => list.sort_by(|a, b| by_order(b, a)),
        Pick::Max => list.sort_by_key(|c| std::cmp::Reverse(number(c))),
        Pick::Min => list.sort_by_key(number),
    }
    if !matches!(pick, Pick::Best | Pick::Only | Pick::Most) {
        // The mapping has said which one it wants: the others must not win by their label.
        let top = list.iter().map(|c| c.score).fold(0.0, f32::max);
        for (at, candidate) in list.iter_mut().enumerate() {
            candidate.score = top * (1.0 - 0.05 * at.min(15) as f32);
        }
    }
    let mut once: Vec<(usize, Candidate)> = Vec::new();
    for candidate in list {
        match once.iter_mut().find(|(_, c)| c.typed == candidate.typed) {
            Some((count, _)) => *count += 1,
            None => once.push((1, candidate)),
        }
    }
    if pick == Pick::Most {
        once.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    }
    if pick == Pick::Only && once.len() > 1 {
        return Vec::new();
    }
    for (count, candidate) in &mut once {
        candidate.score = (candidate.score + AGREEMENT * (*count - 1).min(3) as f32).min(1.0);
    }
    if pick == Pick::Best {
        once.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
    }
    once.into_iter().map(|(_, candidate)| candidate).collect()
}

/// What each further way that leads to the same value adds.
const AGREEMENT: f32 = 0.02;

/// Takes away what another field is known to be.
fn part_from_others(rules: &Rules, found: &mut BTreeMap<&str, Vec<Candidate>>) {
    for (name, rule) in &rules.fields {
        for other in &rule.unlike {
            let taken = found.get(other.as_str()).and_then(|list| list.first()).map(|c| c.typed.clone());
            if let (Some(taken), Some(list)) = (taken, found.get_mut(name.as_str())) {
                list.retain(|c| !is_same(&c.typed, &taken));
            }
        }
    }
}

/// How sure the sum of several taxes is before arithmetic confirms it.
const SUM_SCORE: f32 = 0.9;

/// Taxes with their rates, where the mapping reads no table of them. Of several none is the whole tax: that is their sum.
fn add_taxes(
    rules: &Rules,
    context: Context<'_>,
    record: &mut Record,
    found: &mut BTreeMap<&str, Vec<Candidate>>,
) {
    let has_table = rules.tables.iter().any(|table| table.name == "vat");
    let Some(rule) = rules.fields.get("tax_total").filter(|_| record.kind == "invoice" && !has_table) else {
        return;
    };
    let rows = rates::rows(rule, context, record.tables.get("lines"));
    if rows.is_empty() {
        return;
    }
    if let (true, Some(list)) = (rows.len() > 1, found.get_mut("tax_total")) {
        let whole = Typed::Number(rates::whole(&rows));
        list.retain(|c| c.typed == whole || !rates::holds(&rows, c.place));
        if !list.iter().any(|c| c.typed == whole) {
            let (printed, rule) = (String::new(), "the sum of the taxes by rate".into());
            let (score, is_sure) = (SUM_SCORE, false);
            list.push(Candidate { typed: whole, printed, place: None, rule, score, is_sure });
        }
    }
    let term = terms::table("vat").map(|table| table.number.to_owned());
    record.tables.insert("vat".into(), Table { term, rows });
}

fn is_same(a: &Typed, b: &Typed) -> bool {
    let fold = |t: &Typed| match t {
        Typed::Text(text) | Typed::Code(text) => Some(crate::sheet::fold(text).replace([' ', '.', '-'], "")),
        Typed::Number(_) | Typed::Date(_) => None,
    };
    a == b || fold(a).is_some_and(|x| Some(x) == fold(b))
}

/// Puts first, field by field, the candidates for which the checks hold. Gives the fields so confirmed.
fn choose<'a>(
    checks: &'a [Check],
    found: &mut BTreeMap<&'a str, Vec<Candidate>>,
    tables: &BTreeMap<String, Table>,
) -> Vec<&'a str> {
    let mut confirmed: Vec<&'a str> = Vec::new();
    for check in checks {
        let names: Vec<&'a str> = check.equation.fields().map(String::as_str).collect();
        if names.len() > CHOSEN_FIELDS_MAX || names.iter().any(|n| found.get(n).is_none_or(Vec::is_empty)) {
            continue;
        }
        let counts: Vec<usize> = names
            .iter()
            .map(|n| if confirmed.contains(n) { 1 } else { found[n].len().min(CHOICES_MAX) })
            .collect();
        let Some(choice) = best_choice(check, &names, &counts, found, tables) else { continue };
        for (name, at) in names.iter().zip(choice) {
            if let Some(list) = found.get_mut(name) {
                let chosen = list.remove(at);
                list.insert(0, chosen);
            }
            if !confirmed.contains(name) {
                confirmed.push(name);
            }
        }
    }
    confirmed
}

/// Among all combinations for which the check holds, the one with the best reasons.
fn best_choice(
    check: &Check,
    names: &[&str],
    counts: &[usize],
    found: &BTreeMap<&str, Vec<Candidate>>,
    tables: &BTreeMap<String, Table>,
) -> Option<Vec<usize>> {
    let total: usize = counts.iter().product();
    let mut holding: Vec<(f32, f32, Vec<usize>)> = Vec::new();
    let mut largest = 0.0f32;
    for code in 0..total {
        let mut rest = code;
        let choice: Vec<usize> = counts
            .iter()
            .map(|count| {
                let at = rest % count;
                rest /= count;
                at
            })
            .collect();
        let value = |term: &Term| match term {
            Term::Field(name) => {
                let at = names.iter().position(|n| n == name)?;
                as_number(&found[names[at]][choice[at]].typed)
            }
            other => table_value(other, tables),
        };
        if !holds(&check.equation, check.tolerance, &value) || is_one_place(names, &choice, counts, found) {
            continue;
        }
        let score: f32 =
            names.iter().zip(&choice).map(|(n, at)| found[n][*at].score - 0.01 * *at as f32).sum();
        let size = value(&Term::Field(names[0].to_owned())).map_or(0.0, |n| n.abs().to_f32().unwrap_or(0.0));
        largest = largest.max(size);
        holding.push((score, size, choice));
    }
    // Parts of a total, such as the rows of one tax rate, add up too: the whole is the largest of them.
    let whole =
        |score: f32, size: f32| score + if largest > 0.0 { WHOLE_BONUS * size / largest } else { 0.0 };
    holding
        .into_iter()
        .map(|(score, size, choice)| (whole(score, size), choice))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        .map(|(_, choice)| choice)
}

/// A number confirms nothing by being equal to itself: where two fields read one place, somebody else must vouch for
/// one of them.
fn is_one_place(
    names: &[&str],
    choice: &[usize],
    counts: &[usize],
    found: &BTreeMap<&str, Vec<Candidate>>,
) -> bool {
    let mut places = names.iter().zip(choice).map(|(name, at)| found[name][*at].place);
    let first = places.next().flatten();
    let is_vouched = counts.contains(&1) && counts.iter().any(|count| *count > 1);
    names.len() > 1 && first.is_some() && places.all(|place| place == first) && !is_vouched
}

/// How much the largest of several sums that hold is preferred.
const WHOLE_BONUS: f32 = 1.5;

fn as_number(typed: &Typed) -> Option<Decimal> {
    match typed {
        Typed::Number(n) => Some(*n),
        Typed::Text(_) | Typed::Code(_) | Typed::Date(_) => None,
    }
}

fn table_value(term: &Term, tables: &BTreeMap<String, Table>) -> Option<Decimal> {
    match term {
        Term::Number(n) => Some(*n),
        Term::Field(_) => None,
        Term::Sum { table, column } => {
            let rows = &tables.get(table)?.rows;
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| as_number(&cell.value.typed))
                .sum::<Option<Decimal>>()
                .filter(|_| !rows.is_empty())
        }
    }
}

/// Two hundredths: one for each of two rounded parts.
const TOLERANCE: Decimal = Decimal::from_parts(2, 0, 0, false, 2);

fn holds(equation: &Equation, tolerance: Option<Decimal>, value: &dyn Fn(&Term) -> Option<Decimal>) -> bool {
    equation.error(value).is_some_and(|error| error <= tolerance.unwrap_or(TOLERANCE))
}

fn failed_checks(checks: &[Check], record: &Record) -> Vec<Finding> {
    let value = |term: &Term| match term {
        Term::Field(name) => as_number(&record.fields.get(name)?.value.typed),
        other => table_value(other, &record.tables),
    };
    let is_failed = |check: &&Check| {
        let error = check.equation.error(&value);
        error.is_some_and(|error| error > check.tolerance.unwrap_or(TOLERANCE))
    };
    checks
        .iter()
        .filter(|check| check.on_fail != OnFail::Ignore)
        .filter(is_failed)
        .map(|check| Finding {
            severity: if check.on_fail == OnFail::Error { Severity::Error } else { Severity::Review },
            code: FindingCode::CheckFailed,
            field: check.equation.fields().next().cloned(),
            message: format!("The printed figures do not satisfy {}.", check.equation.text),
        })
        .collect()
}

/// Facts to a figure: the label and direction, whether there was a choice, check digits and arithmetic.
fn to_value(candidate: &Candidate, list: &[Candidate], is_confirmed: bool) -> Value {
    let mut confidence = 0.45 + 0.3 * candidate.score;
    confidence += if list.len() == 1 { 0.1 } else { 0.0 };
    confidence += if candidate.is_sure { 0.05 } else { 0.0 };
    confidence += if is_confirmed { 0.1 } else { 0.0 };
    Value {
        typed: candidate.typed.clone(),
        printed: candidate.printed.clone(),
        place: candidate.place,
        rule: candidate.rule.clone(),
        confidence: confidence.min(0.99),
    }
}

/// The mapping's currency, where the page names none.
fn assume_currency(rules: &Rules, locale: &Locale, record: &mut Record) {
    let has_rule = rules.fields.get("currency").filter(|rule| rule.kind == Kind::Currency);
    if let (Some(rule), Some(code), None) =
        (has_rule, &locale.currencies.default, record.fields.get("currency"))
    {
        let value = Value {
            typed: Typed::Code(code.clone()),
            printed: String::new(),
            place: None,
            rule: "assumed by the mapping".into(),
            confidence: 0.6,
        };
        record.fields.insert("currency".into(), Field { term: rule.to.clone(), value });
    }
}

/// Rows whose quantity times price gives the total are surer than others.
fn confirm_rows(mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        let number = |name: &str| row.get(name).and_then(|cell| as_number(&cell.value.typed));
        let (Some(quantity), Some(price), Some(total)) =
            (number("quantity"), number("unit_price"), number("total"))
        else {
            continue;
        };
        let is_right = quantity.checked_mul(price).is_some_and(|t| (t - total).abs() <= TOLERANCE);
        if is_right {
            for name in ["quantity", "unit_price", "total"] {
                if let Some(cell) = row.get_mut(name) {
                    cell.value.confidence = 0.98;
                }
            }
        }
    }
    rows
}
