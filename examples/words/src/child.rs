//! Documents are read in a child, which is this very program, locked in: whatever is wrong with one takes nothing else along.

use crate::count::Count;
use bytes::Bytes;
use ode_child::child::{Reporter, failed};
use ode_child::{Pool, PoolOptions, Program, Sandbox, Subject};
use ode_job::{ErrorCode, Failure};
use ode_pdf::{Limits, read_here};
use std::process::ExitCode;

/// Runs as the child.
pub(crate) fn serve() -> ExitCode {
    ode_child::child::serve(|| Ok(()), |(), (): (), reporter| count(reporter))
}

fn count(reporter: &mut Reporter) -> Result<Count, ode_child::Failure> {
    let bytes = reporter.input().map_err(|error| failed(ErrorCode::IoError, error))?;
    let document = read_here(bytes, &Limits::default(), &[])
        .map_err(|refusal| failed(refusal.code().parse().unwrap_or(ErrorCode::Unreadable), refusal))?;
    Ok(Count::of(document.pages.len(), &document.to_text()))
}

/// Counts the words of documents, each in a child of its own.
#[derive(Debug, Clone)]
pub(crate) struct Counter(Pool);

impl Counter {
    pub(crate) fn new(at_once: usize, sandbox: Sandbox) -> Result<Self, ode_child::Error> {
        let options = PoolOptions { at_once, sandbox, ..PoolOptions::default() };
        Ok(Counter(Pool::new(options, Program::this_binary(["child", "words"])?, Subject::PDF)?))
    }

    pub(crate) async fn count(&self, document: Bytes) -> Result<Count, Failure> {
        self.0.turn(&document).await?.run(&(), document, |_| ()).await?.answer()
    }
}
