//! `ode bench`: what this machine does with ODE on it, as one line of JSON for each measurement.

mod client;
mod extract;
mod html;
mod jobs;
mod maps;
mod orders;
mod scripts;
mod service;
mod web;

use clap::Parser;
use ode_pipeline::{Call, Command};
use std::process::ExitCode;

/// Measure this machine with ODE on it
#[derive(Debug, Parser)]
enum Bench {
    /// The job engine: enqueueing, draining, latency, backlog, fairness
    Jobs(jobs::Jobs),
    /// The upload service: uploads, polls, listeners, memory
    Web(web::Web),
    /// Reading PDFs and writing XML: processor time for each document, here and in a child
    Extract(extract::Extract),
    /// Converting PDFs to HTML: processor time for each page
    Html(html::Html),
    /// The html service: documents a second, against calling the converter directly
    Service(service::Service),
    /// Drawing a map for print: processor time, peak memory and bytes of a whole poster
    Maps(maps::Maps),
    /// Placing orders exactly once: workers killed, a provider that misbehaves, and an audit of its ledger
    Orders(orders::Orders),
    /// Signing in by a script: a process that waited with its browser open, against a new one
    Scripts(scripts::Scripts),
}

/// `ode bench`.
pub fn command() -> Command {
    Command::new("bench", "Upkeep", run).without_settings()
}

async fn run(_: Call, command: Bench) -> anyhow::Result<ExitCode> {
    match command {
        Bench::Jobs(args) => jobs::run(&args).await,
        Bench::Web(args) => web::run(&args).await,
        Bench::Extract(args) => extract::run(args).await,
        Bench::Html(args) => html::run(&args),
        Bench::Service(args) => service::run(&args).await,
        Bench::Maps(args) => maps::run(&args),
        Bench::Orders(args) => orders::run(&args).await,
        Bench::Scripts(args) => scripts::run(&args).await,
    }
}
