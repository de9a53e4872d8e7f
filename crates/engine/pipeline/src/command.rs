//! Commands and children of pipelines.

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use ode_cli::Settings;
use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

/// A call of a command.
#[derive(Debug, Clone)]
pub struct Call {
    /// The settings of the program.
    pub settings: Settings,
    /// Everything that was typed, the pipeline's options for all commands included.
    pub typed: ArgMatches,
}

impl Call {
    /// The pipeline's options for all commands.
    pub fn options<T: FromArgMatches>(&self) -> anyhow::Result<T> {
        crate::read_options(&self.typed)
    }
}

type Run = dyn Fn(Call) -> BoxFuture<'static, anyhow::Result<ExitCode>> + Send + Sync;

/// A command of a pipeline.
pub struct Command {
    /// Its arguments and its help.
    pub clap: clap::Command,
    /// The heading of the program's help under which it is listed.
    pub heading: &'static str,
    /// Whether it works with an installation, so that the settings say something to it.
    pub has_settings: bool,
    run: Box<Run>,
}

impl Command {
    /// A command with the arguments and the help of `A`.
    pub fn new<A, F>(
        name: &'static str,
        heading: &'static str,
        run: impl Fn(Call, A) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: CommandFactory + FromArgMatches,
        F: Future<Output = anyhow::Result<ExitCode>> + Send + 'static,
    {
        let run = move |call: Call| match A::from_arg_matches(&call.typed) {
            Ok(args) => run(call, args).boxed(),
            Err(error) => error.exit(),
        };
        Command { clap: A::command().name(name), heading, has_settings: true, run: Box::new(run) }
    }

    /// The same command where it needs no installation.
    #[must_use]
    pub fn without_settings(self) -> Self {
        Command { has_settings: false, ..self }
    }

    pub async fn run(&self, call: Call) -> anyhow::Result<ExitCode> {
        (self.run)(call).await
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("name", &self.clap.get_name()).finish_non_exhaustive()
    }
}

/// Work that is done in a process of its own, which runs this very program as `ode child NAME`.
#[derive(Debug, Clone, Copy)]
pub struct Child {
    pub name: &'static str,
    /// Does the work, with the name and the arguments that follow it. Runs on the main thread with no other beside it:
    /// the sandbox binds the thread that enters it.
    pub run: fn(Vec<OsString>) -> ExitCode,
}
