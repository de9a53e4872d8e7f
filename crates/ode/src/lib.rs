//! `ode`: one binary for everything. This file reads like its table of contents.
//!
//! [`run`] is the whole program over any pipelines, so that a pipeline in a crate of its own needs no change here to be tried.

mod commands;
mod help;
mod log_lines;
mod names;
mod telemetry;
mod wire;

use anyhow::Context as _;
use clap::builder::Resettable;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use commands::serve::Start;
use ode_cli::{self as output, Settings};
use ode_pipeline::{Call, Pipeline, Scope};
use std::ffi::OsString;
use std::process::ExitCode;

pub use wire::PIPELINES;

/// Turns documents into data, pages, prints and web actions, and never loses or repeats one.
#[derive(Debug, Parser)]
#[command(name = "ode", version, after_long_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything in one process: web, worker and gateway
    ///
    /// On SQLite and local disk, unless told otherwise; nothing has to be set up.
    Serve(commands::serve::Everything),
    /// Run only the web side
    Web(commands::serve::Serve),
    /// Run only a worker
    Worker(commands::serve::WorkerOnly),
    /// Convert PDFs to XML, JSON, text or HTML here and now
    #[command(after_long_help = commands::convert::EXAMPLES)]
    Convert(commands::convert::Convert),
    /// Run a Printful of one's own, to try orders with
    #[command(name = "printful-sim", after_long_help = commands::printful_sim::EXAMPLES)]
    PrintfulSim(commands::printful_sim::PrintfulSim),
    /// Run a restaurant's admin site of one's own, for scripts to work on
    #[command(name = "demo-site", after_long_help = commands::demo_site::EXAMPLES)]
    DemoSite(commands::demo_site::DemoSite),
    /// Look at jobs, and act on them
    #[command(subcommand, after_long_help = commands::jobs::EXAMPLES)]
    Jobs(commands::jobs::Jobs),
    /// Make, list and revoke API keys
    #[command(subcommand, after_long_help = commands::keys::EXAMPLES)]
    Keys(commands::keys::Keys),
    /// Tell others when jobs end, and see what became of that
    #[command(subcommand, after_long_help = commands::webhooks::EXAMPLES)]
    Webhooks(commands::webhooks::Webhooks),
    /// List the workers and what they hold
    Workers(commands::workers::Workers),
    /// Remove what was kept long enough; a worker does so once a day by itself
    #[command(after_long_help = commands::cleanup::EXAMPLES)]
    Cleanup(commands::cleanup::Cleanup),
    /// Bring the database's schema up to date, take it away, or show it
    #[command(subcommand)]
    Migrate(commands::migrate::Migrate),
    /// Check what ODE stands on: database, storage, Redis, disk space, clock
    Doctor(commands::doctor::Doctor),
    /// Say what the code of an error or a finding means, and what to do about it
    #[command(after_long_help = commands::explain::EXAMPLES)]
    Explain(commands::explain::Explain),
    /// Write completions for a shell, to be sourced by it
    #[command(after_long_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

const EXAMPLES: &str = "\
Examples:
  ode convert invoice.pdf        an invoice as XML, here and now
  ode mapping preview invoice.pdf --out page.html
                                 what was read, and from where on the page
  ode serve                      everything, on this machine, with nothing to set up
  ode maps render map.json -o map.png
                                 a map at full size, ready for print
  ode jobs list                  what it is doing
  ode doctor                     whether it stands on firm ground
  ode explain GW_5XX             what a code means, and what to do

  ode worker --database postgres://ode@db/ode --storage s3://ode-files
                                 one more worker beside others";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(ode completions bash)                                   bash, for now
  ode completions bash > ~/.local/share/bash-completion/completions/ode
  ode completions zsh > \"${fpath[1]}/_ode\"                        zsh
  ode completions fish > ~/.config/fish/completions/ode.fish       fish";

/// The first argument of a child.
const CHILD: &str = "child";

/// Runs the program with these pipelines.
pub fn run(pipelines: Vec<&'static dyn Pipeline>) -> ExitCode {
    // A child is started for every document: it does not wait until all commands are described.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == CHILD) {
        return run_child(&pipelines, arguments.collect());
    }
    wire::declare(pipelines).expect("the machines of the pipelines are sound, and no two have one name");
    let commands = wire::commands();
    let typed = whole_command(&commands).get_matches();
    start(typed, commands).unwrap_or_else(|error| {
        output::error(&error);
        output::exit_code(&error)
    })
}

/// `ode child NAME`, which is not for calling by hand.
fn run_child(pipelines: &[&dyn Pipeline], arguments: Vec<OsString>) -> ExitCode {
    let Some(name) = arguments.first() else { return ExitCode::from(2) };
    if name == "keep" {
        ode_child::keeper::serve();
    }
    let mut children = pipelines.iter().flat_map(|pipeline| pipeline.children());
    match children.find(|child| name == child.name) {
        Some(child) => (child.run)(arguments),
        None => {
            output::tell(format!("There is no child called {}.", name.display()));
            ExitCode::from(2)
        }
    }
}

/// The command line with the commands and the options of the pipelines.
fn whole_command(commands: &[ode_pipeline::Command]) -> clap::Command {
    // A group of options says what it is about, and clap takes that for the command's.
    let with_options = |scope: Scope, command: clap::Command| {
        let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
        let pipelines = wire::pipelines().iter();
        let command = pipelines.fold(command, |command, pipeline| pipeline.options(scope, command));
        command.about(Resettable::from(about)).long_about(Resettable::from(long))
    };
    let own = with_options(Scope::All, Cli::command());
    let scopes = [("serve", Scope::Serve), ("web", Scope::Web), ("worker", Scope::Worker)];
    let own = scopes.into_iter().fold(own, |command, (name, scope)| {
        command.mut_subcommand(name, |subcommand| with_options(scope, subcommand))
    });
    help::arranged(own, commands)
}

fn start(typed: ArgMatches, commands: Vec<ode_pipeline::Command>) -> anyhow::Result<ExitCode> {
    let settings = Settings::from_arg_matches(&typed).unwrap_or_else(|error| error.exit());
    let _flush = telemetry::start(&settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("The async runtime could not start")?;
    // On a thread of the runtime, like everything it waits for: no hop between threads at every answer.
    let outcome = runtime.block_on(async { tokio::spawn(run_command(settings, typed, commands)).await });
    // What still runs beside the command, such as looking up a host's address, is not waited for.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|crash| std::panic::resume_unwind(crash.into_panic()))
}

async fn run_command(
    settings: Settings,
    typed: ArgMatches,
    commands: Vec<ode_pipeline::Command>,
) -> anyhow::Result<ExitCode> {
    if let Some((name, typed)) = typed.subcommand()
        && let Some(command) = commands.iter().find(|command| command.clap.get_name() == name)
    {
        return command.run(Call { settings, typed: typed.clone() }).await;
    }
    let Cli { settings, command } = Cli::from_arg_matches(&typed).unwrap_or_else(|error| error.exit());
    let typed = typed.subcommand().map_or(&typed, |(_, typed)| typed);
    let start = |scope| Start { scope, settings: &settings, typed };
    match command {
        Command::Serve(args) => commands::serve::everything(start(Scope::Serve), &args).await,
        Command::Web(args) => commands::serve::web(start(Scope::Web), &args).await,
        Command::Worker(args) => commands::serve::worker(start(Scope::Worker), &args).await,
        Command::Convert(args) => commands::convert::run(args).await,
        Command::PrintfulSim(args) => commands::printful_sim::run(args).await,
        Command::DemoSite(args) => commands::demo_site::run(args).await,
        Command::Jobs(command) => commands::jobs::run(&settings, command).await,
        Command::Keys(command) => commands::keys::run(&settings, command).await,
        Command::Webhooks(command) => commands::webhooks::run(&settings, command).await,
        Command::Workers(args) => commands::workers::run(&settings, &args).await,
        Command::Cleanup(args) => commands::cleanup::run(&settings, &args).await,
        Command::Migrate(command) => commands::migrate::run(&settings, command).await,
        Command::Doctor(args) => commands::doctor::run(&settings, typed, &args).await,
        Command::Explain(args) => commands::explain::run(&args),
        Command::Completions { shell } => {
            // By way of memory: written to a closed pipe, it would panic.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut whole_command(&commands), "ode", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of the pipelines that ODE comes with.
    pub(super) fn brought() -> Vec<ode_pipeline::Command> {
        wire::declare(PIPELINES.to_vec()).unwrap();
        wire::commands()
    }

    #[test]
    fn the_command_tree_is_sound() {
        whole_command(&brought()).debug_assert();
    }

    #[test]
    fn options_of_pipelines_leave_a_command_its_own_words() {
        let (own, whole) = (Cli::command(), whole_command(&brought()));
        assert_eq!(own.get_about(), whole.get_about());
        for name in ["serve", "web", "worker"] {
            let about = |command: &clap::Command| command.find_subcommand(name).unwrap().get_about().cloned();
            assert_eq!(about(&own), about(&whole), "{name}");
        }
    }

    #[test]
    fn every_command_and_every_option_says_what_it_does() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path} has no help");
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{path}: {} has no help", arg.get_id());
            }
            command.get_subcommands().for_each(|command| check(command, &path));
        }
        check(&whole_command(&brought()), "");
    }
}
