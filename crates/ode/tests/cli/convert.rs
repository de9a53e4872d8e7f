//! `ode convert`: one document or many, what is written where, and what is said about those that cannot be read.

use crate::harness::{Ran, bare};
use crate::places::{SMALL_MB, set_mode, unprivileged};
use ode_testing::SmallDisk;
use ode_testing::pdf::{Builder, one_page};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A directory with documents, and the binary in it.
pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Desk(tempfile::tempdir().unwrap())
    }

    /// One with this invoice on it.
    pub(crate) fn with(name: &str, number: &str) -> Self {
        let desk = Desk::new();
        desk.put(name, invoice(number));
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = bare();
        command.args(args).current_dir(self.0.path());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Runs it and answers what it printed; it must end well.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    }

    /// What lies on it, without hidden files.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Text at places from the bottom left corner, as a page's content.
fn content(texts: &[(u32, u32, &str)]) -> String {
    texts.iter().map(|(x, y, text)| format!("BT /F1 10 Tf {x} {y} Td ({text}) Tj ET\n")).collect()
}

fn invoice_builder(number: &str) -> Builder {
    let page = content(&[
        (50, 780, "INVOICE"),
        (50, 740, "Acme Supplies Ltd"),
        (350, 740, "Invoice Number:"),
        (450, 740, number),
        (350, 725, "Invoice Date:"),
        (450, 725, "2026-03-05"),
        (50, 650, "Description"),
        (300, 650, "Qty"),
        (380, 650, "Unit Price"),
        (480, 650, "Amount"),
        (50, 630, "Blue widget"),
        (300, 630, "2"),
        (380, 630, "10.00"),
        (480, 630, "20.00"),
        (50, 615, "Gadget"),
        (300, 615, "1"),
        (380, 615, "5.00"),
        (480, 615, "5.00"),
        (380, 580, "Subtotal"),
        (480, 580, "25.00"),
        (380, 565, "VAT 20%"),
        (480, 565, "5.00"),
        (380, 550, "Total EUR"),
        (480, 550, "30.00"),
    ]);
    let mut builder = Builder::new();
    builder.page("/MediaBox[0 0 595 842]", &page);
    builder
}

/// An invoice over 30 euros that the generic mapping reads.
pub(crate) fn invoice(number: &str) -> Vec<u8> {
    invoice_builder(number).bytes()
}

/// The same page with another invoice as XML inside, as hybrid invoices have it.
fn hybrid(number: &str, xml: &str) -> Vec<u8> {
    let mut builder = invoice_builder(number);
    let data = builder.stream("/Type/EmbeddedFile/Subtype/text#2Fxml", xml.as_bytes());
    let name = "factur-x.xml";
    let file = builder.object(format!(
        "<</Type/Filespec/F({name})/UF({name})/AFRelationship/Alternative/EF<</F {data} 0 R>>>>"
    ));
    let entries = format!("/AF[{file} 0 R]/Names<</EmbeddedFiles<</Names[({name}){file} 0 R]>>>>");
    builder.catalog(&entries).bytes()
}

/// Pages without any text on them.
pub(crate) fn blank() -> Vec<u8> {
    one_page("0 0 10 10 re f")
}

#[test]
fn one_document_goes_to_standard_output_as_xml() {
    let desk = Desk::with("a.pdf", "INV-1");
    let ran = desk.run(["convert", "a.pdf"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.starts_with("<?xml "), "{ran:?}");
    assert!(
        ran.stdout.contains(">INV-1</invoice_number>") && ran.stdout.ends_with("</invoice>\n"),
        "{ran:?}"
    );
    assert_eq!(desk.names("."), ["a.pdf"], "only the document is there");
}

#[test]
fn values_and_text_can_be_had_instead() {
    let desk = Desk::with("a.pdf", "INV-1");
    let ran = desk.run(["convert", "a.pdf", "--to", "json"]);
    let values = ran.json();
    assert_eq!((&values["invoice_number"], &values["gross_total"]), (&"INV-1".into(), &"30.00".into()));
    assert_eq!(values["lines"][1]["name"], "Gadget");
    let text = desk.ok(["convert", "a.pdf", "--to", "text"]);
    assert!(text.contains("Acme Supplies Ltd") && !text.contains('<'), "{text}");
}

#[test]
fn standard_xml_is_well_formed() {
    let desk = Desk::with("a.pdf", "INV-1 &amp;");
    for (output, root) in [("ubl", "Invoice"), ("cii", "CrossIndustryInvoice"), ("own", "invoice")] {
        let xml = desk.ok(["convert", "a.pdf", "--output", output]);
        assert_well_formed(&xml, root);
        assert!(xml.contains("2026-03-05") || xml.contains("20260305"), "{output}: {xml}");
    }
}

/// Every element is closed in turn, and the outermost has this name.
#[track_caller]
fn assert_well_formed(xml: &str, root: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut roots = Vec::new();
    for tag in xml.split('<').skip(1).map(|rest| rest.split_once('>').expect("a tag ends").0) {
        let name = tag.trim_matches('/').split_whitespace().next().unwrap();
        match (tag.starts_with(['?', '!']), tag.starts_with('/'), tag.ends_with('/')) {
            (true, ..) => {}
            (_, true, _) => assert_eq!(open.pop(), Some(name), "{xml}"),
            (_, _, is_empty) => {
                if open.is_empty() {
                    roots.push(name.rsplit(':').next().unwrap());
                }
                if !is_empty {
                    open.push(name);
                }
            }
        }
    }
    assert!(open.is_empty() && roots == [root], "{open:?} {roots:?} {xml}");
}

#[test]
fn a_bad_one_among_many_is_named_and_the_others_are_written() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("b.pdf", "This is no PDF.");
    desk.put("c.pdf", invoice("INV-3"));
    desk.put("scan.pdf", blank());
    let ran =
        desk.run(["convert", "a.pdf", "b.pdf", "c.pdf", "gone.pdf", "scan.pdf", "--out", "results/today"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert_eq!(desk.names("results/today"), ["a.xml", "c.xml"]);
    assert!(desk.read("results/today/c.xml").contains("INV-3"));
    let said = |words: &[&str]| ran.stderr.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(said(&["b.pdf: ", "(NOT_PDF)"]), "{ran:?}");
    assert!(said(&["scan.pdf: ", "(NO_TEXT)"]), "{ran:?}");
    assert!(said(&["gone.pdf: ", "No such file"]), "{ran:?}");
    assert!(said(&["2 of 5 converted"]), "{ran:?}");
    assert!(!ran.stderr.contains(['\x1b', '\r', '█']), "nobody watches, so there is no bar: {ran:?}");
}

#[test]
fn many_documents_go_beside_themselves_unless_told_otherwise() {
    let desk = Desk::with("in/a.pdf", "INV-1");
    desk.put("in/b.pdf", invoice("INV-2"));
    let ran = desk.run(["convert", "in/a.pdf", "in/b.pdf", "--to", "text"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.names("in"), ["a.pdf", "a.txt", "b.pdf", "b.txt"]);
}

#[test]
fn a_single_result_goes_to_a_file_or_into_a_directory() {
    let desk = Desk::with("a.pdf", "INV-1");
    fs::create_dir(desk.path("results")).unwrap();
    desk.ok(["convert", "a.pdf", "--out", "named"]);
    desk.ok(["convert", "a.pdf", "--out", "results"]);
    desk.ok(["convert", "a.pdf", "--out", "new/one/"]);
    assert_eq!(desk.read("named"), desk.read("results/a.xml"));
    assert_eq!(desk.read("named"), desk.read("new/one/a.xml"));
    assert_eq!(desk.names("."), ["a.pdf", "named", "new", "results"], "nothing is left over");
    let mode = fs::metadata(desk.path("named")).unwrap().permissions().mode();
    let usual = fs::File::create(desk.path("usual")).unwrap().metadata().unwrap().permissions().mode();
    assert_eq!(mode, usual, "a result is a file like any other");
}

#[test]
fn a_dash_is_standard_input_and_standard_output() {
    let desk = Desk::with("a.pdf", "INV-1");
    let expected = desk.ok(["convert", "a.pdf"]);
    assert_eq!(desk.ok(["convert", "a.pdf", "--out", "-"]), expected);
    let piped = |args: &[&str]| {
        let document = fs::File::open(desk.path("a.pdf")).unwrap();
        Ran::of(desk.command(args).stdin(document))
    };
    assert_eq!(piped(&["convert", "-"]).stdout, expected);
    assert_eq!(piped(&["convert", "-", "--out", "b.xml"]).code, Some(0));
    assert_eq!(desk.read("b.xml"), expected);
    let ran = desk.run(["convert", "a.pdf", "--out", "c.xml", "--provenance", "-"]);
    assert_eq!(ran.json()["invoice_number"]["printed"], "INV-1", "{ran:?}");
    let refuse = |args: &[&str], word: &str| desk.run(args).assert_wrong_use(&[word]);
    refuse(&["convert", "a.pdf", "b.pdf", "--out", "-"], "cannot go to standard output together");
    refuse(&["convert", ".", "--out", "-"], "cannot go to standard output together");
    refuse(&["convert", "a.pdf", "--provenance", "-"], "Two results would go to standard output.");
    refuse(&["convert", "-", "a.pdf"], "Name a directory with --out");
    assert_eq!(desk.names("."), ["a.pdf", "b.xml", "c.xml"]);
}

#[test]
fn a_file_that_is_there_is_replaced_only_by_force() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("b.pdf", invoice("INV-2"));
    desk.put("a.xml", "mine");
    desk.put("places.json", "mine");
    let ran = desk.run(["convert", "a.pdf", "--out", "a.xml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "a.pdf: a.xml is there already. Choose another place, or replace it with --force.\n"
    );
    let ran = desk.run(["convert", "a.pdf", "--provenance", "places.json"]);
    assert!(ran.code == Some(1) && ran.stdout.is_empty(), "the result is not printed either: {ran:?}");
    assert!(ran.stderr.contains("places.json is there already."), "{ran:?}");
    let ran = desk.run(["convert", "a.pdf", "b.pdf"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("a.pdf: a.xml is there already."), "{ran:?}");
    assert!(ran.stderr.ends_with("1 of 2 converted; 1 left, since its result is there already\n"), "{ran:?}");
    assert_eq!((desk.read("a.xml"), desk.read("places.json")), ("mine".into(), "mine".into()));
    assert!(desk.read("b.xml").contains("INV-2"));
    desk.ok(["convert", "a.pdf", "b.pdf", "--force"]);
    assert!(desk.read("a.xml").contains("INV-1"));
    assert_eq!(desk.names("."), ["a.pdf", "a.xml", "b.pdf", "b.xml", "places.json"]);
}

#[test]
fn a_folder_stands_for_the_pdfs_in_it() {
    let desk = Desk::with("in/a.pdf", "INV-1");
    desk.put("in/B.PDF", invoice("INV-2"));
    desk.put("in/note.txt", "no PDF");
    desk.put("in/.hidden.pdf", "no PDF");
    desk.put("in/deep/er/a.pdf", invoice("INV-3"));
    let ran = desk.run(["convert", "in", "--out", "out"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "2 of 2 converted\n"), "{ran:?}");
    assert_eq!(desk.names("out"), ["B.xml", "a.xml"]);
    let ran = desk.run(["convert", "in", "--recursive", "--out", "all"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "3 of 3 converted\n"), "{ran:?}");
    assert!(desk.read("all/deep/er/a.xml").contains("INV-3"));
    desk.ok(["convert", "in/deep/er/"]);
    assert_eq!(desk.names("in/deep/er"), ["a.pdf", "a.xml"], "beside the document, even if it is alone");
    desk.put("none/note.txt", "");
    desk.run(["convert", "none"]).assert_wrong_use(&["There are no PDFs in none.", "--recursive"]);
}

#[test]
fn options_without_effect_are_refused() {
    let desk = Desk::with("a.pdf", "INV-1");
    let check = |args: &[&str], word: &str| {
        let args = ["convert", "a.pdf", "--to"].iter().chain(args);
        desk.run(args).assert_wrong_use(&[word, "Leave one out."]);
    };
    check(&["json", "--output", "ubl"], "--output chooses a kind of XML, but --to json asks for none.");
    check(&["text", "--output", "own"], "but --to text asks for none.");
    check(&["text", "--provenance", "p.json"], "--provenance is about values, but --to text reads none.");
    check(&["text", "--mapping", "auto"], "--mapping is about values");
    assert_eq!(desk.names("."), ["a.pdf"]);
}

#[test]
fn a_gap_is_told_once_with_its_code() {
    let desk = Desk::new();
    let page = content(&[
        (50, 780, "INVOICE"),
        (350, 740, "Invoice Number:"),
        (450, 740, "INV-1"),
        (350, 400, "Total:"),
        (450, 400, "30.00"),
    ]);
    let mut builder = Builder::new();
    builder.page("/MediaBox[0 0 595 842]", &page);
    desk.put("a.pdf", builder.bytes());
    for output in ["own", "ubl", "cii"] {
        let ran = desk.run(["convert", "a.pdf", "--output", output]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said: Vec<&str> = ran.stderr.lines().collect();
        let about_the_day = said.iter().filter(|line| line.contains("issue") || line.contains("date"));
        assert_eq!(about_the_day.count(), 1, "{output}: {ran:?}");
        for line in said {
            let code = line.rsplit_once('(').unwrap().1.trim_end_matches(')');
            assert_eq!(desk.run(["explain", code]).code, Some(0), "{line}");
        }
    }
}

#[test]
fn where_each_value_stands_can_be_had_as_a_file() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("b.pdf", invoice("INV-2"));
    desk.ok(["convert", "a.pdf", "--provenance", "places.json"]);
    let places: Value = serde_json::from_str(&desk.read("places.json")).unwrap();
    let number = &places["invoice_number"];
    assert_eq!((&number["page"], &number["printed"]), (&1.into(), &"INV-1".into()));
    let bbox: Vec<f64> = number["bbox"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
    assert!((bbox[0] - 450.0).abs() < 2.0 && bbox[1] > 80.0 && bbox[3] < 110.0, "{bbox:?}");
    assert_eq!(places["lines.1.total"]["printed"], "5.00");
    desk.ok(["convert", "a.pdf", "b.pdf", "--out", "all", "--provenance", "all"]);
    assert_eq!(desk.names("all"), ["a.places.json", "a.xml", "b.places.json", "b.xml"]);
}

#[test]
fn results_that_would_meet_are_refused_before_anything_is_written() {
    let desk = Desk::with("x/a.pdf", "INV-1");
    desk.put("y/a.pdf", invoice("INV-2"));
    let check = |args: &[&str], words: &[&str]| desk.run(args).assert_wrong_use(words);
    check(
        &["convert", "x/a.pdf", "y/a.pdf", "--out", "all"],
        &["Two results would go to all/a.xml, from x/a.pdf and y/a.pdf."],
    );
    check(&["convert", "x/a.pdf", "x/a.pdf"], &["Two results would go to x/a.xml"]);
    check(&["convert", "x/a.pdf", "--out", "b", "--provenance", "b"], &["Two results would go to b"]);
    check(&["convert", "x/a.pdf", "--out", "x/a.pdf"], &["x/a.pdf would be overwritten"]);
    check(&["convert", "x", "--out", "y/a.pdf"], &["--out y/a.pdf is a file, and several documents go into"]);
    assert_eq!((desk.names("."), desk.names("x")), (vec!["x".into(), "y".into()], vec!["a.pdf".into()]));
}

#[test]
fn what_cannot_be_read_or_written_is_told_with_the_reason() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("empty.pdf", "");
    desk.put("file", "");
    let check = |args: &[&str], words: &[&str]| {
        let ran = desk.run(args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{word:?} is not said: {ran:?}");
        }
        assert!(!ran.stderr.contains("os error") && ran.stdout.is_empty(), "{ran:?}");
    };
    check(&["convert", "gone.pdf"], &["Cannot read gone.pdf: No such file or directory\n"]);
    check(&["convert", "empty.pdf"], &["(NOT_PDF)"]);
    check(
        &["convert", "a.pdf", "--out", "no/such/place.xml"],
        &["a.pdf: Cannot write no/such/place.xml: No such file or directory\n"],
    );
    check(&["convert", "a.pdf", "--out", "file/a.xml"], &["Cannot write file/a.xml: Not a directory"]);
    check(&["convert", "a.pdf", "empty.pdf", "--out", "file/x"], &["Cannot make the directory file/x"]);
    check(&["convert", "a.pdf", "--out", "/dev/full"], &["Cannot write /dev/full: No space left on device"]);
    desk.run(["convert", "a.pdf", "--mappings", "nowhere"])
        .assert_wrong_use(&["mappings of nowhere cannot be loaded", "No such file"]);
    assert_eq!(desk.names("."), ["a.pdf", "empty.pdf", "file"]);
}

#[test]
fn what_may_not_be_read_or_written_is_told_for_each_file() {
    let desk = Desk::with("in/a.pdf", "INV-1");
    desk.put("in/locked.pdf", invoice("INV-2"));
    desk.put("in/below/b.pdf", invoice("INV-3"));
    std::os::unix::fs::symlink("nowhere", desk.path("in/vanished.pdf")).unwrap();
    fs::create_dir(desk.path("out")).unwrap();
    for (place, mode) in [("", 0o755), ("in/locked.pdf", 0), ("in/below", 0), ("out", 0o777)] {
        set_mode(&desk.path(place), mode);
    }
    let convert = || unprivileged(desk.command(["convert", "in", "--recursive", "--out", "out"]));
    let Some(ran) = convert() else { return };
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let mut said: Vec<&str> = ran.stderr.lines().collect();
    said.sort_unstable();
    assert_eq!(
        said,
        [
            "1 of 4 converted",
            "Cannot read in/below: Permission denied",
            "Cannot read in/locked.pdf: Permission denied",
            "Cannot read in/vanished.pdf: No such file or directory",
        ]
    );
    fs::remove_file(desk.path("out/a.xml")).unwrap();
    set_mode(&desk.path("out"), 0o555);
    let ran = convert().unwrap();
    assert!(ran.stderr.contains("in/a.pdf: Cannot write out/a.xml: Permission denied\n"), "{ran:?}");
    // So that they can be removed.
    ["in/below", "out"].iter().for_each(|place| set_mode(&desk.path(place), 0o755));
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing_behind() {
    let desk = Desk::with("a.pdf", "INV-1");
    let Some(_disk) = SmallDisk::mount(desk.path("disk"), SMALL_MB) else { return };
    fs::write(desk.path("disk/ballast"), vec![0; 8_000_000]).unwrap_err();
    let ran = desk.run(["convert", "a.pdf", "--out", "disk/"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stderr, "a.pdf: Cannot write disk/a.xml: No space left on device\n");
    assert_eq!(desk.names("disk"), ["ballast"]);
}

#[test]
fn a_person_who_watches_sees_how_far_it_is() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("b.pdf", invoice("INV-2"));
    let watch = |terminal: &str| {
        let mut command = Command::new("script");
        let line = format!("'{}' convert a.pdf b.pdf --force", env!("CARGO_BIN_EXE_ode"));
        command.args(["-qec", &line, "/dev/null"]).current_dir(desk.path("")).stdin(Stdio::null());
        command.env("TERM", terminal).env("NO_COLOR", "1").output()
    };
    let Ok(seen) = watch("xterm") else { return eprintln!("SKIPPED: there is no `script` here") };
    let seen = String::from_utf8(seen.stdout).unwrap();
    let steps = ["░ 0/2", "█░", "░ 1/2", "█ 2/2", "\x1b[K2 of 2 converted"];
    let found: Vec<Option<usize>> = steps.iter().map(|step| seen.find(step)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} {seen:?}");
    assert!(!seen.contains("\x1b[3"), "there are no colours: {seen:?}");
    let seen = String::from_utf8(watch("dumb").unwrap().stdout).unwrap();
    assert_eq!(seen.trim_end(), "2 of 2 converted");
}

#[test]
fn a_full_standard_output_is_an_error() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: there is no /dev/full here");
        return;
    };
    let desk = Desk::with("a.pdf", "INV-1");
    let mut command = desk.command(["convert", "a.pdf"]);
    let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("Standard output cannot be written: No space left on device"), "{ran:?}");
}

#[test]
fn a_mistyped_mapping_is_told_once_with_the_nearest() {
    let desk = Desk::with("a.pdf", "INV-1");
    let ran = desk.run(["convert", "a.pdf", "a.pdf", "--out", "x", "--mapping", "generic_invoise_v1"]);
    ran.assert_wrong_use(&["Two results would go"]);
    desk.put("b.pdf", invoice("INV-2"));
    let ran = desk.run(["convert", "a.pdf", "b.pdf", "--mapping", "generic_invoise_v1"]);
    ran.assert_wrong_use(&[
        "There is no mapping named",
        "Did you mean generic_invoice_v1?",
        "(UNKNOWN_MAPPING)",
    ]);
    assert_eq!(ran.stderr.matches("generic_invoise_v1").count(), 1, "{ran:?}");
    assert_eq!(desk.names("."), ["a.pdf", "b.pdf"]);
    assert_eq!(desk.run(["convert", "a.pdf", "--output", "ublx"]).code, Some(2));
    assert_eq!(desk.run(["convert"]).code, Some(2));
}

#[test]
fn a_mapping_that_does_not_load_is_told_with_its_place() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("own/note.toml", "schema = 1\nname = \"note\"\nversion = 1\n[fields.number]\nanchr = \"No\"\n");
    let ran = desk.run(["convert", "a.pdf", "--mappings", "own"]);
    ran.assert_wrong_use(&["note.toml:5:1: ", "did you mean `anchor`?"]);
}

#[test]
fn xml_inside_goes_before_the_page_unless_only_the_page_is_wanted() {
    let desk = Desk::with("page.pdf", "INV-7");
    let xml = desk.ok(["convert", "page.pdf", "--output", "cii"]);
    desk.put("hybrid.pdf", hybrid("INV-8", &xml));
    let both = desk.run(["convert", "hybrid.pdf", "--to", "json"]);
    assert_eq!((both.code, &both.json()["invoice_number"]), (Some(0), &"INV-7".into()), "{both:?}");
    assert_eq!(both.json()["source"], "embedded:factur-x.xml");
    assert!(both.stderr.contains("INV-8"), "the page says otherwise, which is told: {both:?}");
    let placed = desk.run(["convert", "hybrid.pdf", "--provenance", "places.json"]);
    assert!(placed.code == Some(0) && placed.stderr.contains("--page-only reads the page."), "{placed:?}");
    let page = desk.run(["convert", "hybrid.pdf", "--to", "json", "--page-only"]);
    assert_eq!((page.code, &page.json()["invoice_number"]), (Some(0), &"INV-8".into()), "{page:?}");
}

#[test]
fn the_sandbox_changes_nothing_about_the_result() {
    let desk = Desk::with("a.pdf", "INV-1");
    assert_eq!(desk.ok(["convert", "a.pdf"]), desk.ok(["convert", "a.pdf", "--no-sandbox"]));
    desk.put("b.pdf", "%PDF-1.7\nnothing\n%%EOF\n");
    let ran = desk.run(["convert", "b.pdf", "--no-sandbox"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("(UNREADABLE)"), "{ran:?}");
}

#[test]
fn awkward_names_are_only_names() {
    let desk = Desk::with("-a b\u{1b}[31m.pdf", "INV-1");
    let out = desk.ok(["convert", "--", "-a b\u{1b}[31m.pdf"]);
    assert!(out.contains("INV-1"));
    desk.put("bad\u{1b}[31m.pdf", "no");
    let ran = desk.run(["convert", "bad\u{1b}[31m.pdf"]);
    assert!(ran.code == Some(1) && !ran.stderr.contains('\x1b'), "{ran:?}");
    let odd = OsStr::from_bytes(b"caf\xe9\n.pdf");
    fs::create_dir(desk.path("odd")).unwrap();
    fs::write(desk.path("odd").join(odd), invoice("INV-9")).unwrap();
    let ran = Ran::of(desk.command(["convert", "--out", "out/", "odd"]).arg(desk.path("odd").join(odd)));
    ran.assert_wrong_use(&["Two results would go to"]);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    let ran = desk.run(["convert", "--out", "out", "odd", "gone\n.pdf"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(1), 2), "{ran:?}");
    assert!(desk.path("out").join(OsStr::from_bytes(b"caf\xe9\n.xml")).is_file());
}

#[test]
fn a_reader_of_results_that_left_has_had_enough() {
    let desk = Desk::with("a.pdf", "INV-1");
    for args in [
        &["convert", "a.pdf"][..],
        &["mapping", "preview", "a.pdf", "--out", "-"],
        &["mapping", "list"],
        &["mapping", "diff", "generic_invoice_v1", "pt_simon_invoice_v1", "a.pdf"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = desk.command(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert!(ran.stderr.is_empty(), "{args:?}: {ran:?}");
    }
}

#[test]
fn the_corpus_converts_or_says_why_not() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/invoices");
    if !corpus.is_dir() {
        eprintln!("SKIPPED: there is no corpus at {}", corpus.display());
        return;
    }
    let mut files: Vec<PathBuf> = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "pdf"));
    files.sort();
    let files: Vec<PathBuf> = files.into_iter().step_by(16).collect();
    let desk = Desk::new();
    let mut command = desk.command(["convert", "--output", "ubl", "--out", "results"]);
    let ran = Ran::of(command.args(&files));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.names("results").len(), files.len());
    for name in desk.names("results") {
        assert!(desk.read(&format!("results/{name}")).starts_with("<?xml"), "{name}");
    }
}

#[test]
fn a_pdf_is_never_replaced_by_a_result_however_it_is_spelled() {
    let desk = Desk::with("a.pdf", "A-1");
    desk.put("b.pdf", invoice("B-2"));
    std::os::unix::fs::symlink(desk.path("a.pdf"), desk.path("link.pdf")).unwrap();
    let before = (fs::read(desk.path("a.pdf")).unwrap(), fs::read(desk.path("b.pdf")).unwrap());
    for args in [
        &["convert", "a.pdf", "--out", "./a.pdf", "--force"][..],
        &["convert", "link.pdf", "--out", "a.pdf", "--force"],
        &["convert", "a.pdf", "--out", "b.pdf", "--force"],
        &["convert", "a.pdf", "--out", "a.xml", "--provenance", "b.pdf", "--force"],
        &["mapping", "preview", "a.pdf", "--out", "a.pdf", "--force"],
    ] {
        let ran = desk.run(args);
        assert_ne!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("is not replaced") || ran.stderr.contains("overwritten"), "{ran:?}");
    }
    assert_eq!((fs::read(desk.path("a.pdf")).unwrap(), fs::read(desk.path("b.pdf")).unwrap()), before);
    assert_eq!(desk.names("."), ["a.pdf", "b.pdf", "link.pdf"], "nothing is left behind");
}
