//! Which documents, and where each result goes: decided before anything is converted or written.

use super::Convert;
use crate::output::WrongUse;
use anyhow::{Context as _, anyhow, bail};
use ode_cli::files::{Place, is_folder};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

/// Documents below one folder; more than this is a whole disk, named by mistake.
const DOCUMENTS_MAX: usize = 100_000;
/// Folders within each other.
const DEPTH_MAX: usize = 64;

/// What is to be done.
pub(super) struct Plan {
    /// Documents to convert.
    pub(super) tasks: Vec<Task>,
    /// Documents that are left, and why: a result is there already.
    pub(super) left: Vec<(PathBuf, anyhow::Error)>,
    /// Folders that could not be looked into.
    pub(super) unread: Vec<anyhow::Error>,
    /// How many there are of all of these.
    pub(super) count: usize,
    folders: BTreeSet<PathBuf>,
}

/// One document and where its results go.
pub(super) struct Task {
    pub(super) file: PathBuf,
    pub(super) out: Place,
    pub(super) provenance: Option<Place>,
}

impl Task {
    /// Whether the document comes in by standard input.
    pub(super) fn is_stdin(&self) -> bool {
        is_stdin(&self.file)
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        [&self.out].into_iter().chain(&self.provenance)
    }
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// A document, and its path as seen from the folder that was named.
struct Document {
    file: PathBuf,
    name: PathBuf,
}

impl Plan {
    /// Refuses what could not come out well, such as two results in one place.
    pub(super) fn of(args: &Convert) -> anyhow::Result<Self> {
        let is_single = matches!(&args.files[..], [file] if is_stdin(file) || !file.is_dir());
        let (documents, unread) = documents(args)?;
        let tasks: Vec<Task> = documents
            .into_iter()
            .map(|document| task(args, document, is_single))
            .collect::<anyhow::Result<_>>()?;
        refuse_meeting(&tasks)?;
        refuse_files(args, is_single)?;
        let mut plan = Plan {
            count: tasks.len() + unread.len(),
            folders: folders(args, &tasks, is_single),
            tasks: Vec::new(),
            left: Vec::new(),
            unread,
        };
        for task in tasks {
            let free = task.places().try_for_each(|place| args.existing.check(place));
            match free {
                Ok(()) => plan.tasks.push(task),
                Err(why) => plan.left.push((task.file, why)),
            }
        }
        Ok(plan)
    }

    /// Makes the directories for the results.
    pub(super) fn make_folders(&self) -> anyhow::Result<()> {
        self.folders.iter().try_for_each(|folder| {
            fs::create_dir_all(folder)
                .with_context(|| format!("Cannot make the directory {}", folder.display()))
        })
    }
}

/// Everything that was named, with the PDFs of folders, and the folders that could not be looked into.
fn documents(args: &Convert) -> anyhow::Result<(Vec<Document>, Vec<anyhow::Error>)> {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for given in &args.files {
        if is_stdin(given) {
            found.push(Document { file: given.clone(), name: "stdin".into() });
        } else if given.is_dir() {
            let before = found.len() + unread.len();
            let depth_max = if args.recursive { DEPTH_MAX } else { 0 };
            look_into(given, Path::new(""), depth_max, &mut found, &mut unread)?;
            if before == found.len() + unread.len() {
                let deeper = if args.recursive {
                    ""
                } else {
                    " To look into the folders below it too, say --recursive."
                };
                bail!(WrongUse(format!("There are no PDFs in {}.{deeper}", given.display())));
            }
        } else {
            let name = given.file_name().map_or_else(|| given.clone(), PathBuf::from);
            found.push(Document { file: given.clone(), name });
        }
    }
    Ok((found, unread))
}

/// The PDFs of a folder in order of their names, first its own. Hidden ones are no documents of anybody's, and links
/// to folders may lead round in a circle.
fn look_into(
    folder: &Path,
    name: &Path,
    depth_left: usize,
    found: &mut Vec<Document>,
    unread: &mut Vec<anyhow::Error>,
) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<DirEntry>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            unread.push(anyhow!(error).context(format!("Cannot read {}", folder.display())));
            return Ok(());
        }
    };
    entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    entries.sort_by_key(DirEntry::file_name);
    let is_real_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let (below, here): (Vec<DirEntry>, Vec<DirEntry>) = entries.into_iter().partition(is_real_folder);
    for entry in here.iter().filter(|entry| is_pdf_name(&entry.path()) && !entry.path().is_dir()) {
        if found.len() == DOCUMENTS_MAX {
            bail!(WrongUse(format!(
                "There are more than {DOCUMENTS_MAX} PDFs. Convert the folders one by one."
            )));
        }
        found.push(Document { file: entry.path(), name: name.join(entry.file_name()) });
    }
    for entry in below.iter().filter(|_| depth_left > 0) {
        look_into(&entry.path(), &name.join(entry.file_name()), depth_left - 1, found, unread)?;
    }
    Ok(())
}

fn is_pdf_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pdf"))
}

/// A document's name with another ending: `a.pdf` is `a.xml` then, and `march.2026` is `march.2026.xml`.
fn renamed(name: &Path, ending: &str) -> PathBuf {
    let mut renamed = OsString::from(without_ending(name));
    renamed.push(".");
    renamed.push(ending);
    renamed.into()
}

/// A document's name without the ending of PDFs.
fn without_ending(name: &Path) -> PathBuf {
    if is_pdf_name(name) { name.with_extension("") } else { name.to_owned() }
}

fn task(args: &Convert, document: Document, is_single: bool) -> anyhow::Result<Task> {
    let Document { file, name } = document;
    let place = |given: &Path, ending: &str| match Place::of(given) {
        Place::File(given) if is_single && !is_folder(&given) => Ok(Place::File(given)),
        Place::File(given) => Ok(Place::File(given.join(renamed(&name, ending)))),
        Place::Stdout if is_single => Ok(Place::Stdout),
        Place::Stdout => bail!(WrongUse(
            "Several documents cannot go to standard output together. Name a directory with --out.".into()
        )),
    };
    let ending = args.to.ending();
    let out = match &args.out {
        out if args.is_foldered() => {
            if out.is_none() && is_stdin(&file)
                || out.as_deref().is_some_and(|out| Place::of(out) == Place::Stdout)
            {
                bail!(WrongUse(
                    "HTML is a folder of files. Name one with --out, or say --single-file.".into()
                ));
            }
            let beside = if out.is_some() { &name } else { &file };
            Place::File(ode_html::page(&without_ending(beside), out.as_deref(), is_single))
        }
        Some(given) => place(given, ending)?,
        None if is_single => Place::Stdout,
        None if is_stdin(&file) => {
            bail!(WrongUse(
                "Standard input has no place to put a result beside. Name a directory with --out.".into()
            ))
        }
        None => Place::File(renamed(&file, ending)),
    };
    let provenance = args.provenance.as_deref().map(|given| place(given, "places.json")).transpose()?;
    Ok(Task { file, out, provenance })
}

/// Several results do not go into a file.
fn refuse_files(args: &Convert, is_single: bool) -> anyhow::Result<()> {
    let given = [("--out", &args.out), ("--provenance", &args.provenance)];
    for (option, path) in given.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?))) {
        if path.is_file() && !is_single {
            let path = path.display();
            bail!(WrongUse(format!("{option} {path} is a file, and several documents go into a directory.")));
        }
    }
    Ok(())
}

fn refuse_meeting(tasks: &[Task]) -> anyhow::Result<()> {
    let mut places: HashMap<&Place, &Path> = HashMap::new();
    for task in tasks {
        for place in task.places() {
            if *place == Place::File(task.file.clone()) {
                bail!(WrongUse(format!("{place} would be overwritten. Choose another place with --out.")));
            }
            if let Some(other) = places.insert(place, &task.file) {
                let whose = match other == task.file {
                    true => String::new(),
                    false => format!(", from {} and {}", other.display(), task.file.display()),
                };
                bail!(WrongUse(format!(
                    "Two results would go to {place}{whose}. Convert these files one by one."
                )));
            }
        }
    }
    Ok(())
}

/// The directories that results go to, where they are meant as such.
fn folders(args: &Convert, tasks: &[Task], is_single: bool) -> BTreeSet<PathBuf> {
    let is_meant =
        |given: &Option<PathBuf>| given.as_ref().is_some_and(|given| !is_single || is_folder(given));
    let parent = |place: &Place| match place {
        Place::File(path) => {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned)
        }
        Place::Stdout => None,
    };
    // A folder for one document is made when there is something to put into it.
    let is_shared = is_meant(&args.out) && !args.is_foldered();
    let outs = tasks.iter().filter(|_| is_shared).filter_map(|task| parent(&task.out));
    let provenances = tasks.iter().filter(|_| is_meant(&args.provenance));
    outs.chain(provenances.filter_map(|task| task.provenance.as_ref().and_then(parent))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ending_of_a_pdf_is_replaced() {
        fn check(name: &str, expected: &str) {
            assert_eq!(renamed(Path::new(name), "xml"), Path::new(expected), "{name}");
        }
        check("a.pdf", "a.xml");
        check("A.b.PDF", "A.b.xml");
        check("march.2026", "march.2026.xml");
        check("in/scan", "in/scan.xml");
        check(".pdf", ".pdf.xml");
    }
}
