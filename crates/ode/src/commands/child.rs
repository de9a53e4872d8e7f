//! `ode child`: what this program does as its own child. Not for calling by hand.

use clap::{Args, Parser};
use std::path::PathBuf;
use std::process::ExitCode;

/// The first argument of a child.
pub(crate) const CHILD: &str = "child";

/// Be this program's own child.
#[derive(Debug, Parser)]
#[command(name = CHILD)]
pub(crate) enum Child {
    /// Convert the one document that is handed over
    Convert(Convert),
    /// Convert the one document that is handed over into HTML
    Html,
    /// Check, freeze or draw the one map that is handed over
    Map,
    /// Keep the program that is named in the environment, and everything it starts
    Keep,
}

/// With what.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Folder with mappings beside those that ship
    #[arg(long)]
    mappings: Option<PathBuf>,
    /// Run draft and canary versions beside the one that is used
    #[arg(long)]
    shadow: bool,
}

/// Does the work. Runs on the main thread with no other beside it: the sandbox binds the thread that enters it.
pub(crate) fn run(command: Child) -> ExitCode {
    match command {
        Child::Html => ode_html::serve(),
        Child::Map => ode_print::serve(),
        Child::Keep => ode_child::keeper::serve(),
        Child::Convert(args) => {
            // Whoever starts a child has loaded the folder before.
            let options = ode_invoice::Options {
                folder: args.mappings,
                shadow: args.shadow,
                trusted: true,
                ..Default::default()
            };
            ode_xml::serve(options)
        }
    }
}
