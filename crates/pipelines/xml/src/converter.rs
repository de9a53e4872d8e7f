//! Runs conversions, each in a child of its own.

use super::ask::{Answer, Ask, Converted, ReadPage, Scans, Task, Unread, Work};
use super::conversion::{DOCUMENT, PROVENANCE};
use super::ocr::{Ocr, OcrOptions};
use super::study::Study;
use bytes::Bytes;
use ode_child::failure::{broken, finished, this_program, too_large};
use ode_child::{Input, Limits, Program, Report, Sandbox, Spec, Supervisor};
use ode_job::{ErrorCode, Failure};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How conversions run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder with mappings beside those that ship.
    pub mappings: Option<PathBuf>,
    /// Whether draft and canary versions of a mapping run beside it, so that their differences can be counted.
    pub shadow: bool,
    /// Conversions at a time; further ones wait.
    pub at_once: usize,
    /// How long one may wait for its turn before it is told that we are busy.
    pub patience: Duration,
    /// Whether the child locks itself in. Off only to look for a fault.
    pub sandbox: Sandbox,
    /// What one conversion may use.
    pub limits: Limits,
    /// How scans are read.
    pub ocr: OcrOptions,
}

impl Default for Options {
    /// As many as there are processors, ten seconds' patience, locked in where the system can.
    fn default() -> Self {
        Options {
            mappings: None,
            shadow: false,
            at_once: std::thread::available_parallelism().map_or(1, usize::from),
            patience: Duration::from_secs(10),
            sandbox: Sandbox::BestEffort,
            limits: Limits::default(),
            ocr: OcrOptions::default(),
        }
    }
}

/// Converts documents. Cheap to clone.
#[derive(Clone)]
pub struct Converter {
    supervisor: Supervisor,
    spec: Arc<Spec>,
    turns: Arc<Semaphore>,
    patience: Duration,
    shadow: bool,
    ocr: Arc<Ocr>,
}

impl std::fmt::Debug for Converter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Converter {
    /// Gets ready. The child is this very program, which must answer to `child convert [--mappings DIR] [--shadow]` by calling
    /// [`super::serve`], and to `child keep` by calling [`ode_child::keeper::serve`].
    pub fn new(options: Options) -> Result<Self, ode_child::Error> {
        let program = program(options.mappings, options.shadow)?;
        let limits = Limits { payload_bytes: PAYLOAD_BYTES_MAX, ..options.limits };
        let spec = Spec { sandbox: options.sandbox, limits, ..Spec::own(program) };
        let supervisor = Supervisor::new()?;
        Ok(Converter {
            ocr: Arc::new(Ocr::new(options.ocr, supervisor.clone(), this_program(["child", "keep"])?)),
            supervisor,
            spec: Arc::new(spec),
            turns: Arc::new(Semaphore::new(options.at_once.max(1))),
            patience: options.patience,
            shadow: options.shadow,
        })
    }

    /// The same with the mappings of another folder. The turns are shared: both together convert no more at a time.
    pub fn with_mappings(&self, folder: PathBuf) -> Result<Self, ode_child::Error> {
        let spec = Spec { program: program(Some(folder), self.shadow)?, ..(*self.spec).clone() };
        Ok(Converter { spec: Arc::new(spec), ..self.clone() })
    }

    /// The largest document it takes, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.spec.limits.input_bytes
    }

    /// Converts one document. Ends early, and ends the child, when the future is dropped.
    pub async fn convert(&self, ask: &Ask, document: Bytes) -> Result<Converted, Failure> {
        let (answer, report) = self.run(Work::Convert(ask.clone()), document).await?;
        let Answer::Converted(summary) = answer else { return Err(broken("the child converted nothing")) };
        Ok(Converted { document: made(&report)?, provenance: artifact(&report, PROVENANCE)?, summary })
    }

    /// Answers a question about one document, in the type that the question names.
    pub async fn study<T: serde::de::DeserializeOwned>(
        &self,
        study: Study,
        document: Bytes,
    ) -> Result<T, Failure> {
        let (_, report) = self.run(Work::Study(study), document).await?;
        serde_json::from_slice(&made(&report)?).map_err(broken)
    }

    async fn run(&self, work: Work, document: Bytes) -> Result<(Answer, Report), Failure> {
        let size = document.len() as u64;
        if size > self.bytes_max() {
            return Err(too_large(size, self.bytes_max()));
        }
        let turn = tokio::time::timeout(self.patience, self.turns.acquire()).await;
        let _turn = match turn {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) | Err(_) => {
                return Err(Failure::retryable(ErrorCode::Busy, ErrorCode::Busy.sentence()));
            }
        };
        let scans = match self.ocr.is_ready() {
            Ok(()) => Scans::Tell,
            Err(unread) => Scans::Go { read: Vec::new(), unread },
        };
        let (answer, report) = self.child(&Task::Do { work: work.clone(), scans }, &document).await?;
        let Answer::Scans(pages) = answer else { return Ok((answer, report)) };
        let scans = self.read_scans(&pages, &document).await;
        self.child(&Task::Do { work, scans }, &document).await
    }

    async fn child(&self, task: &Task, document: &Bytes) -> Result<(Answer, Report), Failure> {
        let work = ode_child::Work::new(task).map_err(broken)?.with_input(Input::Bytes(document.clone()));
        let ran = self.supervisor.run(&self.spec, work, |_| (), std::future::pending()).await;
        let report = ran.map_err(broken)?;
        let answer = serde_json::from_str(finished(&report)?.get()).map_err(broken)?;
        Ok((answer, report))
    }

    /// Reads scans one after another, as long as there is time. Each is drawn by a child of its own, so that only one
    /// is in memory, and one that fails takes none with it.
    async fn read_scans(&self, pages: &[u32], document: &Bytes) -> Scans {
        let ends = Instant::now() + self.ocr.time_max();
        let (mut read, mut unread, mut room) = (Vec::new(), Unread::Failed, READ_BYTES_MAX);
        for page in pages {
            match tokio::time::timeout_at(ends, self.read_scan(*page, document)).await {
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

    async fn read_scan(&self, page: u32, document: &Bytes) -> Result<String, Unread> {
        let drawn = self.child(&Task::Draw { page }, document).await;
        let picture = drawn.and_then(|(_, report)| made(&report)).map_err(|_| Unread::Failed)?;
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
    this_program(arguments)
}

/// What every finished run hands back.
fn made(report: &Report) -> Result<Vec<u8>, Failure> {
    artifact(report, DOCUMENT)?.ok_or_else(|| broken("the child gave no document"))
}

fn artifact(report: &Report, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let found = report.artifacts.iter().find(|artifact| artifact.name == name);
    found.map(|artifact| report.read(artifact).map_err(broken)).transpose()
}
