//! `learn PDF EXPECTED.json NAME [PDF…]`: writes a mapping learned from one document to standard output. With
//! `--out DIR` it also reads the other documents with it and writes their flat JSON there.

use std::error::Error;
use std::path::Path;

use ode_invoice::learn::{Lesson, learn};
use ode_invoice::write::{Format, Provenance, write};
use ode_invoice::{Choice, Options, Registry, extract};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let out = match args.iter().position(|a| a == "--out") {
        Some(at) => Some(args.drain(at..at + 2).nth(1).ok_or("--out needs a folder")?),
        None => None,
    };
    let [pdf, expected, name, others @ ..] = args.as_slice() else {
        return Err("usage: learn PDF EXPECTED.json NAME [PDF…] [--out DIR]".into());
    };
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(expected)?)?;
    let document = read(pdf)?;
    let lesson = Lesson { document: &document, file: pdf, expected: &expected, name };
    let learned = learn(lesson, &Registry::shipped())?;
    println!("{}", learned.text);
    eprintln!(
        "own {:?}, generic {:?}, missed {:?}, cells {:?}",
        learned.own, learned.generic, learned.missed, learned.cells
    );
    if let Some(out) = out {
        let folder = Path::new(&out);
        let text = learned.text.replace("status = \"draft\"", "status = \"live\"");
        std::fs::write(folder.join("learned.toml"), text)?;
        let options = Options { folder: Some(folder.to_owned()), ..Options::default() };
        let registry = Registry::new(options).map_err(|e| format!("{e:?}"))?;
        for other in others {
            let extraction = extract(&read(other)?, &registry, Choice::Named(name))?;
            let written = write(&extraction.record, Format::Json, Provenance::Left);
            let stem = Path::new(other).file_stem().unwrap_or_default();
            std::fs::write(folder.join(stem).with_extension("json"), written.bytes)?;
        }
    }
    Ok(())
}

fn read(path: &str) -> Result<ode_pdf::Document, Box<dyn Error>> {
    let bytes: std::sync::Arc<[u8]> = std::fs::read(path)?.into();
    Ok(ode_pdf::read(bytes, &ode_pdf::Limits::default())?)
}
