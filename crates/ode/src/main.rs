//! `ode`: one binary for everything. This file reads like its table of contents.

mod commands;
mod config;
mod output;
mod telemetry;

use clap::{CommandFactory as _, Parser, Subcommand};
use config::Settings;
use std::process::ExitCode;

/// Turns documents into data, pages, prints and web actions, and never loses or repeats one.
#[derive(Debug, Parser)]
#[command(name = "ode", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything in one process: web and worker, on SQLite and local disk unless told otherwise
    Serve(commands::serve::Serve),
    /// Run only the web side
    Web(commands::serve::Serve),
    /// Run only a worker
    Worker(commands::serve::Drain),
    /// Look at jobs, and act on them
    #[command(subcommand)]
    Jobs(commands::jobs::Jobs),
    /// List the workers and what they hold
    Workers(commands::workers::Workers),
    /// Bring the database's schema up to date, take it away, or show it
    #[command(subcommand)]
    Migrate(commands::migrate::Migrate),
    /// Check what ODE stands on: the database's durability, storage, Redis, disk space, the clock
    Doctor(commands::doctor::Doctor),
    /// Say what an error code means and what to do about it
    Explain(commands::explain::Explain),
    /// Measure this machine with ODE on it
    #[command(subcommand)]
    Bench(commands::bench::Bench),
    /// Write completions for a shell, to be sourced by it
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    output::restore_broken_pipe();
    let cli = Cli::parse();
    telemetry::start(&cli.settings);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => Err(anyhow::Error::new(error).context("The async runtime could not start")),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(Cli { settings, command }: Cli) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => commands::serve::serve(&settings, &args, commands::serve::Parts::ALL).await,
        Command::Web(args) => commands::serve::serve(&settings, &args, commands::serve::Parts::WEB).await,
        Command::Worker(args) => commands::serve::worker(&settings, &args).await,
        Command::Jobs(command) => commands::jobs::run(&settings, command).await,
        Command::Workers(args) => commands::workers::run(&settings, &args).await,
        Command::Migrate(command) => commands::migrate::run(&settings, command).await,
        Command::Doctor(args) => commands::doctor::run(&settings, &args).await,
        Command::Explain(args) => commands::explain::run(&args),
        Command::Bench(command) => commands::bench::run(command).await,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "ode", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        Cli::command().debug_assert();
    }
}
