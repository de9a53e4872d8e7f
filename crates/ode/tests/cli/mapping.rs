//! `ode mapping`: what there is, mistakes with their place, tests with what they expected, previews, learning and
//! comparing.

use crate::convert::{Desk, blank, invoice};
use crate::harness::{Ran, headings};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A mapping for the invoices of these tests; `rest` is added at its end.
fn mapping(name: &str, rest: &str) -> String {
    format!(
        "schema = 1\nname = \"{name}\"\nversion = 1\nstatus = \"live\"\nextends = \"generic_invoice_v1\"\n\n\
         [match]\nall = [\"Acme Supplies\"]\n{rest}"
    )
}

#[test]
fn every_mapping_is_listed_with_where_it_is_from() {
    let desk = Desk::new();
    desk.put("own/acme.toml", mapping("acme", ""));
    desk.put("own/generic.toml", "schema = 1\nname = \"generic_invoice\"\nversion = 1\nkind = \"note\"\n");
    let table = desk.ok(["mapping", "list"]);
    assert_eq!(headings(&table), ["MAPPING", "STATUS", "KIND", "FROM", "MATCHES"]);
    let line = |table: &str, id: &str| {
        table.lines().find(|line| line.starts_with(&format!("{id} "))).map(str::to_owned)
    };
    let generic = line(&table, "generic_invoice_v1").unwrap();
    assert!(generic.contains("live") && generic.contains("shipped"), "{generic}");
    assert!(line(&table, "pt_simon_invoice_v1").unwrap().contains("NPWP"), "{table}");
    assert!(line(&table, "acme_v1").is_none(), "{table}");
    let listed: Value =
        serde_json::from_str(&desk.ok(["mapping", "list", "--json", "--mappings", "own"])).unwrap();
    let one = |id: &str| listed["mappings"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(one("acme_v1")["from"], "own/acme.toml");
    assert_eq!(one("acme_v1")["match"]["all"], json!(["Acme Supplies"]));
    assert_eq!(
        one("generic_invoice_v1")["from"],
        "own/generic.toml",
        "one's own takes a shipped one's place"
    );
    assert_eq!(one("pt_simon_invoice_v1")["from"], "shipped");
    let ran = crate::harness::Ran::of(desk.command(["mapping", "list"]).env("ODE_MAPPINGS", "own"));
    assert!(line(&ran.stdout, "acme_v1").unwrap().contains("Acme Supplies"), "{ran:?}");
}

#[test]
fn mistakes_are_told_with_line_and_column_and_what_was_meant() {
    let desk = Desk::new();
    let check = |text: &str, expected: &str| {
        desk.put("bad/note.toml", text);
        let ran = desk.run(["mapping", "lint", "bad/note.toml"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stdout.starts_with(expected), "{expected}: {ran:?}");
    };
    let head = "schema = 1\nname = \"note\"\nversion = 1\n";
    check(
        &format!("{head}[fields.number]\nanchr = \"No\"\n"),
        "bad/note.toml:5:1: unknown field `anchr` (did you mean `anchor`?)",
    );
    check(
        &format!("{head}[fields.number]\nanchor = \"No\"\ntype = \"dat\"\n"),
        "bad/note.toml:6:8: unknown variant `dat` (did you mean `date`?)",
    );
    check("schema = 1\nname =\n", "bad/note.toml:2:");
    check(&format!("{head}[fields.number]\nfind = '(['\n"), "bad/note.toml:5:9: field number: ");
    check(&head.replace("schema = 1", "schema = 9"), "bad/note.toml: schema is 9");
    check(
        &format!("{head}extends = \"nobody_v1\"\n"),
        "bad/note.toml: it extends nobody_v1, which is not loaded",
    );
    check("", "bad/note.toml:1:1: missing field");
}

#[test]
fn sound_files_are_said_to_be_so_and_odd_things_are_noted() {
    let desk = Desk::new();
    desk.put("own/acme.toml", mapping("acme", "[[tests]]\nfile = \"a.pdf\"\nexpect = { lines = 2 }\n"));
    desk.put("own/more.toml", mapping("more", "").replace("generic_invoice_v1", "acme_v1"));
    assert_eq!(desk.ok(["mapping", "lint", "own/acme.toml"]), "own/acme.toml: no mistakes\n");
    let noted = desk.ok(["mapping", "lint", "own/acme.toml", "own/more.toml"]);
    assert!(noted.contains("own/more.toml: note: tests: "), "what is extended may lie beside: {noted}");
    desk.put("own/broken.toml", "schema = ");
    let ran = desk.run(["mapping", "lint", "own/acme.toml", "own/broken.toml", "own/more.toml"]);
    assert_eq!(desk.run(["mapping", "lint", "own"]).stdout, ran.stdout, "a folder stands for its files");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let wrong: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("own/broken.toml:1:")).collect();
    assert_eq!(
        (wrong.len(), ran.stdout.contains("not loaded")),
        (1, false),
        "each has only its own: {ran:?}"
    );
}

#[test]
fn files_that_cannot_be_mappings_are_refused_in_a_sentence() {
    let desk = Desk::new();
    desk.put("binary.toml", [0xff, 0xfe, 0]);
    desk.put("huge.toml", "#".repeat(2 << 20));
    let check = |args: &[&str], words: &[&str]| desk.run(args).assert_refused(words);
    let said = [
        ("gone.toml", "Cannot read gone.toml: No such file or directory"),
        ("binary.toml", "binary.toml is not text in UTF-8"),
        ("huge.toml", "huge.toml is larger than 1 MB"),
    ];
    for (file, word) in said {
        check(&["mapping", "test", file], &[word]);
    }
    desk.put("sound/acme.toml", mapping("acme", ""));
    let files = said.iter().map(|(file, _)| *file);
    let ran = desk.run(["mapping", "lint"].into_iter().chain(files).chain(["sound/acme.toml"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{ran:?}");
    for (line, word) in ran.stdout.lines().zip(said.iter().map(|(_, word)| *word)) {
        assert!(line.starts_with(word), "{line}");
    }
    assert!(ran.stdout.contains("\nsound/acme.toml: note: "), "it goes on past what it cannot read: {ran:?}");
    fs::create_dir(desk.path("empty")).unwrap();
    for verb in ["lint", "test"] {
        desk.run(["mapping", verb, "empty"]).assert_wrong_use(&["There are no mappings (*.toml) in empty."]);
    }
    check(
        &["mapping", "list", "--mappings", "nowhere"],
        &["mappings of nowhere cannot be loaded", "No such file"],
    );
    check(&["mapping", "lint"], &["<FILE|DIR>"]);
    check(&["mapping", "tset"], &["unrecognized subcommand", "test"]);
}

#[test]
fn tests_say_what_was_expected_and_what_came() {
    let desk = Desk::with("own/a.pdf", "INV-1");
    desk.put("own/acme.toml", mapping("acme", "[[tests]]\nfile = \"a.pdf\"\nexpect = { invoice_number = \"INV-1\", gross_total = 30, lines = 2, \"lines.1.name\" = \"gadget\" }\n"));
    let ran = desk.run(["mapping", "test", "own/acme.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok    acme_v1  a.pdf\n"), "{ran:?}");
    assert_eq!(ran.stderr, "1 of 1 passed\n");
    desk.put("own/bad.toml", mapping("bad", "[[tests]]\nfile = \"a.pdf\"\nexpect = { invoice_number = \"INV-2\", due_date = \"2026-04-01\", lines = 3 }\n[[tests]]\nfile = \"gone.pdf\"\nexpect = { lines = 1 }\n"));
    let ran = desk.run(["mapping", "test", "--mappings", "own"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.stdout,
        "ok    acme_v1  a.pdf\n\
         FAIL  bad_v1  a.pdf\n        due_date: expected \"2026-04-01\", got nothing\n        \
         invoice_number: expected \"INV-2\", got \"INV-1\"\n        lines: expected \"3\", got \"2\"\n\
         FAIL  bad_v1  gone.pdf\n        Cannot read own/gone.pdf: No such file or directory\n"
    );
    assert_eq!(ran.stderr, "1 of 3 passed\n");
    assert_eq!(desk.run(["mapping", "test", "acme", "--mappings", "own"]).code, Some(0), "one by its name");
}

#[test]
fn a_file_is_tested_whatever_is_wrong_with_its_neighbours() {
    let desk = Desk::with("own/a.pdf", "INV-1");
    let tests = "[[tests]]\nfile = \"a.pdf\"\nexpect = { lines = 2 }\n";
    desk.put("own/base.toml", mapping("base", ""));
    desk.put("own/acme.toml", mapping("acme", tests).replace("generic_invoice_v1", "base_v1"));
    desk.put("own/broken.toml", "schema = ");
    let ran = desk.run(["mapping", "test", "own/acme.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok    acme_v1  a.pdf\n"), "{ran:?}");
    desk.run(["mapping", "test", "own/broken.toml"]).assert_refused(&["error: own/broken.toml:1:"]);
    desk.run(["mapping", "test", "own"])
        .assert_wrong_use(&["mappings of own cannot be loaded", "broken.toml"]);
    fs::remove_file(desk.path("own/broken.toml")).unwrap();
    assert_eq!(desk.run(["mapping", "test", "own"]).stdout, ran.stdout, "a folder stands for its files");
}

#[test]
fn two_files_with_one_id_are_told() {
    let desk = Desk::with("own/a.pdf", "INV-1");
    desk.put("own/acme.toml", mapping("acme", ""));
    desk.put("own/copy.toml", mapping("acme", ""));
    let said = "copy.toml: it is acme_v1, and so is acme.toml; give one of them another name or version";
    let ran = desk.run(["mapping", "lint", "own"]);
    assert!(ran.code == Some(1) && ran.stdout.contains(&format!("own/{said}\n")), "{ran:?}");
    desk.run(["mapping", "test", "own/copy.toml"]).assert_refused(&["it is acme_v1, and so is acme.toml"]);
    desk.run(["mapping", "list", "--mappings", "own"]).assert_wrong_use(&[said]);
    desk.run(["convert", "own/a.pdf", "--mappings", "own"]).assert_wrong_use(&[said]);
}

#[test]
fn tests_that_are_not_there_are_not_failures_but_names_that_are_not_are() {
    let desk = Desk::new();
    let ran = desk.run(["mapping", "test"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("There are no tests"), "{ran:?}");
    let ran = desk.run(["mapping", "test", "generic_invoice_v1"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("generic_invoice_v1 has no tests"), "{ran:?}");
    desk.run(["mapping", "test", "generic_invoise_v1"]).assert_refused(&["Did you mean generic_invoice_v1?"]);
    desk.put("own/note.toml", "schema = 1\nname = \"note\"\nversion = 1\nkinds = 2\n");
    desk.run(["mapping", "test", "own/note.toml"])
        .assert_refused(&["note.toml:4:1: ", "did you mean `kind`?"]);
}

#[test]
fn a_preview_shows_the_values_in_boxes() {
    let desk = Desk::with("a.pdf", "INV-1<b>");
    let ran = desk.run(["mapping", "preview", "a.pdf", "--out", "page.html"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let html = desk.read("page.html");
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{html}");
    assert!(html.contains("Read by generic_invoice_v1") && html.contains("<rect "), "{html}");
    assert!(!html.contains("<b>") && !html.contains("<script"), "{html}");
    desk.put("own/acme.toml", mapping("acme", ""));
    let again = ["mapping", "preview", "a.pdf", "--out", "page.html"];
    desk.run(again).assert_refused(&["page.html is there already.", "--force"]);
    assert_eq!(desk.ok(["mapping", "preview", "a.pdf", "--out", "-"]), html);
    desk.ok([
        "mapping",
        "preview",
        "a.pdf",
        "--mapping",
        "acme",
        "--mappings",
        "own",
        "--out",
        "page.html",
        "--force",
    ]);
    assert!(desk.read("page.html").contains("Read by acme_v1"));
}

#[test]
fn a_preview_of_what_cannot_be_read_leaves_nothing_behind() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("b.pdf", "no PDF");
    desk.put("scan.pdf", blank());
    let check = |args: &[&str], words: &[&str]| {
        let args = ["mapping", "preview"].into_iter().chain(args.iter().copied());
        desk.run(args).assert_refused(words);
    };
    check(&["b.pdf", "--out", "x.html"], &["b.pdf", "(NOT_PDF)"]);
    check(&["scan.pdf", "--out", "x.html"], &["scan.pdf", "(NO_TEXT)"]);
    check(&["gone.pdf", "--out", "x.html"], &["Cannot read gone.pdf", "No such file"]);
    check(&["a.pdf", "--out", "x.html", "--mapping", "acme_v1"], &["There is no mapping named acme_v1"]);
    check(&["a.pdf", "--out", "no/x.html"], &["Cannot write no/x.html"]);
    check(&["a.pdf", "--out", "/dev/full"], &["Cannot write /dev/full: No space left on device"]);
    check(&["a.pdf"], &["--out"]);
    assert_eq!(desk.names("."), ["a.pdf", "b.pdf", "scan.pdf"]);
}

#[test]
fn what_is_learned_from_one_document_reads_the_next() {
    let desk = Desk::with("docs/a.pdf", "INV-1");
    desk.put("docs/b.pdf", invoice("INV-2"));
    // What was read and put right is what it should have been.
    let mut values: Value =
        serde_json::from_str(&desk.ok(["convert", "docs/a.pdf", "--to", "json"])).unwrap();
    values["buyer_name"] = "Nobody who is on the page".into();
    desk.put("a.json", values.to_string());
    let learn =
        ["mapping", "learn", "--pdf", "docs/a.pdf", "--expect", "a.json", "--out", "Acme Ltd_v1.toml"];
    let ran = desk.run(learn);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.contains("acme_ltd_v1 was written to Acme Ltd_v1.toml"), "{ran:?}");
    assert!(ran.stderr.contains("invoice_number") && ran.stderr.contains(": 8 of 8\n"), "{ran:?}");
    assert!(ran.stderr.contains("\nNot learned: buyer_name\n"), "{ran:?}");
    let text = desk.read("Acme Ltd_v1.toml");
    assert!(text.contains("file = \"docs/a.pdf\"") && !text.contains("source"), "{text}");
    assert_eq!(desk.run(["mapping", "lint", "Acme Ltd_v1.toml"]).code, Some(0));
    let tested = desk.run(["mapping", "test", "./Acme Ltd_v1.toml"]);
    assert_eq!(tested.code, Some(0), "its test expects what it gives: {tested:?}");
    let next =
        desk.run(["convert", "docs/b.pdf", "--to", "json", "--mapping", "acme_ltd_v1", "--mappings", "."]);
    let (read, was) = (next.json(), &values);
    assert_eq!((&read["invoice_number"], &read["lines"]), (&"INV-2".into(), &was["lines"]), "{next:?}");

    desk.run(learn).assert_refused(&["Acme Ltd_v1.toml is there already", "--force"]);
    assert_eq!(desk.read("Acme Ltd_v1.toml"), text);
    desk.ok(learn.into_iter().chain(["--force", "--name", "other"]));
    assert!(desk.read("Acme Ltd_v1.toml").contains("name = \"other\""));
}

#[test]
fn what_nothing_can_be_learned_from_is_refused() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("scan.pdf", blank());
    desk.put("bad.pdf", "no PDF");
    desk.put("a.json", r#"{"invoice_number": "INV-1"}"#);
    desk.put("none.json", r#"{"invoice_number": "nowhere on the page", "lines": []}"#);
    let names = desk.names(".");
    let check = |args: &[&str], words: &[&str]| {
        let args = ["mapping", "learn", "--out"].into_iter().chain(args.iter().copied());
        desk.run(args).assert_refused(words);
    };
    check(&["x.toml", "--pdf", "scan.pdf", "--expect", "a.json"], &["scan.pdf", "(NO_TEXT)"]);
    check(&["x.toml", "--pdf", "bad.pdf", "--expect", "a.json"], &["bad.pdf", "(NOT_PDF)"]);
    check(&["x.toml", "--pdf", "gone.pdf", "--expect", "a.json"], &["Cannot read gone.pdf: No such file"]);
    check(&["x.toml", "--pdf", "a.pdf", "--expect", "gone.json"], &["Cannot read gone.json: No such file"]);
    check(&["no/x.toml", "--pdf", "a.pdf", "--expect", "a.json"], &["Cannot write no/x.toml: No such file"]);
    check(
        &["x.toml", "--pdf", "a.pdf", "--expect", "none.json"],
        &["Nothing could be learned", "none of the expected values"],
    );
    check(
        &["x.toml", "--pdf", "a.pdf", "--expect", "a.json", "--name", "A b"],
        &["--name \"A b\" may only hold a-z"],
    );
    check(&["x.toml", "--pdf", "a.pdf"], &["--expect"]);
    for (text, word) in [
        ("{\"a\": ", "is not JSON: "),
        ("[1]", "is not an object of field names and values"),
        ("{}", "Nothing could be learned"),
        (r#"{"kind": "invoice", "source": "x"}"#, "no values were given"),
        (r#"{"a]\nb": "INV-1"}"#, "may only hold letters, digits"),
    ] {
        desk.put("x.json", text);
        check(&["x.toml", "--pdf", "a.pdf", "--expect", "x.json"], &[word]);
        std::fs::remove_file(desk.path("x.json")).unwrap();
    }
    assert_eq!(desk.names("."), names);
}

#[test]
fn two_mappings_are_compared_field_by_field() {
    let desk = Desk::with("a.pdf", "INV-1");
    desk.put("bad.pdf", "no PDF");
    desk.put("own/same.toml", mapping("same", ""));
    desk.put("own/date.toml", mapping("date", "[fields.invoice_number]\nanchor = \"Invoice Date\"\n"));
    let diff = |args: &[&str]| {
        desk.run(["mapping", "diff", "--mappings", "own"].into_iter().chain(args.iter().copied()))
    };
    let ran = diff(&["generic_invoice_v1", "same", "a.pdf"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a.pdf: the same\n"), "{ran:?}");
    let ran = diff(&["same_v1", "date_v1", "a.pdf"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("\n  invoice_number: \"INV-1\" → \"2026-03-05\"\n"), "{ran:?}");
    let ran = diff(&["same", "same", "bad.pdf", "a.pdf"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a.pdf: the same\n"), "{ran:?}");
    assert!(ran.stderr.contains("bad.pdf: ") && ran.stderr.contains("(NOT_PDF)"), "{ran:?}");
    diff(&["same", "sane_v1", "a.pdf"])
        .assert_refused(&["no mapping named sane_v1", "Did you mean same_v1?"]);
    diff(&["same", "date"]).assert_refused(&["<FILE>"]);
}

#[test]
fn the_cost_of_a_document_is_one_line_of_json() {
    let desk = Desk::with("docs/a.pdf", "INV-1");
    desk.put("docs/bad.pdf", "no PDF");
    let out = desk.ok(["bench", "extract", "docs", "--repeat", "1"]);
    let cost: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (out.lines().count(), &cost["documents"], &cost["refused"]),
        (1, &1.into(), &1.into()),
        "{out}"
    );
    for name in ["cpu_ms_per_document", "documents_per_cpu_s", "read_ms", "extract_ms", "write_ms"] {
        assert!(cost[name].as_f64().is_some_and(|number| number > 0.0), "{name}: {out}");
    }
    assert_eq!(cost["child"]["documents"], 2, "{out}");
    desk.run(["bench", "extract", "nowhere"]).assert_refused(&["Cannot read nowhere: No such file"]);
    desk.run(["bench", "extract", "."]).assert_refused(&["There are no PDFs in ."]);
    desk.run(["bench", "extract"]).assert_refused(&["<DIR>"]);
    desk.run(["bench", "extract", "docs", "--mapping", "x"]).assert_refused(&["There is no mapping named x"]);
    std::fs::remove_file(desk.path("docs/a.pdf")).unwrap();
    desk.run(["bench", "extract", "docs"]).assert_refused(&["None of the 1 PDFs in docs can be mapped"]);
}

/// Commands that a document or a help text shows, without what it says about them.
fn shown(text: &str) -> Vec<String> {
    let is_ours = |line: &&str| line.starts_with("ode convert ") || line.starts_with("ode mapping ");
    let command = |line: &str| line.split("  ").next().unwrap().split(" #").next().unwrap().trim().to_owned();
    text.lines().map(str::trim).filter(is_ours).map(command).collect()
}

#[test]
fn examples_in_the_help_and_the_readme_run() {
    let help = |args: &[&str]| Desk::new().ok(args);
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let texts = [
        fs::read_to_string(readme).unwrap(),
        help(&["convert", "--help"]),
        help(&["mapping", "--help"]),
        help(&["mapping", "learn", "--help"]),
        help(&["mapping", "test", "--help"]),
        help(&["mapping", "preview", "--help"]),
        help(&["mapping", "diff", "--help"]),
    ];
    let commands: BTreeSet<String> = texts.iter().flat_map(|text| shown(text)).collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let desk = Desk::with("invoice.pdf", "INV-1");
        desk.put("a.pdf", invoice("INV-2"));
        desk.put("report.pdf", invoice("INV-4"));
        desk.put("invoices/b.pdf", invoice("INV-3"));
        let tests = "[[tests]]\nfile = \"../a.pdf\"\nexpect = { lines = 2 }\n";
        desk.put("mappings/acme.toml", mapping("acme", tests));
        if command.contains(" learn ") {
            desk.put("a.json", r#"{"invoice_number": "INV-2", "gross_total": "30.00"}"#);
        } else {
            desk.put("acme.toml", mapping("acme", ""));
        }
        let home = Path::new(env!("CARGO_BIN_EXE_ode")).parent().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("PATH={}:$PATH; {command}", home.display())]).current_dir(desk.path(""));
        let ran = Ran::of(&mut shell);
        assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
    }
}
