//! The browser that scripts are given: found by its usual names, and run in its own sandbox.

use crate::order::{Failed, code};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The headless shell comes first: it starts sooner and takes less memory.
const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// A browser, as scripts are told about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Browser {
    /// The file to run.
    pub executable: PathBuf,
    /// Whether it is to use its own sandbox.
    pub sandbox: bool,
}

/// Finds a browser, or says what to do.
pub fn find(named: Option<&Path>, allow_no_sandbox: bool) -> Result<Browser, Failed> {
    let found = match named {
        Some(path) => path.is_file().then(|| path.to_owned()),
        None => NAMES.iter().find_map(|name| program(name)),
    };
    let missing = "No browser was found on the worker. Install chromium-headless-shell or chromium there.";
    let executable = found.ok_or_else(|| refused(missing))?;
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !allow_no_sandbox {
        return Err(refused(
            "The browser cannot use its sandbox as root. Run the worker as another user, or allow it to go without \
             by --browser-no-sandbox.",
        ));
    }
    Ok(Browser { executable, sandbox: !is_root })
}

/// Where a program is: by its path, or by its name in PATH.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let is_there =
        |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file();
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_there);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(is_there)
}

fn refused(message: &str) -> Failed {
    let code = code::NOT_INSTALLED.to_owned();
    Failed { code, message: message.to_owned(), retryable: false, stack: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(program("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(program("/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(program("/etc/passwd"), None);
        assert_eq!(program("no-such-program-anywhere"), None);
    }

    #[test]
    fn a_browser_goes_without_its_sandbox_only_where_that_is_allowed() {
        let is_root = rustix::process::geteuid().is_root();
        let shell = Path::new("/bin/sh");
        assert_eq!(find(Some(shell), false).is_err(), is_root);
        assert_eq!(find(Some(shell), true).unwrap().sandbox, !is_root);
        assert!(find(Some(Path::new("/nowhere")), true).is_err());
    }
}
