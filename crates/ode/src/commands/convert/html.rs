//! The options of HTML, and its files: one, or a folder.

use super::{Convert, News, Target, Trouble};
use crate::output::WrongUse;
use anyhow::{Context as _, bail};
use clap::Args;
use ode_cli::files::{self, Existing, Place};
use ode_html::{Converted, Converter};
use ode_pdf_html::{ConversionConfig, Pages, ZOOMS};
use ode_xml::Finding;
use std::path::{Path, PathBuf};

/// The page to open of a result that is a folder.
const PAGE: &str = "index.html";
/// The list of its files.
const MANIFEST: &str = "manifest.json";

/// Options that only HTML has.
#[derive(Debug, Args)]
pub(super) struct HtmlOptions {
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

impl HtmlOptions {
    /// An option that was given, if any.
    fn given(&self) -> Option<&'static str> {
        let all = [
            ("--zoom", self.zoom.is_some()),
            ("--embed-fonts", self.embed_fonts.is_some()),
            ("--single-file", self.single_file),
            ("--pages", self.pages.is_some()),
        ];
        all.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    pub(super) fn config(&self) -> ConversionConfig {
        let default = ConversionConfig::default();
        ConversionConfig {
            zoom: self.zoom.unwrap_or(default.zoom),
            embed_fonts: self.embed_fonts.unwrap_or(default.embed_fonts),
            single_file: self.single_file,
            pages: self.pages.clone(),
            ..default
        }
    }

    /// Refuses what would silently have no effect.
    pub(super) fn check(&self, args: &Convert) -> anyhow::Result<()> {
        if args.to != Target::Html {
            return match self.given() {
                Some(option) => {
                    bail!(WrongUse(format!("{option} is about HTML. Say --to html, or leave {option} out.")))
                }
                None => Ok(()),
            };
        }
        let all = [
            ("--output", args.output.is_some()),
            ("--mapping", args.mapping.is_some()),
            ("--provenance", args.provenance.is_some()),
            ("--page-only", args.page_only),
        ];
        match all.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                bail!(WrongUse(format!("{option} is about values, but --to html reads none. Leave one out.")))
            }
            None => Ok(()),
        }
    }
}

/// Whether results are folders.
pub(super) fn is_foldered(args: &Convert) -> bool {
    args.to == Target::Html && !args.html.single_file
}

/// The page to open of a document's folder: in the folder that was named, or in one beside it or in it that is called
/// like the document.
pub(super) fn page(bare: &Path, out: Option<&Path>, is_single: bool) -> PathBuf {
    match out {
        Some(folder) if is_single => folder.join(PAGE),
        Some(folder) => folder.join(bare).join(PAGE),
        None => bare.join(PAGE),
    }
}

/// Converts one document and writes its files.
pub(super) async fn one(
    converter: &Converter,
    config: &ConversionConfig,
    document: Vec<u8>,
    (out, existing): (&Place, Existing),
) -> Result<News, Trouble> {
    let converted = converter.convert(config, document.into()).await;
    let converted = converted.map_err(|unconverted| Trouble::Refused(unconverted.failure))?;
    let warning = |message: &String| Finding {
        severity: "review".into(),
        code: "DOCUMENT_DAMAGED".into(),
        field: None,
        message: message.clone(),
    };
    let findings = converted.manifest.warnings.iter().map(warning).collect();
    write(&converted, config, out, existing).map_err(Trouble::Io)?;
    Ok(News { findings, is_placeless: false })
}

fn write(
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
