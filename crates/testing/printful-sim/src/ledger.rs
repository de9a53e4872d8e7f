//! What the simulator was made to do, line by line, for ever: nothing here is changed or taken back.

use crate::Error;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// An order was made.
    Create,
    /// An order was refused because another has its external id.
    Refuse,
    /// An order was confirmed.
    Confirm,
    /// The shop was charged for an order.
    Charge,
    /// An order was called off.
    Cancel,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerLine {
    pub at: Timestamp,
    pub entry: Entry,
    /// To which order.
    pub order: i64,
    /// The shop's own name for it.
    pub external_id: Option<String>,
    /// For which amount, in hundredths, where money is involved.
    pub cents: Option<i64>,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lines: Vec<LedgerLine>,
    file: Option<File>,
}

impl Ledger {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Error> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|reason| Error::Ledger { path: path.display().to_string(), reason })
        };
        Ok(Ledger { lines: Vec::new(), file: path.map(open).transpose()? })
    }

    pub(crate) fn write(&mut self, entry: Entry, order: i64, external_id: Option<&str>, cents: Option<i64>) {
        let external_id = external_id.map(str::to_owned);
        let line = LedgerLine { at: Timestamp::now(), entry, order, external_id, cents };
        if let Some(file) = &mut self.file {
            let text = serde_json::to_string(&line).expect("a line of plain values is JSON");
            if let Err(error) = writeln!(file, "{text}").and_then(|()| file.flush()) {
                tracing::error!(%error, "a line of the ledger was not written: {text}");
            }
        }
        self.lines.push(line);
    }

    pub(crate) fn lines(&self) -> &[LedgerLine] {
        &self.lines
    }
}
