//! Shipped mappings, the registry, and the examples of the documentation.

use crate::paper::{Paper, cells, value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ode_invoice::{Choice, ExtractError, FindingCode, Options, Registry, extract, tools};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

#[test]
fn every_file_in_the_folder_is_built_in_and_has_the_id_of_its_name() {
    let registry = Registry::shipped();
    let loaded = registry.current();
    let ids: BTreeSet<String> = loaded.list().map(|m| format!("{}.toml", m.id)).collect();
    let files = std::fs::read_dir(root().join("mappings")).expect("the folder of mappings");
    let files: BTreeSet<String> =
        files.flatten().map(|f| f.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(ids, files);
}

#[test]
fn shipped_mappings_answer_the_terms_that_their_names_stand_for() {
    let registry = Registry::shipped();
    for entry in std::fs::read_dir(root().join("mappings")).expect("the folder of mappings").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a mapping can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let remarks = tools::lint(&name, &text, &registry).expect("it is sound");
        let wrong: Vec<_> = remarks.iter().filter(|r| r.message.contains("stands for")).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}

/// The delivery note of the documentation.
fn note() -> Paper {
    let paper = Paper::new().bold(50.0, 40.0, "SURAT JALAN");
    let paper = paper.text(50.0, 60.0, "No. Surat Jalan : SJ/2026/0042").text(350.0, 60.0, "Kepada");
    let paper = paper.text(50.0, 72.0, "Tanggal Kirim : 5 Maret 2026").text(350.0, 72.0, "CV Toko Percobaan");
    let paper = paper.text(50.0, 100.0, "No").text(80.0, 100.0, "Nama Barang").text(300.0, 100.0, "Jml");
    let paper = paper.text(50.0, 115.0, "1").text(80.0, 115.0, "Kertas A4 80gr").text(300.0, 115.0, "12 rim");
    let paper = paper.text(50.0, 130.0, "2").text(80.0, 130.0, "Kabel UTP Cat6").text(300.0, 130.0, "3 pcs");
    let paper = paper.text(80.0, 141.0, "gulungan 305 m");
    paper.text(80.0, 160.0, "Total").text(300.0, 160.0, "15").text(50.0, 180.0, "Pengirim")
}

#[test]
fn the_example_of_the_documentation_reads_what_it_says() {
    let docs = std::fs::read_to_string(root().join("docs/mappings.md")).expect("the documentation");
    let example =
        docs.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("delivery_note_v1.toml"), example).expect("the example is written");
    let options = Options { folder: Some(folder.path().to_owned()), ..Options::default() };
    let registry = Registry::new(options).expect("the example is sound");
    let extraction = extract(&note().document(), &registry, Choice::Auto).expect("it fits");
    assert_eq!(extraction.mapping, "delivery_note_v1");
    assert_eq!(extraction.record.kind, "delivery-note");
    assert_eq!(value(&extraction, "note_number").as_deref(), Some("SJ/2026/0042"));
    assert_eq!(value(&extraction, "ship_date").as_deref(), Some("2026-03-05"));
    assert_eq!(value(&extraction, "receiver").as_deref(), Some("CV Toko Percobaan"));
    let goods = cells(&extraction, "goods", &["id", "name", "quantity"]);
    assert_eq!(goods, [["1", "Kertas A4 80gr", "12"], ["2", "Kabel UTP Cat6 gulungan 305 m", "3"]]);
    assert!(extraction.record.findings.is_empty(), "{:?}", extraction.record.findings);
}

#[test]
fn every_key_of_the_format_is_documented() {
    let docs = std::fs::read_to_string(root().join("docs/mappings.md")).expect("the documentation");
    let source = include_str!("../../src/mapping/file.rs");
    let keys = source.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'));
    for key in keys.map(|(key, _)| key.trim_start_matches("r#")).filter(|k| !k.contains([' ', '('])) {
        let key = if key == "kind" { "type" } else { key };
        let is_told = [format!("`{key}`"), format!("{key} ="), format!("[{key}]"), format!("[{key}.")];
        assert!(is_told.iter().any(|form| docs.contains(form)), "docs/mappings.md does not tell about {key}");
    }
}

#[test]
fn a_document_that_fits_nothing_is_told_why() {
    let registry = Registry::shipped();
    let document = Paper::new().text(50.0, 50.0, "Dear diary").document();
    let error = extract(&document, &registry, Choice::Auto).expect_err("nothing fits");
    let ExtractError::NoMapping { missing } = &error else { panic!("{error}") };
    assert!(missing.len() > 10);
    assert!(error.to_string().contains("No word that any of them looks for"), "{error}");
    assert!(error.to_string().contains("`ode mapping learn`"), "{error}");
    let near = Paper::new().text(50.0, 50.0, "Rupiah for the diary").document();
    let error = extract(&near, &registry, Choice::Auto).expect_err("one word is not enough");
    assert!(
        error.to_string().contains("The nearest is pt_simon_invoice_v1: 1 of its optional words"),
        "{error}"
    );
    let empty = extract(&Paper::new().document(), &registry, Choice::Auto);
    assert_eq!(empty.err(), Some(ExtractError::NoText));
}

#[test]
fn a_page_that_only_mentions_an_invoice_is_read_by_name_alone() {
    let registry = Registry::shipped();
    let minutes = Paper::new()
        .title(50.0, 50.0, "Minutes of the meeting", 16.0)
        .text(50.0, 70.0, "Date: 5 May 2026")
        .text(50.0, 90.0, "The board approved the budget for invoice processing.")
        .text(50.0, 110.0, "Total: 1,200.00 EUR")
        .document();
    let error = extract(&minutes, &registry, Choice::Auto).expect_err("it is none");
    assert_eq!(error, ExtractError::NotAnInvoice);
    let read = extract(&minutes, &registry, Choice::Named("generic_invoice_v1")).expect("it was asked for");
    assert!(read.record.findings.iter().any(|finding| finding.code == FindingCode::FieldMissing));
}

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    let registry = Registry::shipped();
    let document = note().document();
    let error =
        extract(&document, &registry, Choice::Named("pt_simon_invoice_v2")).expect_err("there is none");
    assert!(error.to_string().contains("Did you mean pt_simon_invoice_v1?"), "{error}");
    assert!(
        extract(&document, &registry, Choice::Named("pt_simon_invoice")).is_ok(),
        "a name means its newest"
    );
}

/// A mapping with one field, in a folder of its own.
struct Shelf {
    folder: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn put(&self, version: u32, status: &str, anchor: &str) {
        let text = format!(
            "schema = 1\nname = \"memo\"\nversion = {version}\nstatus = \"{status}\"\n[match]\nall = [\"Memo\"]\n\
             [fields.it]\nanchor = \"{anchor}\"\n"
        );
        std::fs::write(self.folder.path().join(format!("memo_v{version}.toml")), text)
            .expect("it is written");
    }

    fn options(&self) -> Options {
        Options { folder: Some(self.folder.path().to_owned()), ..Options::default() }
    }
}

fn memo() -> ode_pdf::Document {
    Paper::new()
        .text(50.0, 30.0, "Memo")
        .text(50.0, 50.0, "First: 1")
        .text(50.0, 70.0, "Second: 2")
        .document()
}

#[test]
fn a_reload_with_a_mistake_leaves_the_old_mappings_in_use() {
    let shelf = Shelf::new();
    shelf.put(1, "live", "First");
    let registry = Registry::new(shelf.options()).expect("sound");
    let read = || value(&extract(&memo(), &registry, Choice::Auto).expect("it fits"), "it");
    assert_eq!(read().as_deref(), Some("1"));
    std::fs::write(shelf.folder.path().join("memo_v1.toml"), "schema = 1\nnme = \"x\"\n")
        .expect("it is written");
    let errors = registry.reload().expect_err("a mistake");
    assert!(errors[0].to_string().starts_with("memo_v1.toml:2:1:"), "{}", errors[0]);
    assert_eq!(read().as_deref(), Some("1"), "what was loaded stays");
    shelf.put(1, "live", "Second");
    registry.reload().expect("sound again");
    assert_eq!(read().as_deref(), Some("2"));
}

#[test]
fn two_files_with_one_id_are_a_mistake_and_a_shipped_one_is_replaced() {
    let shelf = Shelf::new();
    shelf.put(1, "live", "First");
    let path = |name: &str| shelf.folder.path().join(name);
    std::fs::copy(path("memo_v1.toml"), path("other.toml")).expect("it is copied");
    let errors = Registry::new(shelf.options()).expect_err("two of them");
    assert_eq!(
        errors[0].to_string(),
        "other.toml: it is memo_v1, and so is memo_v1.toml; give one of them another name or version"
    );
    let generic = "schema = 1\nname = \"generic_invoice\"\nversion = 1\n";
    std::fs::write(path("other.toml"), generic).expect("it is written");
    let loaded = Registry::new(shelf.options()).expect("sound").current();
    let source = |id: &str| loaded.get(id).expect("there").source.clone();
    assert_eq!(source("generic_invoice_v1").as_deref(), Some("other.toml"));
    assert_eq!(source("pt_simon_invoice_v1"), None);
}

#[test]
fn what_is_sound_can_be_looked_at_beside_what_is_not() {
    let shelf = Shelf::new();
    shelf.put(1, "live", "First");
    std::fs::write(shelf.folder.path().join("broken.toml"), "schema = ").expect("it is written");
    let (registry, mistakes) = Registry::sound(shelf.options()).expect("the folder is there");
    assert_eq!(mistakes.iter().map(|mistake| mistake.source.as_str()).collect::<Vec<_>>(), ["broken.toml"]);
    assert!(registry.current().get("memo_v1").is_ok());
}

#[test]
fn a_canary_runs_in_the_shadow_and_its_differences_are_counted() {
    let shelf = Shelf::new();
    shelf.put(1, "live", "First");
    shelf.put(2, "canary", "Second");
    shelf.put(3, "retired", "Second");
    let registry = Registry::new(Options { shadow: true, ..shelf.options() }).expect("sound");
    let extraction = extract(&memo(), &registry, Choice::Auto).expect("it fits");
    assert_eq!(extraction.mapping, "memo_v1");
    assert_eq!(extraction.shadows[0].differences["it"], (Some("1".into()), Some("2".into())));
    let counts = registry.shadow_counts();
    assert_eq!(
        (counts["memo_v2"].runs, counts["memo_v2"].same, counts["memo_v2"].different["it"]),
        (1, 0, 1)
    );
    let retired = extract(&memo(), &registry, Choice::Named("memo_v3"));
    assert!(matches!(retired, Err(ExtractError::RetiredMapping { .. })));
}

#[test]
fn only_what_is_allowed_can_be_used() {
    let allow = Some(BTreeSet::from(["generic_invoice".to_owned()]));
    let registry = Registry::new(Options { allow, ..Options::default() }).expect("sound");
    assert_eq!(registry.current().list().map(|m| m.id.clone()).collect::<Vec<_>>(), ["generic_invoice_v1"]);
}

#[test]
fn lint_tells_what_is_odd() {
    let text = "schema = 1\nname = \"odd\"\nversion = 1\n[fields.net_total]\nanchor = \"Total\"\nto = \"BT-1\"\n\
        [fields.gross_total]\nanchor = \"Total\"\n";
    let remarks = tools::lint("odd.toml", text, &Registry::shipped()).expect("it works");
    let all: Vec<String> = remarks.iter().map(|r| format!("{}: {}", r.about, r.message)).collect();
    for expected in
        ["BT-109", "has no `to`", "share the label “Total”", "match: has no terms", "tests: there are none"]
    {
        assert!(all.iter().any(|r| r.contains(expected)), "{expected} is not in {all:#?}");
    }
}

#[test]
fn the_difference_of_two_mappings_is_told_by_document() {
    let shelf = Shelf::new();
    shelf.put(1, "live", "First");
    shelf.put(2, "draft", "Second");
    let registry = Registry::new(shelf.options()).expect("sound");
    let loaded = registry.current();
    let (old, new) = (loaded.get("memo_v1").expect("there"), loaded.get("memo_v2").expect("there"));
    let (memo, other) = (memo(), Paper::new().text(50.0, 50.0, "Nothing").document());
    let changed = tools::diff(old, new, [("memo.pdf", &memo), ("other.pdf", &other)].into_iter());
    assert_eq!(changed.keys().collect::<Vec<_>>(), ["memo.pdf"]);
}

#[test]
fn numbers_that_cannot_be_meant_are_refused_with_their_place() {
    let registry = Registry::shipped();
    let refusal = |field: &str| {
        let text = format!("schema = 1\nname = \"note\"\nversion = 1\n[fields.a]\n{field}\n");
        ode_invoice::tools::lint("note.toml", &text, &registry).expect_err(field).to_string()
    };
    assert!(refusal("zone = { page = 1, box = [0, 50, 100, 20] }").starts_with("note.toml:5:1: "));
    assert!(refusal("zone = { page = 1, box = [0, 0, 140, 20] }").contains("in percent"));
    assert!(refusal("anchor = \"A\"\npage = 0").contains("counted from 1"));
    assert!(refusal("anchor = \"A\"\nsure = 1.5").contains("between 0 and 1"));
    assert!(refusal("anchor = \"@b\"").contains("there is no field b"));
}
