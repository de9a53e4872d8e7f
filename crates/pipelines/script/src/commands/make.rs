//! `ode scripts new`: a script that runs as it is, in the language one likes.

use crate::Folders;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use ode_cli::{self as output, WrongUse};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Which script to make.
#[derive(Debug, Args)]
pub(super) struct New {
    /// The type that jobs will ask for, such as send-menu
    name: String,
    /// What it is written in
    #[arg(long, value_enum, default_value = "node")]
    language: Language,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Language {
    Node,
    Python,
    Shell,
}

impl Language {
    /// The file, what runs it, and what is in it.
    fn template(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Node => ("run.mjs", "node", include_str!("templates/run.mjs")),
            Self::Python => ("run.py", "python3", include_str!("templates/run.py")),
            Self::Shell => ("run.sh", "sh", include_str!("templates/run.sh")),
        }
    }
}

pub(crate) fn run(folders: &Folders, args: &New) -> anyhow::Result<ExitCode> {
    let root = folders.scripts.clone().unwrap_or_else(|| PathBuf::from("scripts"));
    let folder = root.join(&args.name);
    let (file, program, text) = args.language.template();
    let manifest = include_str!("templates/script.toml");
    let manifest = manifest.replace("TYPE", &args.name).replace("PROGRAM", program).replace("FILE", file);
    // Refused before anything is written.
    if let Err(error) = crate::Manifest::read(&manifest) {
        bail!(WrongUse(format!("{} cannot be the name of a script: {}.", args.name, error.message)));
    }
    if folder.exists() {
        bail!(WrongUse(format!("{} is there already. Choose another name, or remove it.", folder.display())));
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (name, text) in [
        ("script.toml", manifest.as_str()),
        ("payload.json", include_str!("templates/payload.json")),
        ("result.json", include_str!("templates/result.json")),
        (file, text),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.join(file), executable)
        .context("The script cannot be made executable")?;
    let (name, root) = (&args.name, root.display());
    output::tell(format!(
        "Made {}. Try it with\n\n  ode scripts test {name} --scripts {root}",
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}
