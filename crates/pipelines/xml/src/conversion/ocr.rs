//! Reads pictures of pages with an installed tesseract, which runs as a child below a keeper.
//!
//! It never sees the document: it gets the dots of a page that a locked-in child has drawn, in a file of the simplest
//! kind, so that none of its many readers of pictures meets a byte from outside.

use super::ask::Unread;
use ode_child::{Grace, Limits, Notice, Outcome, Program, Source, Spec, Supervisor, Violation, Work};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::OnceCell;

/// How scans are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcrOptions {
    /// Whether they are, where tesseract is installed.
    pub is_on: bool,
    /// The languages to expect, as tesseract calls them and joined by `+`, such as `eng+ind`; chosen from those that are
    /// installed where none are named.
    pub languages: Option<String>,
    /// How long the scans of one document may take together. Pages past it stay unread, and a finding tells.
    pub time_max: Duration,
}

impl Default for OcrOptions {
    /// On, fifteen seconds: some ten pages, and no document may have more than twenty of processor time in all.
    fn default() -> Self {
        OcrOptions { is_on: true, languages: None, time_max: Duration::from_secs(15) }
    }
}

/// The program, as it is called everywhere.
const PROGRAM: &str = "tesseract";
/// A list of languages is there at once; a machine under load may take longer.
const LIST_TIME_MAX: Duration = Duration::from_secs(10);
/// Most languages at a time: each one more takes its time on every page.
const LANGUAGES_MAX: usize = 3;
/// Which languages come first where more are installed; others follow by name.
const LANGUAGES_FIRST: [&str; 6] = ["eng", "ind", "deu", "fra", "spa", "ita"];
/// Address space that it may have: its models and one page take a fifth of this.
const ADDRESS_BYTES_MAX: u64 = 1 << 30;
/// Memory in use, over all its processes.
const RESIDENT_BYTES_MAX: u64 = 384 << 20;
/// What it may write about one page. A page full of small print takes a sixth of it.
pub(crate) const HOCR_BYTES_MAX: u64 = 4 << 20;

/// A tesseract that may or may not be there.
#[derive(Debug)]
pub(crate) struct Ocr {
    options: OcrOptions,
    supervisor: Supervisor,
    keeper: Program,
    /// Filled by the first scan.
    languages: OnceCell<Languages>,
}

/// What it can read.
#[derive(Debug)]
struct Languages {
    /// As it wants to be told them.
    joined: String,
    /// Whether it can tell which way up a page is.
    has_orientation: bool,
}

impl Ocr {
    pub(crate) fn new(options: OcrOptions, supervisor: Supervisor, keeper: Program) -> Self {
        Ocr { options, supervisor, keeper, languages: OnceCell::new() }
    }

    /// Whether scans can be read, or why not. It is looked up anew each time: it may have been installed meanwhile.
    pub(crate) fn is_ready(&self) -> Result<(), Unread> {
        if !self.options.is_on {
            return Err(Unread::Off);
        }
        program().map(drop).ok_or(Unread::NotInstalled)
    }

    pub(crate) fn time_max(&self) -> Duration {
        self.options.time_max
    }

    /// Reads the picture `page.pgm` in this directory, and answers what tesseract wrote about it.
    pub(crate) async fn read(&self, directory: &Path) -> Result<String, Unread> {
        let languages = self.languages.get_or_try_init(|| self.look_for_languages()).await?;
        // With the model for it, it finds out which way up the page is; else it takes it as it lies.
        let layout = if languages.has_orientation { "1" } else { "3" };
        let arguments =
            ["page.pgm", "page", "--dpi", "300", "--psm", layout, "-l", &languages.joined, "hocr"];
        self.run(&arguments, directory, self.options.time_max, |_| ()).await?;
        let path = directory.join("page.hocr");
        let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
        read.ok().and_then(Result::ok).ok_or(Unread::Failed)
    }

    async fn look_for_languages(&self) -> Result<Languages, Unread> {
        let mut lines = Vec::new();
        let note = |notice| match notice {
            Notice::Log(line) if line.source == Source::Stdout => lines.push(line.text),
            _ => (),
        };
        self.run(&["--list-langs"], Path::new("/"), LIST_TIME_MAX, note).await?;
        choose(&lines, self.options.languages.as_deref()).ok_or(Unread::Languages)
    }

    async fn run(
        &self,
        arguments: &[&str],
        directory: &Path,
        time_max: Duration,
        notice: impl FnMut(Notice) + Send,
    ) -> Result<(), Unread> {
        let program = Program::new(program().ok_or(Unread::NotInstalled)?, arguments);
        let spec = Spec {
            environment: environment(),
            directory: directory.to_owned(),
            limits: limits(time_max),
            grace: Grace::NONE,
            ..Spec::kept(self.keeper.clone(), program)
        };
        let work = Work::new(&()).map_err(|_| Unread::Failed)?;
        let report = self.supervisor.run(&spec, work, notice, std::future::pending()).await;
        let report = report.map_err(|_| Unread::Failed)?;
        match report.outcome {
            // It has never heard of our protocol: that it ended well is its answer.
            Outcome::ProtocolViolation(Violation::NoResult) if report.status.success() => Ok(()),
            Outcome::TimedOut | Outcome::CpuExceeded => Err(Unread::NoTime),
            _ => Err(Unread::Failed),
        }
    }
}

/// Where tesseract is, if it is installed.
fn program() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())
}

fn environment() -> Vec<(OsString, OsString)> {
    // Its own threads cost more than they bring, and other documents are waiting for the processors.
    let mut environment: Vec<(OsString, OsString)> = vec![("OMP_THREAD_LIMIT".into(), "1".into())];
    // Where its models are, if not in the usual place.
    const MODELS: &str = "TESSDATA_PREFIX";
    environment.extend(std::env::var_os(MODELS).map(|folder| (MODELS.into(), folder)));
    environment
}

fn limits(time_max: Duration) -> Limits {
    Limits {
        wall_clock: time_max,
        cpu_seconds: Some(time_max.as_secs() + 1),
        address_space_bytes: Some(ADDRESS_BYTES_MAX),
        resident_bytes: Some(RESIDENT_BYTES_MAX),
        output_bytes: HOCR_BYTES_MAX,
        ..Limits::program()
    }
}

/// The languages to use of those that are listed; none if one that is wished for is missing, or if there are none.
fn choose(listed: &[String], wished: Option<&str>) -> Option<Languages> {
    let is_name = |name: &&str| !name.is_empty() && !name.contains(char::is_whitespace);
    let installed: Vec<&str> = listed.iter().map(String::as_str).filter(is_name).collect();
    let has_orientation = installed.contains(&"osd");
    let joined = match wished {
        Some(wished) => wished.split('+').all(|name| installed.contains(&name)).then(|| wished.to_owned())?,
        None => {
            // Neither of these two is a language.
            let mut languages: Vec<&str> =
                installed.into_iter().filter(|name| !["osd", "equ"].contains(name)).collect();
            let place = |name: &str| LANGUAGES_FIRST.iter().position(|first| *first == name);
            languages.sort_by_key(|name| (place(name).unwrap_or(LANGUAGES_FIRST.len()), *name));
            languages.truncate(LANGUAGES_MAX);
            languages.join("+")
        }
    };
    (!joined.is_empty()).then_some(Languages { joined, has_orientation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_those_that_are_installed_or_those_that_are_wished_for() {
        let listed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let joined = |names: &[&str], wished| choose(&listed(names), wished).map(|chosen| chosen.joined);
        let heading = "List of available languages in \"/usr/share\" (2):";
        assert_eq!(joined(&[heading, "eng", "osd"], None).as_deref(), Some("eng"));
        assert_eq!(joined(&["afr", "deu", "eng", "ind", "osd"], None).as_deref(), Some("eng+ind+deu"));
        assert_eq!(joined(&["nld", "osd"], None).as_deref(), Some("nld"));
        assert_eq!(joined(&["eng", "nld"], Some("nld+eng")).as_deref(), Some("nld+eng"));
        assert_eq!(joined(&["eng"], Some("nld")), None);
        assert_eq!(joined(&["osd"], None), None);
        assert!(choose(&listed(&["eng", "osd"]), None).is_some_and(|chosen| chosen.has_orientation));
    }
}
