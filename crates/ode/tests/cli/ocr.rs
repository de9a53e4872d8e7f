//! Scans: read with a real tesseract where they can be, and told about where they cannot.

use crate::convert::{Desk, invoice};
use crate::harness::Ran;
use crate::serve::Serving;
use ode_testing::pdf::{Builder, one_page};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

/// Deep enough for whatever a page holds.
const STACK_BYTES: usize = 64 << 20;

/// The first page of a document as a picture of itself, as a scanner would make it.
fn photographed(document: Vec<u8>) -> ode_pdf::Picture {
    let draw = move || ode_pdf::draw_here(document, 1, &ode_pdf::Limits::default()).unwrap();
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(draw).unwrap().join().unwrap()
}

/// Adds a page that shows nothing but the first page of `document`, and what `more` draws over it.
fn add_scan(builder: &mut Builder, document: Vec<u8>, more: &str) {
    let picture = photographed(document);
    let entries = format!(
        "/Type/XObject/Subtype/Image/Width {}/Height {}/BitsPerComponent 8/ColorSpace/DeviceGray",
        picture.width, picture.height
    );
    let image = builder.stream(&entries, &picture.grey);
    let resources = format!("/Resources<</Font<</F1 3 0 R>>/XObject<</I {image} 0 R>>>>");
    builder
        .page(&format!("/MediaBox[0 0 595 842]{resources}"), &format!("q 595 0 0 842 0 0 cm /I Do Q {more}"));
}

fn scan(number: &str) -> Vec<u8> {
    let mut builder = Builder::new();
    add_scan(&mut builder, invoice(number), "");
    builder.bytes()
}

/// A page of text, and a scan of an invoice.
fn letter_and_scan(number: &str) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.page("", "BT /F1 10 Tf 20 200 Td (Dear Sirs, please find our invoice enclosed.) Tj ET");
    add_scan(&mut builder, invoice(number), "");
    builder.bytes()
}

/// A program without optimisations on a busy machine takes its time.
const PATIENCE: [&str; 2] = ["--ocr-seconds", "200"];

fn patient<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["convert"], args, &PATIENCE].concat()
}

/// The command where there is no tesseract but the one in this directory.
fn with_path(desk: &Desk, folder: &str, args: &[&str]) -> Command {
    let mut command = desk.command(args);
    command.env("PATH", desk.path(folder));
    command
}

/// Puts a program called tesseract there, which lists one language and otherwise runs these commands.
fn put_tesseract(desk: &Desk, folder: &str, commands: &str) {
    let path = format!("{folder}/tesseract");
    let list = "[ \"$1\" = --list-langs ] && { echo 'List (1):'; echo eng; exit; }";
    desk.put(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{list}\n{commands}\n"));
    std::fs::set_permissions(desk.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_scan_is_read_and_says_so() {
    let desk = Desk::new();
    desk.put("scan.pdf", scan("INV-4711"));
    desk.put("a.pdf", invoice("INV-4711"));
    let ran = desk.run(patient(&["scan.pdf", "--provenance", "places.json"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for value in
        [">INV-4711</invoice_number>", ">2026-03-05</issue_date>", ">30.00</gross_total>", ">Gadget</name>"]
    {
        assert!(ran.stdout.contains(value), "{value} is missing: {ran:?}");
    }
    assert!(
        ran.stderr.contains("Page 1 was read by OCR.") && ran.stderr.contains("(PAGE_READ_BY_OCR)"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("code=\"PAGE_READ_BY_OCR\""), "the result itself says so: {ran:?}");

    desk.ok(["convert", "a.pdf", "--provenance", "own.json"]);
    let (scanned, own) = (place(&desk.read("places.json")), place(&desk.read("own.json")));
    assert_eq!(scanned.0, 1);
    for (scanned, own) in scanned.1.iter().zip(own.1) {
        assert!((scanned - own).abs() < 4.0, "the number stands where it was printed: {scanned} {own}");
    }
}

/// Page and box of the invoice's number.
fn place(provenance: &str) -> (u64, Vec<f64>) {
    let provenance: Value = serde_json::from_str(provenance).unwrap();
    let number = &provenance["invoice_number"];
    let bbox = number["bbox"].as_array().unwrap_or_else(|| panic!("a box in {provenance}"));
    (number["page"].as_u64().unwrap(), bbox.iter().map(|edge| edge.as_f64().unwrap()).collect())
}

#[test]
fn only_those_pages_of_a_document_are_read_by_ocr_that_have_no_text() {
    let desk = Desk::new();
    desk.put("mixed.pdf", letter_and_scan("INV-12"));
    let ran = desk.run(patient(&["mixed.pdf", "--to", "text"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("please find our invoice enclosed.") && ran.stdout.contains("INV-12"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("Page 2 was read by OCR."), "{ran:?}");
}

#[test]
fn a_hidden_layer_of_text_is_used_instead() {
    let layer = "BT 3 Tr /F1 10 Tf 20 200 Td (What an earlier reader has read of this page, \
                 and has put below its picture for others to find.) Tj ET";
    let mut builder = Builder::new();
    add_scan(&mut builder, invoice("INV-12"), layer);
    let desk = Desk::new();
    desk.put("read.pdf", builder.bytes());
    let ran = desk.run(["convert", "read.pdf", "--to", "text"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.contains("an earlier reader") && !ran.stdout.contains("INV-12"), "{ran:?}");
}

#[test]
fn without_tesseract_a_scan_is_refused_and_a_page_of_one_is_told_about() {
    let desk = Desk::new();
    desk.put("scan.pdf", scan("INV-1"));
    desk.put("mixed.pdf", letter_and_scan("INV-1"));
    let ran = Ran::of(&mut with_path(&desk, "nothing", &["convert", "scan.pdf"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("Install tesseract-ocr") && ran.stderr.contains("(NO_TEXT)"), "{ran:?}");
    let ran = Ran::of(&mut with_path(&desk, "nothing", &["convert", "mixed.pdf", "--to", "text"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("please find our invoice") && !ran.stdout.contains("INV-1"), "{ran:?}");
    assert!(
        ran.stderr.contains("Page 2 is a scan") && ran.stderr.contains("Install tesseract-ocr"),
        "{ran:?}"
    );
}

#[test]
fn ocr_can_be_switched_off() {
    let desk = Desk::new();
    desk.put("scan.pdf", scan("INV-1"));
    let ran = desk.run(["convert", "scan.pdf", "--ocr", "off"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("--ocr auto") && ran.stderr.contains("(NO_TEXT)"), "{ran:?}");
}

#[test]
fn a_language_that_is_not_installed_is_named_as_the_reason() {
    let desk = Desk::new();
    desk.put("scan.pdf", scan("INV-1"));
    let ran = desk.run(["convert", "scan.pdf", "--ocr-languages", "tlh"]);
    assert!(ran.stderr.contains("--ocr-languages") && ran.stderr.contains("(NO_TEXT)"), "{ran:?}");
    let ran = desk.run(["convert", "scan.pdf", "--ocr-languages", "--version"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn a_tesseract_that_does_not_end_is_ended() {
    let desk = Desk::new();
    desk.put("mixed.pdf", letter_and_scan("INV-1"));
    put_tesseract(&desk, "slow", "echo $$ > \"$(dirname \"$0\")/pid\"; exec sleep 600");
    let began = Instant::now();
    let args = ["convert", "mixed.pdf", "--to", "text", "--ocr-seconds", "10"];
    let ran = Ran::of(&mut with_path(&desk, "slow", &args));
    assert!(began.elapsed() < Duration::from_secs(60), "took {:?}", began.elapsed());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("the time for OCR was used up"), "{ran:?}");
    let process = std::path::Path::new("/proc").join(desk.read("slow/pid").trim());
    crate::gateway::await_some("its end", || (!process.exists()).then_some(()));
}

#[test]
fn a_tesseract_that_fails_or_writes_nonsense_costs_only_its_page() {
    for commands in ["exit 1", "echo '<html' > page.hocr", "yes > page.hocr", "kill -SEGV $$"] {
        let desk = Desk::new();
        desk.put("mixed.pdf", letter_and_scan("INV-1"));
        put_tesseract(&desk, "bad", commands);
        let ran = Ran::of(&mut with_path(&desk, "bad", &patient(&["mixed.pdf", "--to", "text"])));
        assert_eq!(ran.code, Some(0), "{commands}: {ran:?}");
        assert!(ran.stdout.contains("please find our invoice"), "{commands}: {ran:?}");
        assert!(ran.stderr.contains("Page 2 "), "{commands}: {ran:?}");
    }
}

#[test]
fn a_photograph_without_text_is_none() {
    // A box in a light grey, as large as the page.
    let mut builder = Builder::new();
    add_scan(&mut builder, one_page("0.9 g 0 0 400 300 re f"), "");
    let desk = Desk::new();
    desk.put("photo.pdf", builder.bytes());
    let ran = desk.run(patient(&["photo.pdf"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("OCR found no text") && ran.stderr.contains("(NO_TEXT)"), "{ran:?}");
}

#[test]
fn the_gateway_reads_scans_too_unless_told_not_to() {
    let desk = Desk::new();
    let scan = scan("INV-4711");
    for (more, status, said) in
        [(&[][..], "200", ">INV-4711</invoice_number>"), (&["--ocr", "off"][..], "422", "NO_TEXT")]
    {
        let mut args = vec!["gateway", "--listen", "127.0.0.1:0", PATIENCE[0], PATIENCE[1]];
        args.extend(more);
        let serving = Serving::start(&mut desk.command(args));
        let answer = crate::gateway::post(&serving, &[("file", &scan), ("mapping", b"auto")]);
        assert!(answer.status.contains(status), "{answer:?}");
        assert!(answer.body.contains(said), "{answer:?}");
    }
}
