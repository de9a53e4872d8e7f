//! `extract FILE [--mapping NAME|auto] [--provenance FILE] [--preview FILE] [--folder DIR]
//! [--rows] [--repeat N]`: prints what a mapping reads from
//! a PDF as flat JSON. With `--rows` it prints the text rows that rules see instead.
//! `extract DIR --out DIR [--mapping NAME|auto] [--folder DIR]` reads every PDF of a folder and writes `NAME.json` for
//! each, for `score.py --outputs`.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use ode_invoice::write::{self, Format, Provenance};
use ode_invoice::{Choice, Options, Registry, extract, sheet::Sheet};

fn main() -> Result<(), Box<dyn Error>> {
    let mut file = None;
    let mut mapping = "auto".to_owned();
    let (mut places, mut page) = (None, None);
    let mut options = Options::default();
    let (mut show_rows, mut repeat) = (false, 1u32);
    let mut out = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--mapping" => mapping = args.next().ok_or("--mapping needs a name")?,
            "--provenance" => places = args.next(),
            "--folder" => options.folder = args.next().map(Into::into),
            "--preview" => page = args.next(),
            "--out" => out = args.next(),
            "--rows" => show_rows = true,
            "--repeat" => repeat = args.next().ok_or("--repeat needs a count")?.parse()?,
            _ => file = Some(arg),
        }
    }
    let file = file.ok_or("which file?")?;
    let registry = Registry::new(options).map_err(|e| format!("{e:?}"))?;
    let choice = if mapping == "auto" { Choice::Auto } else { Choice::Named(&mapping) };
    if let Some(out) = out {
        return read_all(Path::new(&file), Path::new(&out), &registry, choice);
    }
    let bytes: std::sync::Arc<[u8]> = std::fs::read(file)?.into();
    let mut document = ode_pdf::read(bytes.clone(), &ode_pdf::Limits::default())?;
    if show_rows {
        print_rows(&document);
        return Ok(());
    }
    let mut extraction = extract(&document, &registry, choice)?;
    let (mut read_time, mut map_time) = (Duration::ZERO, Duration::ZERO);
    for _ in 1..repeat {
        let start = Instant::now();
        document = ode_pdf::read(bytes.clone(), &ode_pdf::Limits::default())?;
        read_time += start.elapsed();
        let start = Instant::now();
        extraction = extract(&document, &registry, choice)?;
        map_time += start.elapsed();
    }
    if repeat > 1 {
        let each = |time: Duration| time.as_secs_f64() * 1000.0 / f64::from(repeat - 1);
        eprintln!("reading {:.2} ms, mapping {:.2} ms each", each(read_time), each(map_time));
    }
    if let Some(path) = places {
        std::fs::write(path, write::provenance(&extraction.record))?;
    }
    if let Some(path) = page {
        std::fs::write(path, ode_invoice::preview::preview(&document, &extraction))?;
    }
    for finding in &extraction.record.findings {
        eprintln!("{:?} {}: {}", finding.severity, finding.code, finding.message);
    }
    eprintln!("{}", extraction.mapping);
    let written = write::write(&extraction.record, Format::Json, Provenance::Left);
    print!("{}", String::from_utf8_lossy(&written.bytes));
    Ok(())
}

/// Every PDF of a folder; one that cannot be read leaves nothing, and is told.
fn read_all(from: &Path, to: &Path, registry: &Registry, choice: Choice<'_>) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "pdf") {
            continue;
        }
        let bytes: std::sync::Arc<[u8]> = std::fs::read(&path)?.into();
        let read = ode_pdf::read(bytes, &ode_pdf::Limits::default()).map_err(|e| e.to_string());
        match read.and_then(|document| extract(&document, registry, choice).map_err(|e| e.to_string())) {
            Ok(extraction) => {
                let written = write::write(&extraction.record, Format::Json, Provenance::Left);
                let name = path.file_stem().unwrap_or_default();
                std::fs::write(to.join(name).with_extension("json"), written.bytes)?;
            }
            Err(e) => eprintln!("{}: {e}", path.display()),
        }
    }
    Ok(())
}

fn print_rows(document: &ode_pdf::Document) {
    let sheet = Sheet::new(document);
    for (page, at, row) in sheet.rows() {
        let text = row.text.replace('\t', " ¦ ");
        println!("{}:{at:3} {:6.1} {:6.1} {text}", page + 1, row.bbox.x0, row.bbox.y0);
    }
}
