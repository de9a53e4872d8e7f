//! Runs conversions, each in a child of its own.

use super::child::PEAK_MEMORY;
use bytes::Bytes;
use ode_child::{Limits, Pool, PoolOptions, Program, Run, Subject};
use ode_job::Failure;
use ode_pdf_html::{ConversionConfig, Entry, Manifest};
use std::time::Duration;

/// What a conversion may reserve: pictures are unpacked whole, one at a time.
const ADDRESS_SPACE_BYTES: u64 = 1 << 30;

/// How conversions run where nothing else is said.
pub fn pool_options() -> PoolOptions {
    let limits = Limits { address_space_bytes: Some(ADDRESS_SPACE_BYTES), ..Limits::default() };
    PoolOptions { limits, ..PoolOptions::default() }
}

/// A document's files, in the order of the manifest.
#[derive(Debug, Clone)]
pub struct Converted {
    pub manifest: Manifest,
    /// Their bytes.
    pub files: Vec<Vec<u8>>,
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
#[derive(Debug, Clone)]
pub struct Converter {
    pool: Pool,
}

impl Converter {
    /// Gets ready. The child is this very program, which must answer to `child html` by calling [`super::serve`].
    pub fn new(options: PoolOptions) -> Result<Self, ode_child::Error> {
        let program = Program::this_binary(["child", "html"])?;
        Ok(Converter { pool: Pool::new(options, program, Subject::PDF)? })
    }

    /// The largest document it takes, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.pool.input_bytes_max()
    }

    /// Converts one document. Ends early, and ends the child, when the future is dropped.
    pub async fn convert(
        &self,
        config: &ConversionConfig,
        document: Bytes,
    ) -> Result<Converted, Unconverted> {
        let mut turn = self.pool.turn(&document).await?;
        let run = turn.run(config, document, |_| ()).await?;
        let cost = cost(&run);
        converted(&run, cost).map_err(|failure| Unconverted { failure, cost: Some(cost) })
    }
}

fn converted(run: &Run, cost: Cost) -> Result<Converted, Failure> {
    let manifest: Manifest = run.answer()?;
    let file = |entry: &Entry| run.artifact(&entry.path);
    let files = manifest.assets.iter().map(file).collect::<Result<_, _>>()?;
    Ok(Converted { manifest, files, cost })
}

fn cost(run: &Run) -> Cost {
    let digits = run.artifact(PEAK_MEMORY).ok().and_then(|text| String::from_utf8(text).ok());
    let peak_memory_bytes = digits.and_then(|digits| digits.parse().ok());
    Cost { cpu: run.usage().cpu, peak_memory_bytes }
}
