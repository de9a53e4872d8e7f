//! PDF to HTML. Bytes in, files out: it has never heard of a job.
//!
//! [`convert`] gives a page of HTML with its files: drawings as SVG, pictures, and text as text, in fonts rebuilt from
//! the document's own outlines. What it is drawn from is read twice: once by `ode-pdf`, which knows letters, words and
//! the order of reading, and once by an interpreter that knows shapes and colours; the two are joined glyph by glyph.

mod assets;
mod body;
mod book;
mod config;
mod controls;
mod document;
mod draw;
mod font;
mod frame;
mod limits;
mod page;
mod refusal;
mod snapshot;
mod text;

use std::sync::Arc;

pub use assets::{Asset, AssetKind, Entry};
pub use config::{BadPages, ConversionConfig, Format, Pages, ZOOMS};
pub use limits::Limits;
pub use refusal::Refusal;

/// Deep nesting in a hostile file is read by recursion; this much stack holds the deepest that the parser allows.
const STACK_BYTES: usize = 64 << 20;

/// What became of a document.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The files. The first is the page to open.
    pub assets: Vec<Asset>,
    /// Pages that were converted.
    pub pages: usize,
    /// Glyphs on them.
    pub glyphs: usize,
    /// Glyphs that are seen and whose letters the document does not tell.
    pub unknown_glyphs: usize,
    /// What is not as it should be, in plain sentences.
    pub warnings: Vec<String>,
}

/// What is said of a result beside its files.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Manifest {
    /// The version of this library.
    pub engine_version: String,
    /// Pages that were converted.
    pub pages: usize,
    /// The files. The first is the page to open.
    pub assets: Vec<Entry>,
    /// What is not as it should be, in plain sentences.
    pub warnings: Vec<String>,
}

impl Conversion {
    /// The list of files with their sizes and digests.
    pub fn manifest(&self) -> Manifest {
        Manifest {
            engine_version: env!("CARGO_PKG_VERSION").to_owned(),
            pages: self.pages,
            assets: self.assets.iter().map(Asset::entry).collect(),
            warnings: self.warnings.clone(),
        }
    }
}

/// Converts a document within `limits`.
///
/// It works on a thread of its own, so that deep nesting finds enough stack and a panic in a parser becomes a refusal.
pub fn convert(
    bytes: impl Into<Arc<[u8]>>,
    config: &ConversionConfig,
    limits: &Limits,
) -> Result<Conversion, Refusal> {
    let bytes: Arc<[u8]> = bytes.into();
    let failed = || Refusal::Unreadable(ode_pdf::Refusal::Failed);
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("html".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || convert_here(bytes, config, limits))
            .map_err(|_| failed())?
            .join()
            .unwrap_or_else(|_| Err(failed()))
    })
}

/// The same on the caller's own thread, which must have that much stack: for a process that may start no thread.
pub fn convert_here(
    bytes: impl Into<Arc<[u8]>>,
    config: &ConversionConfig,
    limits: &Limits,
) -> Result<Conversion, Refusal> {
    let bytes = bytes.into();
    // Nothing that the parser was about to change outlives the call, so nothing is seen half changed.
    let work = std::panic::AssertUnwindSafe(|| book::convert(bytes, config, limits));
    std::panic::catch_unwind(work).unwrap_or(Err(Refusal::Unreadable(ode_pdf::Refusal::Failed)))
}
