//! A child for tests: the converter's own protocol and processes, and a conversion that does what the document says.

use super::ask::{Answer, Finding, Summary, Task, Work};
use super::converter::{Converter, Options};
use super::{Places, live::LiveConverter};
use crate::child::{DOCUMENT, PROVENANCE};
use ode_child::child::{Reporter, failed, serve};
use ode_child::{Limits, PoolOptions, Program};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The largest document that the stub takes.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 100_000;

/// A document for the stub. Anything else is converted, and nothing is found in it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Document {
    /// The conversion never ends.
    pub(crate) waits: bool,
    /// The conversion fails with this code.
    pub(crate) fails: Option<String>,
    /// Where the values are from; the mapping that was asked for unless said otherwise.
    pub(crate) source: Option<String>,
    /// What there is to look at.
    pub(crate) findings: Vec<Finding>,
}

impl Document {
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap()
    }
}

/// The converter with this test binary as its child, four at a time.
pub(crate) async fn converter(folder: Option<PathBuf>) -> LiveConverter {
    let limits = Limits { input_bytes: DOCUMENT_BYTES_MAX, ..Limits::default() };
    let pool = PoolOptions { at_once: 4, limits, ..PoolOptions::default() };
    let arguments = ["--exact", "conversion::stub::plays_the_child", "--nocapture", "--test-threads=1"];
    let program = Program::this_binary(arguments).unwrap();
    let converter = Converter::with_program(Options { pool, ..Options::default() }, program).unwrap();
    LiveConverter::with_converter(converter, folder).await.unwrap()
}

/// What this test binary does as a child. Otherwise, nothing.
#[test]
fn plays_the_child() {
    if std::env::var_os("ODE_CHILD_SETUP").is_none() {
        return;
    }
    // The test harness has begun a line.
    println!();
    let code = serve(|| Ok(()), |(), task, reporter| convert(task, reporter));
    std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
}

fn convert(task: Task, reporter: &mut Reporter) -> Result<Answer, ode_child::Failure> {
    let Task::Do { work: Work::Convert(ask), .. } = task else { return Ok(Answer::Given) };
    let bytes = reporter.input().unwrap();
    let document: Document = serde_json::from_slice(&bytes).unwrap_or_default();
    if let Some(code) = &document.fails {
        let failure = failed(code.parse().unwrap(), "secret words");
        return Err(ode_child::Failure { stack: Some("secret detail".into()), ..failure });
    }
    if document.waits {
        loop {
            std::thread::park();
        }
    }
    let (output, bytes) = (ask.output, bytes.len());
    let xml =
        format!("<asked output=\"{output}\" within=\"{}\" bytes=\"{bytes}\"/>", ask.places == Places::Within);
    reporter.artifact(DOCUMENT, xml.as_bytes()).unwrap();
    if ask.places == Places::Beside {
        reporter.artifact(PROVENANCE, b"{}").unwrap();
    }
    let source = document.source.or(ask.mapping).unwrap_or_else(|| "best_v1".into());
    Ok(Answer::Converted(Summary { source, pages: 3, findings: document.findings, shadows: Vec::new() }))
}
