//! Mappings: the named rules that turn a document into values. A file is parsed strictly, then compiled once;
//! what is compiled cannot fail any more.

pub mod check;
pub mod file;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rust_decimal::Decimal;

use crate::error::MappingError;
use crate::label::{Care, Group, LabelId, Labels, LabelsBuilder, as_pattern};
use crate::pattern::{Pattern, escape};
use crate::shipped;
use crate::values::Kind;
use check::Equation;
pub(crate) use file::Side;
use file::{
    ColumnFile, FieldFile, LineFile, LocaleFile, MappingFile, OnFail, Pick, Status, TableFile, TestFile,
    Texts, Where, WithinFile, ZoneFile,
};

/// The only version of the file format so far.
const SCHEMA: u32 = 1;
/// More fields, columns or alternatives than this are a mistake.
const RULES_MAX: usize = 500;

/// A mapping that is ready to be used.
#[derive(Debug)]
pub struct Mapping {
    /// `name_vN`.
    pub id: String,
    /// Name without version.
    pub name: String,
    pub version: u32,
    /// Whether it takes part.
    pub status: Status,
    pub kind: String,
    /// One line for people.
    pub about: String,
    /// The file it was read from; none for one that comes with the program.
    pub source: Option<String>,
    /// Which documents it is for.
    pub terms: MatchTerms,
    /// The whole file as JSON, for one that comes with the program.
    text: &'static str,
    /// The mapping that it extends.
    parent: Option<Arc<Mapping>>,
    /// The file with what it extends. Like the rules it is made when first used: a program that reads one document should
    /// not read and compile sixteen mappings.
    file: OnceLock<MappingFile>,
    rules: OnceLock<Rules>,
}

/// What a mapping does, ready to be done.
#[derive(Debug)]
pub(crate) struct Rules {
    pub labels: Labels,
    pub fields: BTreeMap<String, FieldRule>,
    pub tables: Vec<TableRule>,
    pub checks: Vec<Check>,
    /// Words of each hint of the locale.
    pub hints: Vec<Vec<LabelId>>,
}

impl Mapping {
    /// How numbers and dates are written.
    pub fn locale(&self) -> &LocaleFile {
        &self.file().locale
    }

    /// Its documents with known values.
    pub fn tests(&self) -> &[TestFile] {
        &self.file().tests
    }

    /// The file it was made from, with what it extends.
    pub(crate) fn file(&self) -> &MappingFile {
        self.file.get_or_init(|| {
            let own = serde_json::from_str(self.text).expect("shipped mappings are read by a test");
            inherit(own, self.parent.as_deref())
        })
    }

    /// The compiled rules.
    pub(crate) fn rules(&self) -> &Rules {
        let compiled = || compile_rules(self.file(), Care::Trust);
        self.rules.get_or_init(|| {
            compiled().expect("a file is compiled once when it is loaded, and shipped ones by a test")
        })
    }
}

/// Which documents a mapping is for.
#[derive(Clone, Debug, Default)]
pub struct MatchTerms {
    /// Each must be on the page.
    pub all: Vec<MatchTerm>,
    /// The more, the better.
    pub any: Vec<MatchTerm>,
    /// None may be there.
    pub none: Vec<MatchTerm>,
    /// How many of `any` are needed.
    pub min_any: usize,
    /// Taken only where no other fits.
    pub is_fallback: bool,
}

#[derive(Clone, Debug)]
pub struct MatchTerm {
    /// As written in the file.
    pub text: String,
    pub weight: f32,
    /// Folded, for plain terms.
    pub(crate) plain: Option<String>,
    /// For patterns.
    pub(crate) pattern: Option<Pattern>,
}

/// How one header value is found.
#[derive(Debug)]
pub(crate) struct FieldRule {
    pub anchors: Vec<LabelId>,
    pub wheres: Vec<Where>,
    pub find: Option<Pattern>,
    pub take: Option<Pattern>,
    pub not: Vec<Pattern>,
    pub unlike: Vec<String>,
    pub sure: f32,
    pub pick: Pick,
    pub kind: Kind,
    pub zone: Option<ZoneFile>,
    pub party: Option<Party>,
    pub line: Option<LineFile>,
    pub lines: usize,
    pub wraps: bool,
    pub within: Option<Within>,
    pub page: Option<i32>,
    pub reach: f32,
    pub value: Option<String>,
    pub codes: BTreeMap<String, String>,
    pub to: Option<String>,
    pub is_required: bool,
    /// Whether nothing is read.
    pub is_blank: bool,
    pub or: Vec<FieldRule>,
}

/// A party to the document, and the headings that both parties stand under.
#[derive(Debug)]
pub(crate) struct Party {
    pub side: Side,
    pub seller: Vec<LabelId>,
    pub buyer: Vec<LabelId>,
}

/// The part of a document between two headings.
#[derive(Debug)]
pub(crate) struct Within {
    pub from: Vec<LabelId>,
    pub to: Vec<LabelId>,
    pub is_column: bool,
}

/// How a table is found and cut.
#[derive(Debug)]
pub(crate) struct TableRule {
    pub name: String,
    pub to: Option<String>,
    pub columns: Vec<ColumnRule>,
    pub pattern: Option<Pattern>,
    pub until: Vec<LabelId>,
    /// Labels of totals: they end the table only where no other words follow.
    pub until_totals: Vec<LabelId>,
    pub skip: Vec<Pattern>,
    pub starts: usize,
    pub joins: Vec<usize>,
    pub above: usize,
    pub min_columns: usize,
    pub continues: bool,
    pub within: Option<Within>,
}

#[derive(Debug)]
pub(crate) struct ColumnRule {
    pub name: String,
    pub heads: Vec<LabelId>,
    pub kind: Kind,
    pub take: Option<Pattern>,
    pub span: usize,
    pub line: Option<i32>,
    pub find: Option<Pattern>,
    pub codes: BTreeMap<String, String>,
    pub to: Option<String>,
    pub value: Option<String>,
    pub is_counted: bool,
    pub is_required: bool,
}

/// Arithmetic that must hold.
#[derive(Debug)]
pub(crate) struct Check {
    pub equation: Equation,
    pub tolerance: Option<Decimal>,
    pub on_fail: OnFail,
}

/// How a mapping that another extends is found, by id.
pub type Base<'a> = &'a dyn Fn(&str) -> Option<Arc<Mapping>>;

/// Reads a file's text and compiles it, so that every mistake in it is found.
pub fn parse(source: &str, text: &str, base: Base<'_>) -> Result<Mapping, MappingError> {
    parse_with(source, text, base, Care::Check)
}

/// The same for a text whose patterns are known to be sound: they are compiled when they are used.
pub(crate) fn parse_lazily(source: &str, text: &str, base: Base<'_>) -> Result<Mapping, MappingError> {
    parse_with(source, text, base, Care::Trust)
}

fn parse_with(source: &str, text: &str, base: Base<'_>, care: Care) -> Result<Mapping, MappingError> {
    let mapping = parse_trusted(source, text, base)?;
    let checked = if care == Care::Check { check_match(&mapping.terms) } else { Ok(()) };
    let rules = checked.and_then(|()| compile_rules(mapping.file(), care));
    let rules = rules.map_err(|message| located(source, text, message))?;
    Ok(Mapping { rules: OnceLock::from(rules), ..mapping })
}

/// Reads a file's text that is known to be sound.
pub(crate) fn parse_trusted(source: &str, text: &str, base: Base<'_>) -> Result<Mapping, MappingError> {
    let file: MappingFile = toml::from_str(text).map_err(|e| syntax_error(source, text, &e))?;
    let mapping = described(&file, base).map_err(|message| located(source, text, message))?;
    let file = OnceLock::from(inherit(file, mapping.parent.as_deref()));
    Ok(Mapping { source: Some(source.to_owned()), file, ..mapping })
}

/// One that comes with the program: only what tells which documents it is for is read now.
pub(crate) fn parse_shipped(source: &str, head: &str, base: Base<'_>) -> Result<Mapping, MappingError> {
    let fail = |message| MappingError { source: source.to_owned(), at: None, message };
    let head: MappingFile = serde_json::from_str(head).map_err(|e| fail(e.to_string()))?;
    let mapping = described(&head, base).map_err(fail)?;
    Ok(Mapping { text: shipped::text_of(source), ..mapping })
}

/// A mapping without its rules: what its file says about itself.
fn described(file: &MappingFile, base: Base<'_>) -> Result<Mapping, String> {
    if file.schema != SCHEMA {
        return Err(format!("schema is {}, but only {SCHEMA} is known here", file.schema));
    }
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if file.name.is_empty() || !file.name.chars().all(is_plain) {
        return Err(format!("the name {:?} may only hold a-z, 0-9 and _", file.name));
    }
    let found = |id: &String| base(id).ok_or_else(|| format!("it extends {id}, which is not loaded"));
    Ok(Mapping {
        id: format!("{}_v{}", file.name, file.version),
        name: file.name.clone(),
        version: file.version,
        status: file.status,
        kind: file.kind.clone(),
        about: file.about.clone(),
        source: None,
        terms: read_match(file),
        text: "",
        parent: file.extends.as_ref().map(found).transpose()?,
        file: OnceLock::new(),
        rules: OnceLock::new(),
    })
}

/// Fields, tables, checks and locale of the parent, where the child has none of its own.
fn inherit(mut child: MappingFile, parent: Option<&Mapping>) -> MappingFile {
    let Some(parent) = parent.map(Mapping::file) else { return child };
    for (name, field) in &parent.fields {
        match child.fields.get_mut(name) {
            None => {
                child.fields.insert(name.clone(), field.clone());
            }
            // Its labels still tell where other values end.
            Some(own) if own.blank => *own = FieldFile { blank: true, ..field.clone() },
            Some(own) if own.inherit => {
                own.or.push(FieldFile { or: Vec::new(), ..field.clone() });
                own.or.extend(field.or.iter().cloned());
                own.unlike.0.extend(field.unlike.0.iter().cloned());
                own.sure = own.sure.max(field.sure);
            }
            Some(_) => {}
        }
    }
    for table in &parent.tables {
        if !child.tables.iter().any(|t| t.name == table.name) {
            child.tables.push(table.clone());
        }
    }
    child.checks.extend(parent.checks.iter().cloned());
    child.ignore.0.extend(parent.ignore.0.iter().cloned());
    child.locale.numbers = child.locale.numbers.or(parent.locale.numbers);
    child.locale.dates = child.locale.dates.or(parent.locale.dates);
    child.locale.hints.extend(parent.locale.hints.iter().cloned());
    let currency = &parent.locale.currency;
    child.locale.currency.default = child.locale.currency.default.or_else(|| currency.default.clone());
    for (mark, code) in &currency.marks {
        child.locale.currency.marks.entry(mark.clone()).or_insert_with(|| code.clone());
    }
    child
}

/// A TOML error with line, column, and the nearest key that exists.
fn syntax_error(source: &str, text: &str, error: &toml::de::Error) -> MappingError {
    let at = error.span().map(|span| line_and_column(text, span.start));
    let message = error.message().to_owned();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wrong = quoted.next();
    let near = wrong.filter(|_| message.starts_with("unknown ")).and_then(|wrong| nearest(wrong, quoted));
    let message = match near {
        Some(near) => {
            format!("{} (did you mean `{near}`?)", message.split(", expected").next().unwrap_or_default())
        }
        None => message,
    };
    MappingError { source: source.to_owned(), at, message }
}

fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let head = &text[..byte.min(text.len())];
    let line = head.matches('\n').count() + 1;
    let column = head.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// A message that quotes a text of the file gets the place where it stands.
fn located(source: &str, text: &str, message: String) -> MappingError {
    let quoted = message.split('«').nth(1).and_then(|rest| rest.split('»').next());
    let at = quoted.and_then(|quoted| text.find(quoted)).map(|byte| line_and_column(text, byte));
    MappingError { source: source.to_owned(), at, message }
}

/// The name least far from the wrong one, if it is near enough to have been meant.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = wrong.chars().count() / 2;
    names.map(|name| (edits(wrong, name), name)).filter(|(far, _)| *far <= limit).min().map(|(_, name)| name)
}

/// How many letters must be changed, added or taken away.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

fn compile_rules(file: &MappingFile, care: Care) -> Result<Rules, String> {
    let known = file.fields.iter().map(|(name, field)| (name.as_str(), field.anchor.0.as_slice()));
    let mut labels = LabelsBuilder::new(care, known.collect());
    for label in &file.ignore.0 {
        labels.add(label, Group::Anchor).map_err(|e| format!("ignore «{label}»: {e}"))?;
    }
    if file.fields.len() > RULES_MAX {
        return Err(format!("{RULES_MAX} fields are the most there can be"));
    }
    let mut fields = BTreeMap::new();
    for (name, field) in &file.fields {
        let rule = compile_field(field, &mut labels).map_err(|e| format!("field {name}: {e}"))?;
        fields.insert(name.clone(), rule);
    }
    let mut tables = Vec::new();
    for (at, table) in file.tables.iter().enumerate() {
        let rule = compile_table(table, at, &mut labels).map_err(|e| format!("table {}: {e}", table.name))?;
        tables.push(rule);
    }
    let checks = file.checks.iter().map(|c| compile_check(c, &fields, &tables)).collect::<Result<_, _>>()?;
    let hints = file.locale.hints.iter().map(|hint| add_all(&mut labels, &hint.any, Group::Hint));
    let hints = hints.collect::<Result<_, _>>()?;
    Ok(Rules { labels: labels.build(), fields, tables, checks, hints })
}

fn read_match(file: &MappingFile) -> MatchTerms {
    let term = |text: &str, weight: f32| {
        let pattern = as_pattern(text).map(Pattern::trusted);
        let plain = pattern.is_none().then(|| crate::label::normal(text));
        MatchTerm { text: text.to_owned(), weight, plain, pattern }
    };
    let weighted = |list: &[file::WeightedText]| list.iter().map(|t| term(&t.text, t.weight)).collect();
    let terms = &file.r#match;
    MatchTerms {
        all: weighted(&terms.all),
        any: weighted(&terms.any),
        none: terms.none.0.iter().map(|t| term(t, 1.0)).collect(),
        min_any: terms.min_any.min(terms.any.len()),
        is_fallback: terms.fallback,
    }
}

fn check_match(terms: &MatchTerms) -> Result<(), String> {
    let all = terms.all.iter().chain(&terms.any).chain(&terms.none);
    all.filter_map(|term| Some((term, term.pattern.as_ref()?)))
        .try_for_each(|(term, pattern)| pattern.check().map_err(|e| format!("match «{}»: {e}", term.text)))
}

fn add_all(labels: &mut LabelsBuilder<'_>, texts: &Texts, group: Group) -> Result<Vec<LabelId>, String> {
    let mut ids = Vec::new();
    for text in &texts.0 {
        match text.strip_prefix('@') {
            Some(field) => ids.extend(labels.add_known(field, group).map_err(|e| format!("«{text}»: {e}"))?),
            None => ids.push(labels.add(text, group).map_err(|e| format!("«{text}»: {e}"))?),
        }
    }
    Ok(ids)
}

/// The headings that parties stand under, out of the labels of the two fields.
fn compile_party(side: Option<Side>, labels: &mut LabelsBuilder<'_>) -> Result<Option<Party>, String> {
    let Some(side) = side else { return Ok(None) };
    let seller = labels.add_known("seller_name", Group::Anchor)?;
    let buyer = labels.add_known("buyer_name", Group::Anchor)?;
    Ok(Some(Party { side, seller, buyer }))
}

fn pattern(text: &Option<String>, labels: &LabelsBuilder<'_>) -> Result<Option<Pattern>, String> {
    text.as_ref().map(|text| labels.pattern(text).map_err(|e| format!("«{text}»: {e}"))).transpose()
}

/// Texts that are patterns between slashes, and looked for as they are otherwise.
fn patterns(texts: &Texts, labels: &LabelsBuilder<'_>) -> Result<Vec<Pattern>, String> {
    let one = |text: &String| match as_pattern(text) {
        Some(inside) => labels.pattern(inside).map_err(|e| format!("«{text}»: {e}")),
        None => labels.pattern(&escape(text)),
    };
    texts.0.iter().map(one).collect()
}

fn compile_within(
    within: &Option<WithinFile>,
    labels: &mut LabelsBuilder<'_>,
) -> Result<Option<Within>, String> {
    let Some(within) = within else { return Ok(None) };
    Ok(Some(Within {
        from: add_all(labels, &within.from, Group::Bound)?,
        to: add_all(labels, &within.to, Group::Bound)?,
        is_column: within.column,
    }))
}

/// Numbers that cannot be meant: they would make a rule that never finds anything.
fn check_ranges(field: &FieldFile) -> Result<(), String> {
    if !(0.0..=1.0).contains(&field.sure) {
        return Err(format!("sure is «{}», but it lies between 0 and 1", field.sure));
    }
    if field.page == Some(0) || field.zone.is_some_and(|zone| zone.page == 0) {
        return Err("«page = 0»: pages are counted from 1, or from -1 at the end".into());
    }
    if field.reach.is_some_and(|reach| reach <= 0.0) {
        return Err("«reach» is how many lines down a value may stand, so it is more than 0".into());
    }
    if let Some(ZoneFile { r#box: [x0, y0, x1, y1], .. }) = field.zone {
        let is_inside = [x0, y0, x1, y1].iter().all(|side| (0.0..=100.0).contains(side));
        if !is_inside || x0 >= x1 || y0 >= y1 {
            let message = "a «zone» is left, top, right and bottom in percent, the left and top ones smaller";
            return Err(format!("{message}; this one is [{x0}, {y0}, {x1}, {y1}]"));
        }
    }
    Ok(())
}

/// How far down a value stands from its label unless the file says otherwise, in lines.
const REACH_LINES: f32 = 3.0;

fn compile_field(field: &FieldFile, labels: &mut LabelsBuilder<'_>) -> Result<FieldRule, String> {
    let has_source =
        !field.anchor.0.is_empty() || field.find.is_some() || field.zone.is_some() || field.party.is_some();
    if !has_source && !field.blank && field.value.is_none() && field.within.is_none() && field.or.is_empty() {
        return Err("it needs an anchor, a find, a zone, a party, a within or a value".into());
    }
    check_ranges(field)?;
    let wheres = if field.r#where.0.is_empty() { vec![Where::Right] } else { field.r#where.0.clone() };
    let or = field.or.iter().map(|f| compile_field(f, labels)).collect::<Result<Vec<_>, _>>()?;
    let or = or.into_iter().map(|mut rule| {
        if rule.kind == Kind::Text {
            rule.kind = field.kind;
        }
        rule
    });
    Ok(FieldRule {
        // The labels of a party are headings, which it looks at itself.
        anchors: if field.party.is_some() {
            Vec::new()
        } else {
            add_all(labels, &field.anchor, Group::Anchor)?
        },
        wheres,
        find: pattern(&field.find, labels)?,
        take: pattern(&field.take, labels)?,
        not: patterns(&field.not, labels)?,
        unlike: field.unlike.0.clone(),
        sure: field.sure,
        pick: field.pick,
        kind: field.kind,
        zone: field.zone,
        party: compile_party(field.party, labels)?,
        line: field.line,
        lines: field.lines.max(1),
        wraps: field.wraps,
        within: compile_within(&field.within, labels)?,
        page: field.page,
        reach: field.reach.unwrap_or(REACH_LINES),
        value: field.value.clone(),
        codes: field.codes.clone(),
        to: field.to.clone(),
        is_required: field.required,
        is_blank: field.blank,
        or: or.collect(),
    })
}

fn compile_table(table: &TableFile, at: usize, labels: &mut LabelsBuilder<'_>) -> Result<TableRule, String> {
    if table.columns.is_empty() || table.columns.len() > RULES_MAX {
        return Err("it needs columns".into());
    }
    let columns = table
        .columns
        .iter()
        .map(|column| compile_column(column, at, labels).map_err(|e| format!("column {}: {e}", column.name)))
        .collect::<Result<Vec<_>, _>>()?;
    let index = |name: &String| {
        columns.iter().position(|c| c.name == *name).ok_or_else(|| format!("it has no column «{name}»"))
    };
    let last_amount = columns.iter().rposition(|c| c.kind == Kind::Amount && !c.heads.is_empty());
    let starts = match &table.row.starts {
        Some(name) => index(name)?,
        None => last_amount.unwrap_or(0),
    };
    let headed = columns.iter().filter(|c| !c.heads.is_empty()).count();
    Ok(TableRule {
        name: table.name.clone(),
        to: table.to.clone(),
        pattern: pattern(&table.pattern, labels)?,
        until: add_all(labels, &table.until.without_fields(), Group::Bound)?,
        until_totals: add_all(labels, &table.until.only_fields(), Group::Bound)?,
        skip: patterns(&table.skip, labels)?,
        starts,
        joins: table.row.joins.0.iter().map(index).collect::<Result<_, _>>()?,
        above: table.row.above,
        min_columns: table.min_columns.unwrap_or((headed * 6).div_ceil(10)).clamp(1, headed.max(1)),
        continues: table.continues,
        within: compile_within(&table.within, labels)?,
        columns,
    })
}

fn compile_column(
    column: &ColumnFile,
    table: usize,
    labels: &mut LabelsBuilder<'_>,
) -> Result<ColumnRule, String> {
    Ok(ColumnRule {
        name: column.name.clone(),
        heads: add_all(labels, &column.head, Group::Head(table))?,
        kind: column.kind,
        take: pattern(&column.take, labels)?,
        span: column.span,
        line: column.line,
        find: pattern(&column.find, labels)?,
        codes: column.codes.clone(),
        to: column.to.clone(),
        value: column.value.clone(),
        is_counted: column.count,
        is_required: column.required,
    })
}

fn compile_check(
    check: &file::CheckFile,
    fields: &BTreeMap<String, FieldRule>,
    tables: &[TableRule],
) -> Result<Check, String> {
    let equation = check::parse(&check.rule).map_err(|e| format!("check «{}»: {e}", check.rule))?;
    for name in equation.fields() {
        if !fields.contains_key(name) {
            return Err(format!("check «{}»: there is no field {name}", check.rule));
        }
    }
    for (table, column) in equation.sums() {
        let is_known = tables.iter().any(|t| t.name == *table && t.columns.iter().any(|c| c.name == *column));
        if !is_known {
            return Err(format!("check «{}»: there is no column {table}.{column}", check.rule));
        }
    }
    let tolerance = check.tolerance.as_ref().map(|t| t.parse()).transpose();
    let tolerance = tolerance.map_err(|_| format!("check «{}»: the tolerance is no number", check.rule))?;
    Ok(Check { equation, tolerance, on_fail: check.on_fail })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Mapping, String> {
        parse("test.toml", text, &|_| None).map_err(|e| e.to_string())
    }

    const HEAD: &str = "schema = 1\nname = \"note\"\nversion = 2\n";

    #[test]
    fn an_unknown_key_is_refused_with_its_place_and_the_key_that_was_meant() {
        let text = format!("{HEAD}[fields.total]\nanchr = \"Total\"\n");
        assert_eq!(load(&text).unwrap_err(), "test.toml:5:1: unknown field `anchr` (did you mean `anchor`?)");
    }

    #[test]
    fn an_unknown_direction_is_refused() {
        let text = format!("{HEAD}[fields.total]\nanchor = \"Total\"\nwhere = \"rigth\"\n");
        let message = load(&text).unwrap_err();
        assert!(message.contains("did you mean `right`"), "{message}");
    }

    #[test]
    fn a_bad_pattern_is_refused_with_its_line() {
        let text = format!("{HEAD}[fields.total]\nfind = '(['\n");
        let message = load(&text).unwrap_err();
        assert!(message.starts_with("test.toml:5:"), "{message}");
    }

    #[test]
    fn a_check_of_an_unknown_field_is_refused() {
        let text = format!("{HEAD}[fields.total]\nanchor = \"Total\"\n[[checks]]\nrule = \"net == total\"\n");
        assert!(load(&text).unwrap_err().contains("there is no field net"));
    }

    #[test]
    fn a_child_takes_what_it_lacks_from_its_parent() {
        let parent = load(&format!(
            "{HEAD}[locale]\nnumbers = \"1.234,56\"\n[fields.a]\nvalue = \"1\"\n[fields.b]\nvalue = \"1\"\n"
        ));
        let parent = Arc::new(parent.unwrap());
        let text =
            "schema = 1\nname = \"child\"\nversion = 1\nextends = \"note_v2\"\n[fields.b]\nvalue = \"2\"\n";
        let child = parse("child.toml", text, &|_| Some(parent.clone())).unwrap();
        assert_eq!(child.rules().fields["a"].value.as_deref(), Some("1"));
        assert_eq!(child.rules().fields["b"].value.as_deref(), Some("2"));
        assert_eq!(child.locale().numbers, Some(file::NumbersFile::Comma));
    }
}
