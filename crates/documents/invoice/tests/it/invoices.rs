//! The bars for reading invoices from their pages, over the corpus: with the layout's own mapping, with the generic
//! one alone, and with one learned from a single document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ode_invoice::learn::{Lesson, learn};
use ode_invoice::{Choice, Extraction, Options, Place, Registry, extract, value_text};
use ode_pdf::{Document, Limits};
use rust_decimal::Decimal;
use serde_json::{Map, Value as Json};

/// Fields without which an invoice cannot be booked.
const KEY_FIELDS: &[&str] =
    &["invoice_number", "issue_date", "currency", "seller_name", "net_total", "tax_total", "gross_total"];
/// Header fields that are compared.
const FIELDS: &[&str] = &[
    "invoice_number",
    "issue_date",
    "due_date",
    "delivery_date",
    "currency",
    "seller_name",
    "seller_vat_id",
    "seller_tax_number",
    "buyer_name",
    "buyer_vat_id",
    "order_reference",
    "iban",
    "bic",
    "line_total",
    "net_total",
    "tax_total",
    "gross_total",
    "payable",
];
/// Cells that are compared.
const CELLS: &[&str] = &["id", "item_id", "name", "quantity", "unit_price", "tax_rate", "total"];

struct Sample {
    path: PathBuf,
    layout: String,
    document: Document,
    truth: Json,
}

/// All samples; none where the corpus is not at hand.
fn samples() -> Vec<Sample> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus/invoices");
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        eprintln!("SKIPPED: there is no corpus of invoices at {}", corpus.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "pdf"));
    paths.sort();
    paths.into_iter().map(sample).collect()
}

fn sample(path: PathBuf) -> Sample {
    let truth = std::fs::read(path.with_extension("truth.json")).expect("its truth can be read");
    let truth: Json = serde_json::from_slice(&truth).expect("truth is JSON");
    let bytes = std::fs::read(&path).expect("the document can be read");
    let document = ode_pdf::read(bytes, &Limits::default()).expect("it is a PDF");
    let layout = truth["layout"].as_str().expect("it has a layout").to_owned();
    Sample { path, layout, document, truth }
}

#[derive(Debug, Default)]
struct Tally {
    documents: usize,
    whole: usize,
    wanted: usize,
    right: usize,
    wrong: usize,
    places: (usize, usize),
    cells: (usize, usize),
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

impl Tally {
    fn add(&mut self, sample: &Sample, extraction: Option<&Extraction>) {
        self.documents += 1;
        let mut is_whole = true;
        for name in FIELDS {
            let entry = &sample.truth["fields"][name];
            if entry["visible"] != Json::Bool(true) {
                continue;
            }
            let found = extraction.and_then(|e| e.record.fields.get(*name));
            self.wanted += 1;
            if found.is_some_and(|f| is_same(entry, &value_text(&f.value.typed))) {
                self.right += 1;
                self.places.1 += 1;
                self.places.0 += usize::from(stands_there(entry, found.and_then(|f| f.value.place)));
            } else {
                self.wrong += usize::from(found.is_some());
                is_whole &= !KEY_FIELDS.contains(name);
            }
        }
        self.whole += usize::from(is_whole);
        self.add_cells(sample, extraction);
    }

    /// Rows are paired by their totals, in order.
    fn add_cells(&mut self, sample: &Sample, extraction: Option<&Extraction>) {
        let wanted = sample.truth["lines"].as_array().cloned().unwrap_or_default();
        let found = extraction.and_then(|e| e.record.tables.get("lines")).map(|t| t.rows.clone());
        let found = found.unwrap_or_default();
        let mut at = 0;
        for want in &wanted {
            let total = &want["total"];
            let has_total = |row: &ode_invoice::Row| {
                row.get("total").is_some_and(|c| is_same(total, &value_text(&c.value.typed)))
            };
            let pair = (at..found.len()).find(|i| has_total(&found[*i]));
            let pair = pair.or((wanted.len() == found.len() && at < found.len()).then_some(at));
            at = pair.map_or(at, |pair| pair + 1);
            for name in CELLS.iter().filter(|name| want[**name]["visible"] == Json::Bool(true)) {
                let cell = pair.and_then(|pair| found[pair].get(*name));
                self.cells.1 += 1;
                self.cells.0 +=
                    usize::from(cell.is_some_and(|c| is_same(&want[*name], &value_text(&c.value.typed))));
            }
        }
    }
}

/// Numbers by value (without sign where the page prints none), everything else without case and space.
fn is_same(entry: &Json, found: &str) -> bool {
    let expected = entry["value"].as_str().unwrap_or_default();
    let number = |text: &str| text.parse::<Decimal>().ok();
    let squeeze = |text: &str| text.split_whitespace().collect::<String>().to_lowercase();
    match (number(expected), number(found)) {
        (Some(a), Some(b)) if entry["unsigned"] == Json::Bool(true) => a.abs() == b.abs(),
        (Some(a), Some(b)) => a == b,
        _ => squeeze(expected) == squeeze(found),
    }
}

fn stands_there(entry: &Json, place: Option<Place>) -> bool {
    let (Some(place), Some(at)) = (place, entry["at"].as_array()) else { return false };
    let b = place.bbox;
    let own = [b.x0, b.y0, b.x1, b.y1].map(f64::from);
    let inside = |p: [f64; 4], q: [f64; 4]| {
        let (x, y) = (f64::midpoint(p[0], p[2]), f64::midpoint(p[1], p[3]));
        q[0] - 1.0 <= x && x <= q[2] + 1.0 && q[1] - 1.0 <= y && y <= q[3] + 1.0
    };
    at.iter().any(|spot| {
        let other = [0, 1, 2, 3].map(|i| spot["bbox"][i].as_f64().unwrap_or_default());
        spot["page"] == place.page && (inside(own, other) || inside(other, own))
    })
}

#[test]
fn known_layouts_are_read_rightly() {
    let samples = samples();
    if samples.is_empty() {
        return;
    }
    let registry = Registry::shipped();
    let mut tally = Tally::default();
    for sample in &samples {
        let extraction = extract(&sample.document, &registry, Choice::Auto);
        let extraction = extraction.unwrap_or_else(|e| panic!("{}: {e}", sample.path.display()));
        tally.add(sample, Some(&extraction));
    }
    assert!(share(tally.right, tally.wanted) >= 0.98, "{tally:?}");
    assert!(share(tally.right, tally.right + tally.wrong) >= 0.99, "{tally:?}");
    assert!(share(tally.cells.0, tally.cells.1) >= 0.97, "{tally:?}");
    assert!(share(tally.whole, tally.documents) >= 0.94, "{tally:?}");
    assert!(share(tally.places.0, tally.places.1) >= 0.98, "{tally:?}");
}

#[test]
fn the_generic_mapping_alone_reads_most_of_every_layout() {
    let samples = samples();
    if samples.is_empty() {
        return;
    }
    let registry = Registry::shipped();
    let mut all = Tally::default();
    let mut layouts: BTreeMap<&str, Tally> = BTreeMap::new();
    for sample in &samples {
        let extraction = extract(&sample.document, &registry, Choice::Named("generic_invoice_v1")).ok();
        all.add(sample, extraction.as_ref());
        layouts.entry(&sample.layout).or_default().add(sample, extraction.as_ref());
    }
    assert!(share(all.right, all.wanted) >= 0.75, "{all:?}");
    assert!(share(all.right, all.right + all.wrong) >= 0.95, "{all:?}");
    for (layout, tally) in layouts {
        assert!(share(tally.right, tally.wanted) >= 0.60, "{layout}: {tally:?}");
    }
}

#[test]
fn a_mapping_learned_from_one_document_reads_the_rest_of_its_layout() {
    let mut layouts: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
    for sample in samples() {
        layouts.entry(sample.layout.clone()).or_default().push(sample);
    }
    let shipped = Registry::shipped();
    let mut tally = Tally::default();
    for samples in layouts.into_values().filter(|samples| samples.len() > 1) {
        let (first, rest) = samples.split_first().expect("more than one");
        let lesson = Lesson {
            document: &first.document,
            file: "a.pdf",
            expected: &expected(&first.truth),
            name: "learned",
        };
        let learned = learn(lesson, &shipped).unwrap_or_else(|e| panic!("{}: {e}", first.path.display()));
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("learned.toml"), &learned.text).expect("it is written");
        let options = Options { folder: Some(folder.path().to_owned()), ..Options::default() };
        let registry = Registry::new(options).unwrap_or_else(|e| panic!("{e:?}\n{}", learned.text));
        for sample in rest {
            let extraction = extract(&sample.document, &registry, Choice::Named("learned_v1")).ok();
            tally.add(sample, extraction.as_ref());
        }
    }
    if tally.documents > 0 {
        assert!(share(tally.right, tally.wanted) >= 0.85, "{tally:?}");
        assert!(share(tally.cells.0, tally.cells.1) >= 0.88, "{tally:?}");
    }
}

/// What a person would write down: the values that the page shows.
fn expected(truth: &Json) -> Json {
    let shown = |entry: &Json, names: &[&str]| -> Map<String, Json> {
        let visible = names.iter().filter(|name| entry[**name]["visible"] == Json::Bool(true));
        visible.map(|name| ((*name).to_owned(), entry[*name]["value"].clone())).collect()
    };
    let mut map = shown(&truth["fields"], FIELDS);
    let lines = truth["lines"].as_array().cloned().unwrap_or_default();
    let lines: Vec<Json> = lines.iter().map(|line| shown(line, CELLS).into()).collect();
    map.insert("lines".to_owned(), lines.into());
    map.into()
}
