//! Runs conversions, each in a child of its own.

use super::conversion::PEAK_MEMORY;
use bytes::Bytes;
use ode_child::failure::{broken, finished, this_program, too_large};
use ode_child::{Input, Limits, Report, Sandbox, Spec, Supervisor, Work};
use ode_job::{ErrorCode, Failure};
use ode_pdf_html::{ConversionConfig, Manifest};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// What a conversion may reserve: pictures are unpacked whole, one at a time.
const ADDRESS_SPACE_BYTES: u64 = 1 << 30;

/// How conversions run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Conversions at a time; further ones wait.
    pub at_once: usize,
    /// How long one may wait for its turn before it is told that we are busy.
    pub patience: Duration,
    /// Whether the child locks itself in. Off only to look for a fault.
    pub sandbox: Sandbox,
    /// What one conversion may use.
    pub limits: Limits,
}

impl Default for Options {
    /// As many as there are processors, ten seconds' patience, locked in where the system can.
    fn default() -> Self {
        Options {
            at_once: std::thread::available_parallelism().map_or(1, usize::from),
            patience: Duration::from_secs(10),
            sandbox: Sandbox::BestEffort,
            limits: Limits { address_space_bytes: Some(ADDRESS_SPACE_BYTES), ..Limits::default() },
        }
    }
}

/// A document's files, in the order of the manifest.
#[derive(Debug, Clone)]
pub struct Converted {
    /// What they are.
    pub manifest: Manifest,
    /// Their bytes.
    pub files: Vec<Vec<u8>>,
    /// What it cost.
    pub cost: Cost,
}

/// What a conversion cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Processor time of the child.
    pub cpu: Duration,
    /// The most memory the child used; nothing where the kernel does not say.
    pub peak_memory_bytes: Option<u64>,
}

/// A document that was not converted.
#[derive(Debug, Clone)]
pub struct Unconverted {
    /// Why.
    pub failure: Failure,
    /// What trying cost, if it came to that.
    pub cost: Option<Cost>,
}

impl From<Failure> for Unconverted {
    fn from(failure: Failure) -> Self {
        Unconverted { failure, cost: None }
    }
}

/// Converts documents. Cheap to clone.
#[derive(Clone)]
pub struct Converter {
    supervisor: Supervisor,
    spec: Arc<Spec>,
    turns: Arc<Semaphore>,
    patience: Duration,
}

impl std::fmt::Debug for Converter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Converter {
    /// Gets ready. The child is this very program, which must answer to `child html` by calling [`super::serve`].
    pub fn new(options: Options) -> Result<Self, ode_child::Error> {
        let program = this_program(["child", "html"])?;
        let spec = Spec { sandbox: options.sandbox, limits: options.limits, ..Spec::own(program) };
        Ok(Converter {
            supervisor: Supervisor::new()?,
            spec: Arc::new(spec),
            turns: Arc::new(Semaphore::new(options.at_once.max(1))),
            patience: options.patience,
        })
    }

    /// The largest document it takes, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.spec.limits.input_bytes
    }

    /// Converts one document. Ends early, and ends the child, when the future is dropped.
    pub async fn convert(
        &self,
        config: &ConversionConfig,
        document: Bytes,
    ) -> Result<Converted, Unconverted> {
        let size = document.len() as u64;
        if size > self.bytes_max() {
            return Err(too_large(size, self.bytes_max()).into());
        }
        let turn = tokio::time::timeout(self.patience, self.turns.acquire()).await;
        let _turn = match turn {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) | Err(_) => {
                return Err(Failure::retryable(ErrorCode::Busy, ErrorCode::Busy.sentence()).into());
            }
        };
        let work = Work::new(config).map_err(broken)?.with_input(Input::Bytes(document));
        let ran = self.supervisor.run(&self.spec, work, |_| (), std::future::pending()).await;
        let report = ran.map_err(broken)?;
        let cost = cost(&report);
        converted(&report, cost).map_err(|failure| Unconverted { failure, cost: Some(cost) })
    }
}

fn converted(report: &Report, cost: Cost) -> Result<Converted, Failure> {
    let manifest: Manifest = serde_json::from_str(finished(report)?.get()).map_err(broken)?;
    let file = |entry: &ode_pdf_html::Entry| {
        file(report, &entry.path).ok_or_else(|| broken("the child left out a file"))?.map_err(broken)
    };
    let files = manifest.assets.iter().map(file).collect::<Result<_, _>>()?;
    Ok(Converted { manifest, files, cost })
}

fn cost(report: &Report) -> Cost {
    let peak = file(report, PEAK_MEMORY).and_then(Result::ok).and_then(|text| String::from_utf8(text).ok());
    Cost { cpu: report.usage.cpu, peak_memory_bytes: peak.and_then(|digits| digits.parse().ok()) }
}

fn file(report: &Report, name: &str) -> Option<std::io::Result<Vec<u8>>> {
    let found = report.artifacts.iter().find(|artifact| artifact.name == name)?;
    Some(report.read(found))
}
