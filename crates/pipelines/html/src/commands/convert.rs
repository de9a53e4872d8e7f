//! The html part of `ode convert`: its options, and its files: one, or a folder.

use crate::Converted;
use anyhow::Context as _;
use clap::Args;
use ode_cli::files::{self, Existing, Place};
use ode_pdf_html::{ConversionConfig, Pages, ZOOMS};
use std::path::{Path, PathBuf};

/// The page to open of a result that is a folder.
const PAGE: &str = "index.html";
/// The list of its files.
const MANIFEST: &str = "manifest.json";

/// Options that only HTML has.
#[derive(Debug, Args)]
#[group(skip)]
pub struct ConvertArgs {
    /// HTML: how large pages are shown at first, 1 being their real size [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = zoom)]
    zoom: Option<f64>,
    /// HTML: whether letters are set in fonts rebuilt from the document's, or drawn as shapes [default: true]
    #[arg(long, value_name = "BOOL")]
    embed_fonts: Option<bool>,
    /// HTML: one file that holds everything, instead of a folder
    #[arg(long)]
    single_file: bool,
    /// HTML: which pages, such as 3, 1-3 or 4- [default: all]
    #[arg(long, value_name = "RANGE")]
    pages: Option<Pages>,
}

fn zoom(text: &str) -> Result<f64, String> {
    let zoom = text.parse().ok().filter(|zoom| ZOOMS.contains(zoom));
    zoom.ok_or_else(|| format!("choose a number from {} to {}", ZOOMS.start(), ZOOMS.end()))
}

impl ConvertArgs {
    /// An option that was given, if any.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("--zoom", self.zoom.is_some()),
            ("--embed-fonts", self.embed_fonts.is_some()),
            ("--single-file", self.single_file),
            ("--pages", self.pages.is_some()),
        ];
        all.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// What they ask for.
    #[must_use]
    pub fn config(&self) -> ConversionConfig {
        let default = ConversionConfig::default();
        ConversionConfig {
            zoom: self.zoom.unwrap_or(default.zoom),
            embed_fonts: self.embed_fonts.unwrap_or(default.embed_fonts),
            single_file: self.single_file,
            pages: self.pages.clone(),
            ..default
        }
    }

    /// Whether results are folders.
    #[must_use]
    pub fn is_foldered(&self) -> bool {
        !self.single_file
    }
}

/// The page to open of a document's folder: in the folder that was named, or in one beside it or in it that is called
/// like the document.
#[must_use]
pub fn page(bare: &Path, out: Option<&Path>, is_single: bool) -> PathBuf {
    match out {
        Some(folder) if is_single => folder.join(PAGE),
        Some(folder) => folder.join(bare).join(PAGE),
        None => bare.join(PAGE),
    }
}

/// Writes the files of a result.
pub fn write(
    converted: &Converted,
    config: &ConversionConfig,
    out: &Place,
    existing: Existing,
) -> anyhow::Result<()> {
    let page = converted.files.first().context("The conversion gave no page")?;
    let folder = match out {
        Place::File(path) if !config.single_file => path.parent().unwrap_or(Path::new(".")),
        Place::File(_) | Place::Stdout => return files::write(out, page, existing),
    };
    // The page comes last: where it is, everything it needs is there too.
    let files = converted.manifest.assets.iter().zip(&converted.files).skip(1);
    for (entry, bytes) in files {
        let path = folder.join(&entry.path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .with_context(|| format!("Cannot make the directory {}", parent.display()))?;
        existing.put(&path, bytes)?;
    }
    let manifest = serde_json::to_vec_pretty(&converted.manifest)?;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("Cannot make the directory {}", folder.display()))?;
    existing.put(&folder.join(MANIFEST), &manifest)?;
    files::write(out, page, existing)
}
