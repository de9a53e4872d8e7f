//! `ode maps`: maps for print, drawn here and now, without a server or a job.

use anyhow::{Context as _, bail};
use clap::{Args, Parser};
use ode_atlas::{Options, Rendered, Spec};
use ode_cli as output;
use std::io::{BufWriter, Read as _, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Draw maps for print
#[derive(Debug, Parser)]
pub(super) enum MapsCommand {
    /// Draw a map as a PNG for print
    #[command(after_long_help = RENDER_EXAMPLES)]
    Render(Render),
    /// Write the JSON Schema of map specifications
    Schema,
}

/// Which map, and where it goes.
#[derive(Debug, Args)]
pub(super) struct Render {
    /// The map's specification as JSON; - reads standard input
    spec: PathBuf,
    /// The PNG to write; - writes standard output
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Draw a small picture to look at, this many pixels wide, instead of the page's own size
    #[arg(long, value_name = "WIDTH", value_parser = clap::value_parser!(u32).range(16..=4000))]
    preview: Option<u32>,
    /// How many threads draw; the picture is the same whatever their number [default: one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Tell what was drawn as JSON
    #[arg(long)]
    json: bool,
}

const RENDER_EXAMPLES: &str = "\
Examples:
  ode maps render map.json -o map.png                  a map at its full size, ready for print
  ode maps render map.json -o small.png --preview 800  the same map to look at
  echo '{\"schema\": 1}' | ode maps render - -o world.png

docs/maps.md describes specifications, `ode maps schema` writes their JSON Schema.";

pub(super) fn run(command: MapsCommand) -> anyhow::Result<ExitCode> {
    match command {
        MapsCommand::Render(args) => render(&args),
        MapsCommand::Schema => {
            output::json(&Spec::json_schema())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Longer specifications are refused before they are read to the end.
const SPEC_BYTES_MAX: u64 = 256 << 20;

fn render(args: &Render) -> anyhow::Result<ExitCode> {
    let spec = read(&args.spec)?;
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let options = Options { threads: threads.unwrap_or(NonZeroUsize::MIN), preview_width: args.preview };
    let rendered = if is_dash(&args.out) {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let rendered = ode_atlas::render(&spec, &options, &mut out)?;
        out.flush().context("Standard output cannot be written. Send it somewhere else")?;
        rendered
    } else {
        write(&spec, &options, &args.out)?
    };
    rendered.warnings.iter().for_each(|warning| output::tell(format!("note: {warning}")));
    if args.json && !is_dash(&args.out) {
        output::json(&rendered)?;
    } else {
        let Rendered { width, height, dpi, bytes, .. } = rendered;
        let megabytes = bytes as f64 / 1e6;
        output::tell(format!(
            "{}: {width} x {height} pixels at {dpi:.0} dpi, {megabytes:.1} MB",
            args.out.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read(path: &Path) -> anyhow::Result<Spec> {
    Spec::parse(&read_text(path)?).with_context(|| format!("{} cannot be drawn", path.display()))
}

/// The text of a specification.
pub(super) fn read_text(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut json = Vec::new();
    let count = if is_dash(path) {
        std::io::stdin()
            .take(SPEC_BYTES_MAX + 1)
            .read_to_end(&mut json)
            .context("Standard input cannot be read")?
    } else {
        let file = std::fs::File::open(path);
        let file = file.with_context(|| format!("{} cannot be read. Check the path", path.display()))?;
        file.take(SPEC_BYTES_MAX + 1)
            .read_to_end(&mut json)
            .with_context(|| format!("{} cannot be read", path.display()))?
    };
    if count as u64 > SPEC_BYTES_MAX {
        bail!("{} has more than {} MiB. Simplify its layers.", path.display(), SPEC_BYTES_MAX >> 20);
    }
    Ok(json)
}

/// Draws into a file beside the one that is wanted, which then takes its place: nobody finds half a picture.
fn write(spec: &Spec, options: &Options, path: &Path) -> anyhow::Result<Rendered> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unwritable = || format!("{} cannot be written. Check the folder", path.display());
    let file = tempfile::Builder::new()
        .prefix(".map")
        .suffix(".png")
        .tempfile_in(folder)
        .with_context(unwritable)?;
    let mut out = BufWriter::new(file);
    let rendered = ode_atlas::render(spec, options, &mut out)?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(unwritable)?;
    let file = file.persist(path).map_err(|error| error.error).with_context(unwritable)?;
    readable(&file).with_context(unwritable)?;
    Ok(rendered)
}

/// Temporary files belong to their maker alone; a picture is as readable as any other file.
#[cfg(unix)]
fn readable(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &std::fs::File) -> std::io::Result<()> {
    Ok(())
}
