//! The mappings in use: loaded together, swapped as a whole, asked for by name or found by what is on the page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ode_pdf::Document;

use crate::engine::{self, Extraction};
use crate::error::{ExtractError, MappingError};
use crate::facts::plain;
use crate::finding::FindingCode;
use crate::mapping::file::Status;
use crate::mapping::{self, Mapping};
use crate::matching::{MatchReport, Matcher};
use crate::record::{Finding, Record, Severity, Value};
use crate::sheet::Sheet;
use crate::write::not_an_invoice;
use crate::{credit, rules, shipped, tools};

/// Which mapping to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// The live one that fits best.
    Auto,
    /// This one: `name_vN`, or `name` for its newest live version.
    Named(&'a str),
}

/// What takes part, beyond the mappings that come with the program.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folder of `*.toml` files; one with the id of a shipped mapping replaces it.
    pub folder: Option<PathBuf>,
    /// Ids or names that may be used; all of them where there is no list.
    pub allow: Option<BTreeSet<String>>,
    /// Whether the tests inside the folder's files are run; a mapping that fails one is refused.
    pub tested: bool,
    /// Whether canary and draft versions run beside the live one and their differences are counted.
    pub shadow: bool,
    /// Whether the folder's files were loaded before and found right: then patterns are compiled only when they are used.
    pub trusted: bool,
}

/// Largest mapping file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most files in a folder.
const FILES_MAX: usize = 5_000;

/// Mappings that were loaded together.
#[derive(Debug)]
pub struct Loaded {
    mappings: BTreeMap<String, Arc<Mapping>>,
    matcher: Matcher,
}

/// The mappings in use.
#[derive(Debug)]
pub struct Registry {
    options: Options,
    current: RwLock<Arc<Loaded>>,
    counts: Mutex<BTreeMap<String, ShadowCount>>,
}

/// What a canary or draft mapping would have said differently.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShadowReport {
    /// The mapping that ran in the shadow.
    pub mapping: String,
    /// Fields and tables with another value, and both values: what was given, and what it would have been.
    pub differences: BTreeMap<String, (Option<String>, Option<String>)>,
}

/// Shadow runs of one mapping since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShadowCount {
    pub runs: u64,
    /// How many came out the same.
    pub same: u64,
    /// Differences by field.
    pub different: BTreeMap<String, u64>,
}

/// A mapping file's name and text.
type Source = (String, String);
/// Name, text, and how a mapping that is extended is found.
type Parse = fn(&str, &str, mapping::Base<'_>) -> Result<Mapping, MappingError>;

impl Registry {
    /// Loads what the options say.
    pub fn new(options: Options) -> Result<Self, Vec<MappingError>> {
        let loaded = load(&options)?;
        Ok(Self { options, current: RwLock::new(Arc::new(loaded)), counts: Mutex::default() })
    }

    /// Loads what is sound, and gives the mistakes in the rest. For looking at a folder, not for converting with it.
    pub fn sound(options: Options) -> Result<(Self, Vec<MappingError>), Vec<MappingError>> {
        let (loaded, mistakes) = load_sound(&options)?;
        Ok((Self { options, current: RwLock::new(Arc::new(loaded)), counts: Mutex::default() }, mistakes))
    }

    /// Only the mappings that come with the program.
    pub fn shipped() -> Self {
        Self::new(Options::default()).expect("the shipped mappings are loaded by a test")
    }

    /// Loads everything anew and swaps it in at once. A file with a mistake changes nothing: what was live stays,
    /// and the mistakes are told.
    pub fn reload(&self) -> Result<usize, Vec<MappingError>> {
        let loaded = load(&self.options)?;
        let count = loaded.mappings.len();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
        Ok(count)
    }

    /// The mappings as they are now; a reload does not change what was handed out.
    pub fn current(&self) -> Arc<Loaded> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How shadow runs came out so far.
    pub fn shadow_counts(&self) -> BTreeMap<String, ShadowCount> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count_shadow(&self, report: &ShadowReport) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(report.mapping.clone()).or_default();
        count.runs += 1;
        count.same += u64::from(report.differences.is_empty());
        for field in report.differences.keys() {
            *count.different.entry(field.clone()).or_default() += 1;
        }
    }
}

impl Loaded {
    /// Everything loaded, by id.
    pub fn list(&self) -> impl Iterator<Item = &Arc<Mapping>> {
        self.mappings.values()
    }

    /// A mapping by id, or the newest live version by name.
    pub fn get(&self, name: &str) -> Result<&Arc<Mapping>, ExtractError> {
        let by_name = || {
            let versions = self.mappings.values().filter(|m| m.name == name && m.status == Status::Live);
            versions.max_by_key(|m| m.version)
        };
        let found = self.mappings.get(name).or_else(by_name);
        match found {
            Some(m) if m.status == Status::Retired => {
                Err(ExtractError::RetiredMapping { name: name.to_owned() })
            }
            Some(m) => Ok(m),
            None => {
                let near = mapping::nearest(name, self.mappings.keys().map(String::as_str));
                Err(ExtractError::UnknownMapping { name: name.to_owned(), near: near.map(str::to_owned) })
            }
        }
    }

    fn live(&self) -> impl Iterator<Item = &Arc<Mapping>> {
        self.mappings.values().filter(|m| m.status == Status::Live)
    }

    /// How every live mapping fits, best first.
    pub fn report(&self, sheet: &Sheet<'_>) -> Vec<MatchReport> {
        self.matcher.report(sheet, self.live())
    }
}

/// Reads a document: with the mapping asked for, or with the one that fits best.
pub fn extract(
    document: &Document,
    registry: &Registry,
    choice: Choice<'_>,
) -> Result<Extraction, ExtractError> {
    let sheet = Sheet::new(document);
    if sheet.is_empty() {
        return Err(ExtractError::NoText);
    }
    let loaded = registry.current();
    let mut extraction = match choice {
        Choice::Named(name) => run_named(&loaded, name, &sheet)?,
        Choice::Auto => run_best(&loaded, &sheet)?,
    };
    let mapping = loaded.get(&extraction.mapping)?;
    credit::recognise(&mut extraction.record, &sheet);
    let findings = rules::check(&extraction.record);
    extraction.record.findings.extend(several_invoices(&extraction));
    extraction.record.findings.extend(findings);
    tell_once(&mut extraction.record.findings);
    if extraction.record.kind == "invoice" {
        extraction.record.findings.extend(not_an_invoice(&extraction.record));
    }
    if registry.options.shadow {
        for other in shadows_of(&loaded, mapping) {
            let report = compare(&extraction, &engine::run(other, &sheet));
            registry.count_shadow(&report);
            extraction.shadows.push(report);
        }
    }
    Ok(extraction)
}

/// What is left of the confidence in values that a mapping read which does not fit.
const DOUBTFUL_FACTOR: f32 = 0.6;

/// The mapping asked for. Where its own words are not on the page, it reads all the same, but says so, and its values
/// count for less.
fn run_named(loaded: &Loaded, name: &str, sheet: &Sheet<'_>) -> Result<Extraction, ExtractError> {
    let mapping = loaded.get(name)?;
    let mut extraction = engine::run(mapping, sheet);
    let report = loaded.matcher.report(sheet, std::iter::once(mapping)).into_iter().find(|r| !r.fits);
    if let Some(report) = report {
        let record = &mut extraction.record;
        let cells = record.tables.values_mut().flat_map(|t| &mut t.rows).flat_map(BTreeMap::values_mut);
        for field in record.fields.values_mut().chain(cells) {
            field.value.confidence *= DOUBTFUL_FACTOR;
        }
        let message = format!(
            "This does not look like a document for the mapping that was asked for ({report}). Check the values, or let \
             the mapping be chosen (auto)."
        );
        let code = FindingCode::MappingDoubtful;
        record.findings.insert(0, Finding { severity: Severity::Review, code, field: None, message });
    }
    Ok(extraction)
}

/// Says the same about one field once: what a mapping requires, the rules of invoices need too.
fn tell_once(findings: &mut Vec<Finding>) {
    let mut told: BTreeSet<String> = BTreeSet::new();
    findings.retain(|finding| match &finding.field {
        Some(field) if finding.code == FindingCode::FieldMissing => told.insert(field.clone()),
        _ => true,
    });
}

/// Two invoices in one file: pages with numbers of their own, each with totals of its own.
fn several_invoices(extraction: &Extraction) -> Option<Finding> {
    let found = |name: &str| -> Vec<&Value> {
        let first = extraction.record.fields.get(name).map(|field| &field.value);
        let others = extraction.others.get(name).into_iter().flatten();
        first.into_iter().chain(others).filter(|value| value.place.is_some()).collect()
    };
    let page = |value: &Value| value.place.map_or(0, |place| place.page);
    let totals: BTreeSet<u32> = found("gross_total").into_iter().map(page).collect();
    let mut numbers: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for value in found("invoice_number").into_iter().filter(|value| value.confidence >= SURE_NUMBER) {
        numbers.entry(page(value)).or_default().insert(plain(&value.typed));
    }
    let apart: BTreeSet<&String> = numbers
        .iter()
        .filter(|(page, texts)| texts.len() == 1 && totals.contains(page))
        .flat_map(|(_, texts)| texts)
        .collect();
    if apart.len() < 2 {
        return None;
    }
    let list: Vec<&str> = apart.into_iter().map(String::as_str).collect();
    let message = format!(
        "The document seems to hold several invoices ({}); only one was read. Split it and convert each by itself.",
        list.join(", ")
    );
    let (code, field) = (FindingCode::SeveralInvoices, Some("invoice_number".to_owned()));
    Some(Finding { severity: Severity::Review, code, field, message })
}

/// How sure a number must be to count as one of an invoice.
const SURE_NUMBER: f32 = 0.7;

/// Mappings that are tried in turn on one document.
const TRIES_MAX: usize = 3;

/// The mapping that fits best. One that does not find what it requires gives way to the next that fits, if that finds
/// more of what it requires.
fn run_best(loaded: &Loaded, sheet: &Sheet<'_>) -> Result<Extraction, ExtractError> {
    let reports = loaded.report(sheet);
    let mut best: Option<(usize, Extraction)> = None;
    for report in reports.iter().filter(|r| r.fits).take(TRIES_MAX) {
        let extraction = engine::run(loaded.get(&report.mapping)?, sheet);
        let missing =
            extraction.record.findings.iter().filter(|f| f.code == FindingCode::FieldMissing).count();
        if best.as_ref().is_none_or(|(least, _)| missing < *least) {
            best = Some((missing, extraction));
        }
        if missing == 0 {
            break;
        }
    }
    let Some((_, extraction)) = best else { return Err(ExtractError::NoMapping { missing: reports }) };
    // A word that invoices use is on many pages. Somebody who names the mapping gets what there is.
    let is_fallback = loaded.get(&extraction.mapping)?.terms.is_fallback;
    if is_fallback && !seems_invoice(&extraction.record) {
        return Err(ExtractError::NotAnInvoice);
    }
    Ok(Extraction { candidates: reports, ..extraction })
}

/// Whether a page that nobody knows is an invoice: two of number, date and total, and without a number something else that
/// only invoices state. Minutes have dates, and budgets have totals.
fn seems_invoice(record: &Record) -> bool {
    const SIGNS: &[&str] =
        &["invoice_number", "net_total", "tax_total", "payable", "due_date", "seller_vat_id", "iban"];
    let has_sign = SIGNS.iter().any(|name| record.fields.contains_key(*name)) || !record.tables.is_empty();
    has_sign && not_an_invoice(record).is_none()
}

/// Newer tries of the same mapping.
fn shadows_of<'a>(loaded: &'a Loaded, mapping: &'a Mapping) -> impl Iterator<Item = &'a Arc<Mapping>> {
    loaded.list().filter(move |m| {
        m.name == mapping.name && m.id != mapping.id && matches!(m.status, Status::Canary | Status::Draft)
    })
}

/// Where two results differ: by field, and by table as the printed rows.
pub(crate) fn compare(given: &Extraction, other: &Extraction) -> ShadowReport {
    let (a, b) = (texts(&given.record), texts(&other.record));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differences = names
        .into_iter()
        .filter(|name| a.get(*name) != b.get(*name))
        .map(|name| (name.clone(), (a.get(name).cloned(), b.get(name).cloned())))
        .collect();
    ShadowReport { mapping: other.mapping.clone(), differences }
}

/// Every value of a record by its path, such as `lines.0.total`.
pub(crate) fn texts(record: &Record) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        record.fields.iter().map(|(name, f)| (name.clone(), plain(&f.value.typed))).collect();
    for (table, rows) in record.tables.iter().map(|(name, t)| (name, &t.rows)) {
        for (at, row) in rows.iter().enumerate() {
            all.extend(row.iter().map(|(c, cell)| (format!("{table}.{at}.{c}"), plain(&cell.value.typed))));
        }
    }
    all
}

fn load(options: &Options) -> Result<Loaded, Vec<MappingError>> {
    let (loaded, mistakes) = load_sound(options)?;
    if mistakes.is_empty() { Ok(loaded) } else { Err(mistakes) }
}

/// Loads what is sound, with the mistakes in the rest.
fn load_sound(options: &Options) -> Result<(Loaded, Vec<MappingError>), Vec<MappingError>> {
    let shipped = shipped::MAPPINGS.iter().map(|file| (file.name.to_owned(), file.head.to_owned()));
    let mut mappings = BTreeMap::new();
    let mut mistakes = parse_all(shipped.collect(), mapping::parse_shipped, &mut mappings);
    if let Some(folder) = &options.folder {
        let (sources, unread) = read_folder(folder)?;
        mistakes.extend(unread);
        let parse = if options.trusted { mapping::parse_trusted } else { mapping::parse };
        mistakes.extend(parse_all(sources, parse, &mut mappings));
    }
    if let Some(folder) = options.folder.as_ref().filter(|_| options.tested) {
        refuse_failing(&mappings, folder)?;
    }
    let is_allowed = |m: &Mapping| {
        options.allow.as_ref().is_none_or(|allow| allow.contains(&m.id) || allow.contains(&m.name))
    };
    let mappings: BTreeMap<String, Arc<Mapping>> =
        mappings.into_iter().filter(|(_, m)| is_allowed(m)).collect();
    let matcher = Matcher::new(mappings.values());
    Ok((Loaded { mappings, matcher }, mistakes))
}

/// Runs the tests inside the files; the shipped mappings have none that need a folder.
fn refuse_failing(mappings: &BTreeMap<String, Arc<Mapping>>, folder: &Path) -> Result<(), Vec<MappingError>> {
    let failed = |(id, mapping): (&String, &Arc<Mapping>)| {
        let outcome = tools::test(mapping, folder).into_iter().find(|outcome| !outcome.passed())?;
        let reason = outcome.refusal.unwrap_or_else(|| {
            let fields: Vec<&str> = outcome.differences.keys().map(String::as_str).collect();
            format!("{} came out differently", fields.join(", "))
        });
        let message = format!("its test on {} fails: {reason}", outcome.file);
        Some(MappingError { source: id.clone(), at: None, message })
    };
    let errors: Vec<MappingError> = mappings.iter().filter_map(failed).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Parses files in the order in which they extend each other, and gives the mistakes of those that are left out. A
/// file replaces a shipped mapping of the same id; two files with one id are a mistake.
fn parse_all(
    sources: Vec<Source>,
    parse: Parse,
    done: &mut BTreeMap<String, Arc<Mapping>>,
) -> Vec<MappingError> {
    let mut waiting = sources;
    loop {
        let count = waiting.len();
        let mut errors = Vec::new();
        let mut later = Vec::new();
        for (name, text) in waiting {
            let base = |id: &str| done.get(id).cloned();
            let parsed = parse(&name, &text, &base).and_then(|mapping| alone(mapping, &name, done));
            match parsed {
                Ok(mapping) => {
                    done.insert(mapping.id.clone(), Arc::new(mapping));
                }
                Err(error) => {
                    errors.push(error);
                    later.push((name, text));
                }
            }
        }
        if later.len() == count {
            return errors;
        }
        waiting = later;
    }
}

/// The mapping, if no other file has its id.
fn alone(
    mapping: Mapping,
    name: &str,
    done: &BTreeMap<String, Arc<Mapping>>,
) -> Result<Mapping, MappingError> {
    match done.get(&mapping.id).and_then(|other| other.source.as_ref()) {
        None => Ok(mapping),
        Some(other) => Err(MappingError {
            source: name.to_owned(),
            at: None,
            message: format!(
                "it is {}, and so is {other}; give one of them another name or version",
                mapping.id
            ),
        }),
    }
}

/// The files of a folder, and what is wrong with those that cannot be read.
fn read_folder(folder: &Path) -> Result<(Vec<Source>, Vec<MappingError>), Vec<MappingError>> {
    let fail = |path: &Path, e: &std::io::Error| MappingError {
        source: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        at: None,
        message: format!("cannot be read: {e}"),
    };
    let entries = std::fs::read_dir(folder).map_err(|e| vec![fail(folder, &e)])?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .take(FILES_MAX)
        .collect();
    paths.sort();
    let mut sources = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        match read_file(&path) {
            Ok(text) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                sources.push((name, text));
            }
            Err(e) => errors.push(fail(&path, &e)),
        }
    }
    Ok((sources, errors))
}

fn read_file(path: &Path) -> std::io::Result<String> {
    if std::fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(std::io::Error::other("it is larger than 1 MB"));
    }
    std::fs::read_to_string(path)
}
