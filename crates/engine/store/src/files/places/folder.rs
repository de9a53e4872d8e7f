//! Places on local disk. A result is made in a folder of its own and then takes its place in one step.
//!
//! Callers may write below the roots, too. So a path is followed once, to see where it leads, and what is then fetched, put
//! there or taken away is reached through folders that were opened part by part from the root: a link that takes a folder's
//! place meanwhile is refused.

mod opened;

use super::address::Address;
use super::{
    Attempt, MANIFEST, MANIFEST_BYTES_MAX, Published, STAGED_MAX, STAGING, nothing_there, too_large,
    unreached,
};
use bytes::Bytes;
use ode_job::File;
use ode_job::{ErrorCode, Failure};
use opened::{Opened, name_of};
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a manifest is called while the files that it lists are taken away one by one: nobody takes them for a result any more,
/// and whoever goes on after an interruption still knows them.
const LEAVING: &str = ".ode-leaving.json";

/// The directory behind a root, as the file system finds it.
pub(super) fn open(address: &Address) -> Result<PathBuf, String> {
    let path = address.fixed_path();
    fs::canonicalize(&path).map_err(|error| format!("{path}: {error}. Make the directory first"))
}

/// Where results are put together. Whoever made a link of that name meant another folder, of which nothing is ours.
fn staging(root: &Path) -> io::Result<PathBuf> {
    let staging = root.join(STAGING);
    match fs::symlink_metadata(&staging) {
        Ok(facts) if !facts.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(_) | Err(_) => Ok(staging),
    }
}

/// Where an address leads, once every link on the way was followed. Parts that are not there yet lead nowhere else.
fn resolve(root: &Path, address: &Address) -> Result<PathBuf, Failure> {
    let wanted = PathBuf::from(format!("/{}", address.path()));
    let mut there = wanted.as_path();
    let found = loop {
        match fs::canonicalize(there) {
            Ok(found) => break found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreached(error)),
        }
        there = there.parent().ok_or_else(|| outside(address))?;
    };
    let rest = wanted.strip_prefix(there).unwrap_or(Path::new(""));
    let found = if rest.as_os_str().is_empty() { found } else { found.join(rest) };
    if found.starts_with(root) && found != root { Ok(found) } else { Err(outside(address)) }
}

fn outside(address: &Address) -> Failure {
    let message = format!("{address} leads out of the place that is open. Ask the operator which are");
    Failure::rejected(ErrorCode::Forbidden, message)
}

pub(super) fn fetch(root: &Path, address: &Address, bytes_max: u64) -> Result<Bytes, Failure> {
    let path = resolve(root, address)?;
    let opened = Opened::folder_of(root, &path).and_then(|folder| folder.file(name_of(&path)));
    let opened = opened.and_then(|file| Ok((file.metadata()?, file)));
    let (facts, file) = match opened {
        Ok((facts, file)) if facts.is_file() => (facts, file),
        Ok(_) => return Err(nothing_there(address)),
        Err(error) if opened::is_nothing(&error) => return Err(nothing_there(address)),
        Err(error) => return Err(unreached(error)),
    };
    if facts.len() > bytes_max {
        return Err(too_large(address, bytes_max));
    }
    let mut content = Vec::new();
    // One more than it has: a file that grows meanwhile is not the one that was meant.
    file.take(facts.len() + 1).read_to_end(&mut content).map_err(unreached)?;
    if content.len() as u64 != facts.len() {
        return Err(unreached(format!("{address} changed while it was read")));
    }
    Ok(content.into())
}

/// Shows a result if somebody still wants it by then.
pub(super) fn publish(
    root: &Path,
    address: &Address,
    published: &Published,
    files: &[File],
    is_wanted: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let place = resolve(root, address)?;
    let staged = staging(root).map_err(unreached)?.join(format!("{}-{}", published.job_id, published.fence));
    let made = stage(&staged, published, files).map_err(unreached).and_then(|()| {
        crate::crash::point("before-manifest");
        if !is_wanted() {
            return Err(unreached("the attempt was ended before its result was shown"));
        }
        let aside = clear(root, &place, published)?;
        let parent = Opened::make_folder_of(root, &place).map_err(unreached)?;
        // The one step in which everything becomes visible.
        parent.take_in(&staged, name_of(&place)).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => taken(),
            _ => unreached(error),
        })?;
        parent.sync().map_err(unreached)?;
        if let Some(aside) = aside {
            // What it held is the same job's; should it stay, the sweep finds it.
            let _ = fs::remove_dir_all(aside);
        }
        Ok(())
    });
    if made.is_err() {
        // As above.
        let _ = fs::remove_dir_all(&staged);
    }
    made
}

/// Writes everything, and makes it survive a crash.
fn stage(staged: &Path, published: &Published, files: &[File]) -> io::Result<()> {
    if staged.exists() {
        fs::remove_dir_all(staged)?;
    }
    fs::create_dir_all(staged)?;
    for file in files {
        let path = staged.join(&file.name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        write(&path, &file.content)?;
    }
    write(&staged.join(MANIFEST), &published.to_json())?;
    fs::File::open(staged)?.sync_all()
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes room where the result is to appear. An earlier attempt's is moved aside; anything else stays, and is told.
fn clear(root: &Path, place: &Path, published: &Published) -> Result<Option<PathBuf>, Failure> {
    // Nothing, or an empty folder, which the result may replace, or files of others, which it cannot.
    let Some(there) = result(&place.join(MANIFEST)) else { return Ok(None) };
    published.may_replace(&there)?;
    if holds_others(place, &there).map_err(unreached)? {
        return Err(taken());
    }
    let aside = root.join(STAGING).join(format!("{}-{}-old", published.job_id, there.fence));
    leave(root, place, &aside).map_err(unreached)?;
    Ok(Some(aside))
}

fn taken() -> Failure {
    let message = "The output prefix is a folder that holds other files. Give the job a folder of its own";
    Failure::rejected(ErrorCode::Conflict, message)
}

/// The one step in which a result is gone again.
fn leave(root: &Path, place: &Path, aside: &Path) -> io::Result<()> {
    Opened::folder_of(root, place)?.put_out(name_of(place), aside)
}

pub(super) fn withdraw(root: &Path, address: &Address, attempt: Attempt) -> Result<u64, Failure> {
    let (place, staging) = (resolve(root, address)?, staging(root).map_err(unreached)?);
    let its_own = |name| result(&place.join(name)).filter(|there| attempt.covers(there.attempt()));
    if let Some(there) = its_own(MANIFEST) {
        if holds_others(&place, &there).map_err(unreached)? {
            let folder = Opened::folder(root, &place);
            folder.and_then(|folder| folder.rename(MANIFEST, LEAVING)).map_err(unreached)?;
        } else {
            let aside = staging.join(format!("{}-gone", attempt.job));
            fs::create_dir_all(&staging).map_err(unreached)?;
            leave(root, &place, &aside).map_err(unreached)?;
        }
    }
    if let Some(leaving) = its_own(LEAVING) {
        remove_listed(root, &place, &leaving).map_err(unreached)?;
    }
    let mut removed = 0;
    for entry in fs::read_dir(staging).into_iter().flatten().flatten() {
        if is_by(&entry.file_name().to_string_lossy(), attempt) {
            fs::remove_dir_all(entry.path()).map_err(unreached)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The result that a manifest tells of. What is not a plain file may be a pipe, which nobody may ever write to.
fn result(manifest: &Path) -> Option<Published> {
    let facts = fs::symlink_metadata(manifest).ok()?;
    let is_ours = facts.is_file() && facts.len() <= MANIFEST_BYTES_MAX;
    let text = is_ours.then(|| fs::read(manifest))?.ok()?;
    Published::read(&text)
}

/// Whether somebody put files beside those of a result, such as another job whose prefix lies below this one.
fn holds_others(place: &Path, result: &Published) -> io::Result<bool> {
    let listed: HashSet<PathBuf> = result.files.iter().map(|file| place.join(&file.path)).collect();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() {
                folders.push(path);
            } else if !listed.contains(&path) && path != place.join(MANIFEST) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Removes the files of a result, what lists them last, and leaves those of others.
fn remove_listed(root: &Path, place: &Path, result: &Published) -> io::Result<()> {
    for name in result.files.iter().map(|file| file.path.as_str()).chain([LEAVING]) {
        let path = place.join(name);
        remove_file(root, &path)?;
        let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(place));
        let remove = |folder: &Path| Opened::folder_of(root, folder)?.remove_folder(name_of(folder));
        // One that holds something else stays.
        let _ = folders.map(remove).find(Result::is_err);
    }
    Ok(())
}

/// Removes a file if its folder is where it seems to be, and no link leads elsewhere on the way.
fn remove_file(root: &Path, path: &Path) -> io::Result<()> {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    match Opened::folder_of(root, path).and_then(|folder| folder.remove_file(name_of(path))) {
        // It is gone, or somebody has put something else there.
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | IsADirectory) => Ok(()),
        removed => removed,
    }
}

/// Whether a folder with this name was made for this attempt or one before it.
fn is_by(name: &str, attempt: Attempt) -> bool {
    let rest = name.strip_prefix(&attempt.job.to_string()).and_then(|rest| rest.strip_prefix('-'));
    let fence = rest.map(|rest| rest.split('-').next().unwrap_or_default().parse::<i64>());
    // One without a fence is on its way out already.
    fence.is_some_and(|fence| fence.is_ok_and(|fence| fence <= attempt.fence) || rest == Some("gone"))
}

/// Removes what was left there long ago; answers how many folders.
pub(super) fn sweep(root: &Path) -> u64 {
    let before = SystemTime::now() - STAGED_MAX;
    let entries = staging(root).and_then(fs::read_dir).into_iter().flatten().flatten();
    let is_old = |entry: &fs::DirEntry| {
        entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|written| written < before)
    };
    let old = entries.filter(is_old);
    old.filter(|entry| fs::remove_dir_all(entry.path()).is_ok()).count() as u64
}

#[cfg(test)]
mod tests;
