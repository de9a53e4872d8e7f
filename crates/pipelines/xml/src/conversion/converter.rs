//! Runs conversions, each in a child of its own.

use super::ask::{Answer, Ask, Converted, ReadPage, Scans, Task, Unread, Work};
use super::ocr::{Ocr, OcrOptions};
use super::study::Study;
use crate::child::{DOCUMENT, PROVENANCE};
use bytes::Bytes;
use ode_child::{Limits, Pool, PoolOptions, Program, Run, Subject, Turn, unexpected};
use ode_job::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::time::Instant;

/// How conversions run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Folder with mappings beside those that ship.
    pub mappings: Option<PathBuf>,
    /// Whether draft and canary versions of a mapping run beside it, so that their differences can be counted.
    pub shadow: bool,
    /// How many run at a time, and how.
    pub pool: PoolOptions,
    /// How scans are read.
    pub ocr: OcrOptions,
}

/// Converts documents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Converter {
    pool: Pool,
    shadow: bool,
    ocr: Arc<Ocr>,
}

impl Converter {
    /// Gets ready. The child is this very program, which must answer to `child convert [--mappings DIR] [--shadow]` as the
    /// pipeline's child, and to `child keep` by calling [`ode_child::keeper::serve`].
    pub fn new(options: Options) -> Result<Self, ode_child::Error> {
        let program = program(options.mappings.clone(), options.shadow)?;
        Self::with_program(options, program)
    }

    /// The same with another program as the child.
    pub(crate) fn with_program(options: Options, program: Program) -> Result<Self, ode_child::Error> {
        let limits = Limits { payload_bytes: PAYLOAD_BYTES_MAX, ..options.pool.limits };
        let pool = Pool::new(PoolOptions { limits, ..options.pool }, program, Subject::PDF)?;
        let keeper = Program::this_binary(["child", "keep"])?;
        let ocr = Arc::new(Ocr::new(options.ocr, pool.supervisor().clone(), keeper));
        Ok(Converter { pool, shadow: options.shadow, ocr })
    }

    /// The same with the mappings of another folder. The turns are shared: both together convert no more at a time.
    pub fn with_mappings(&self, folder: PathBuf) -> Result<Self, ode_child::Error> {
        let pool = self.pool.with_program(program(Some(folder), self.shadow)?);
        Ok(Converter { pool, ..self.clone() })
    }

    /// The largest document it takes, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.pool.input_bytes_max()
    }

    /// Converts one document. Ends early, and ends the child, when the future is dropped.
    pub async fn convert(&self, ask: &Ask, document: Bytes) -> Result<Converted, Failure> {
        let (answer, run) = self.run(Work::Convert(ask.clone()), document).await?;
        let Answer::Converted(summary) = answer else {
            return Err(unexpected("the child converted nothing"));
        };
        let (document, provenance) = (run.artifact(DOCUMENT)?, run.optional_artifact(PROVENANCE)?);
        Ok(Converted { document, provenance, summary })
    }

    /// Answers a question about one document, in the type that the question names.
    pub async fn study<T: serde::de::DeserializeOwned>(
        &self,
        study: Study,
        document: Bytes,
    ) -> Result<T, Failure> {
        let (_, run) = self.run(Work::Study(study), document).await?;
        serde_json::from_slice(&run.artifact(DOCUMENT)?).map_err(unexpected)
    }

    async fn run(&self, work: Work, document: Bytes) -> Result<(Answer, Run), Failure> {
        let mut turn = self.pool.turn(&document).await?;
        let scans = match self.ocr.is_ready() {
            Ok(()) => Scans::Tell,
            Err(unread) => Scans::Go { read: Vec::new(), unread },
        };
        let (answer, run) = child(&mut turn, &document, &Task::Do { work: work.clone(), scans }).await?;
        let Answer::Scans(pages) = answer else { return Ok((answer, run)) };
        let scans = self.read_scans(&pages, &mut turn, &document).await;
        child(&mut turn, &document, &Task::Do { work, scans }).await
    }

    /// Reads scans one after another, as long as there is time. Each is drawn by a child of its own, so that only one
    /// is in memory, and one that fails takes none with it.
    async fn read_scans(&self, pages: &[u32], turn: &mut Turn<'_>, document: &Bytes) -> Scans {
        let ends = Instant::now() + self.ocr.time_max();
        let (mut read, mut unread, mut room) = (Vec::new(), Unread::Failed, READ_BYTES_MAX);
        for page in pages {
            match tokio::time::timeout_at(ends, self.read_scan(*page, turn, document)).await {
                Ok(Ok(hocr)) if hocr.len() <= room => {
                    room -= hocr.len();
                    read.push(ReadPage { page: *page, hocr });
                }
                Ok(Ok(_)) => {}
                Ok(Err(reason)) => unread = reason,
                Err(_) => {
                    unread = Unread::NoTime;
                    break;
                }
            }
        }
        Scans::Go { read, unread }
    }

    async fn read_scan(&self, page: u32, turn: &mut Turn<'_>, document: &Bytes) -> Result<String, Unread> {
        let drawn = child(turn, document, &Task::Draw { page }).await;
        let picture = drawn.and_then(|(_, run)| run.artifact(DOCUMENT)).map_err(|_| Unread::Failed)?;
        let directory = tokio::task::spawn_blocking(move || -> std::io::Result<TempDir> {
            let directory = tempfile::Builder::new().prefix("ode-ocr-").tempdir()?;
            std::fs::write(directory.path().join("page.pgm"), picture)?;
            Ok(directory)
        });
        let directory = directory.await.ok().and_then(Result::ok).ok_or(Unread::Failed)?;
        self.ocr.read(directory.path()).await
    }
}

/// What OCR may say about one document.
const READ_BYTES_MAX: usize = 12 << 20;
/// The task with all of that in it, written as JSON.
const PAYLOAD_BYTES_MAX: u64 = 32 << 20;

/// This very program, as the child that converts.
fn program(mappings: Option<PathBuf>, shadow: bool) -> Result<Program, ode_child::Error> {
    let mut arguments: Vec<OsString> = vec!["child".into(), "convert".into()];
    if let Some(folder) = mappings {
        // The child starts in a directory of its own.
        let folder = std::path::absolute(folder)
            .map_err(|error| ode_child::Error::Start { program: "ode".into(), error })?;
        arguments.extend(["--mappings".into(), folder.into_os_string()]);
    }
    arguments.extend(shadow.then(|| "--shadow".into()));
    Program::this_binary(arguments)
}

async fn child(turn: &mut Turn<'_>, document: &Bytes, task: &Task) -> Result<(Answer, Run), Failure> {
    let run = turn.run(task, document.clone(), |_| ()).await?;
    Ok((run.answer()?, run))
}
