//! Writes records as UBL and CII, for checks by tools that are not ours.
//!
//! `standard_xml OUT SOURCE…`, where each SOURCE is one of
//!
//! - a truth file, `NAME.truth.json`: fields, lines and vat with a `value` each;
//! - an embedded invoice, `NAME.xml`;
//! - `random:COUNT`: records of any terms with any values, sensible or not, the same ones every time.
//!
//! `OUT/NAME.ubl.xml` and `OUT/NAME.cii.xml` are written from each record, and what the rules found is printed.

#[path = "../tests/it/truth.rs"]
mod truth;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use jiff::civil::Date;
use ode_invoice::terms::{HEADER, TABLES, Term};
use ode_invoice::write::{Format, Provenance, write};
use ode_invoice::{Field, Record, Row, Table, Typed, Value, embedded, rules};
use rust_decimal::Decimal;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let out = arguments.next().ok_or("usage: standard_xml OUT SOURCE…")?;
    for source in arguments {
        if let Some(count) = source.strip_prefix("random:") {
            let mut chance = Chance(0x5EED);
            for index in 0..count.parse::<u32>()? {
                save(Path::new(&out), &format!("random-{index:05}"), &chance.record())?;
            }
            continue;
        }
        let name =
            Path::new(&source).file_name().and_then(|name| name.to_str()).ok_or("a file has a name")?;
        let bytes = fs::read(&source)?;
        let (name, record) = match name.strip_suffix(".truth.json") {
            Some(name) => (name, truth::from_truth(&serde_json::from_slice(&bytes)?)),
            None => match embedded::read(name, &bytes) {
                Ok(embedded) => (name.trim_end_matches(".xml"), embedded.record),
                Err(unreadable) => {
                    println!("{name}: {}", unreadable.finding(name).message);
                    continue;
                }
            },
        };
        for finding in rules::check(&record) {
            println!("{name}: {:?} {}: {}", finding.severity, finding.code, finding.message);
        }
        save(Path::new(&out), name, &record)?;
    }
    Ok(())
}

fn save(out: &Path, name: &str, record: &Record) -> std::io::Result<()> {
    for (format, suffix) in [(Format::Ubl, "ubl"), (Format::Cii, "cii")] {
        let written = write(record, format, Provenance::Left);
        fs::write(out.join(format!("{name}.{suffix}.xml")), written.bytes)?;
    }
    Ok(())
}

/// A small generator of numbers that look random (xorshift); a found failure comes back on every run.
struct Chance(u64);

impl Chance {
    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }

    fn record(&mut self) -> Record {
        let mut record =
            Record { kind: "invoice".to_owned(), source: "random".to_owned(), ..Record::default() };
        record.fields = self.row(HEADER);
        for table in TABLES {
            let rows: Vec<Row> = (0..self.below(4)).map(|_| self.row(table.columns)).collect();
            if !rows.is_empty() {
                record.tables.insert(table.name.to_owned(), Table { term: None, rows });
            }
        }
        record
    }

    fn row(&mut self, terms: &[Term]) -> Row {
        let share = self.below(5);
        let mut row = Row::new();
        for term in terms {
            if self.below(4) < share {
                let value = Value {
                    typed: self.typed(),
                    printed: String::new(),
                    place: None,
                    rule: String::new(),
                    confidence: 0.5,
                };
                row.insert(term.name.to_owned(), Field { term: None, value });
            }
        }
        row
    }

    /// Any value, whether or not it fits the term.
    fn typed(&mut self) -> Typed {
        const TEXTS: &[&str] = &[
            "",
            " ",
            "x",
            "1",
            "-5.5",
            "380",
            "381",
            "EUR",
            "IDR",
            "S",
            "O",
            "E",
            "AE",
            "DE",
            "GROUP",
            "kg",
            "Stück",
            "2026-02-29",
            "2026-02-28",
            "]]>",
            "<a b='c'>&amp;",
            "\u{0}\u{1f}\u{fffe}",
            "\u{202e}\u{5d0}",
            "💶\t\r\n",
            "1e999",
            "NaN",
            "79228162514264337593543950336",
            "true",
        ];
        let text = TEXTS[self.below(TEXTS.len())].to_owned();
        match self.below(8) {
            0 | 1 => Typed::Text(text),
            2 | 3 => Typed::Code(text),
            4 => Typed::Number(Decimal::MAX),
            5 => Typed::Number(Decimal::MIN),
            6 => Typed::Number(Decimal::new(i64::try_from(self.below(1_000_000)).unwrap_or(0) - 500_000, 3)),
            _ => Typed::Date([Date::MIN, Date::ZERO, Date::MAX, Date::constant(2026, 3, 5)][self.below(4)]),
        }
    }
}
