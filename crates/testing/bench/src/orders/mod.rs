//! `ode bench orders`: thousands of orders with workers that are killed and a provider that misbehaves, and an audit of
//! the provider's ledger: one order and one charge for each job, whatever happened.
//!
//! The workers are processes of this very program, ended by SIGKILL at named points and at random moments, or put to
//! sleep past their leases. The simulator listens on a real socket and keeps the ledger. Each round asks for a few
//! orders, each with faults of its own, and kills workers under them; a seed makes the same plan again.

mod audit;
mod plan;
mod rounds;

use clap::{Args, ValueEnum};
use plan::{Plan, Plans};
use rounds::{Bench, Run};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How many, and what goes wrong.
#[derive(Debug, Args)]
pub(crate) struct Orders {
    /// How many orders
    #[arg(long, value_name = "N", default_value_t = 200)]
    runs: usize,
    /// Makes the same plan again
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Faults of each order, at most: all single ones come first, then all ordered pairs, then so many by chance
    #[arg(long, value_name = "N", default_value_t = 3)]
    faults: usize,
    /// Which ordered pairs of faults: as many as --runs reaches, or all of them and then --runs more by chance, or none,
    /// so that all are by chance
    #[arg(long, value_enum, default_value_t = Pairs::Some)]
    pairs: Pairs,
    /// Only this part of the rounds, such as 2/8, so that a long plan can be run piece by piece
    #[arg(long, value_name = "K/N", default_value = "1/1")]
    part: Part,
    /// Orders at a time
    #[arg(long, value_name = "N", default_value_t = 16)]
    at_once: usize,
    /// An empty PostgreSQL database [default: a temporary SQLite file]
    #[arg(long = "on", value_name = "URL", hide_env_values = true)]
    database: Option<String>,
    /// Half of the workers are of this program, such as the release before, so that two versions order at once
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// Let the provider take two orders under one external id: the audit must then find duplicates
    #[arg(long)]
    not_unique: bool,
    /// Let the provider charge for every confirmation: the audit must then find duplicates
    #[arg(long)]
    confirm_often: bool,
    /// Only these orders' plans are shown; nothing is run
    #[arg(long)]
    dry_run: bool,
}

/// How many ordered pairs are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pairs {
    /// As many as there are runs for.
    Some,
    /// Every one.
    All,
    /// None, and no single fault either.
    None,
}

impl Orders {
    fn plans(&self) -> Vec<(usize, Plan)> {
        let plans = Plans::new(self.seed, self.faults);
        let numbers = match self.pairs {
            Pairs::Some => 0..self.runs,
            Pairs::All => 0..plans.systematic() + self.runs,
            Pairs::None => plans.systematic()..plans.systematic() + self.runs,
        };
        numbers.map(|number| (number, plans.plan(number))).collect()
    }
}

/// One of so many parts, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    number: usize,
    of: usize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |(number, of): (&str, &str)| Some((number.parse().ok()?, of.parse().ok()?));
        match text.split_once('/').and_then(read) {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Part { number, of }),
            _ => Err("A part is written like 2/8, the second of eight.".into()),
        }
    }
}

/// What is late arrives before this.
const LATE_MAX: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: &Orders) -> anyhow::Result<ExitCode> {
    let plans = args.plans();
    let rounds = rounds_of(&plans, args.at_once.max(1));
    let rounds = rounds.into_iter().skip(args.part.number - 1).step_by(args.part.of);
    if args.dry_run {
        for (number, plan) in rounds.flatten() {
            println!("{number} {}", plan.name());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let directory = tempfile::tempdir()?;
    let mut bench = Bench::open(args, directory.path()).await?;
    let began = Instant::now();
    let mut runs: Vec<Run> = Vec::new();
    for round in rounds {
        runs.extend(bench.round(&round).await?);
    }
    tokio::time::sleep(LATE_MAX).await;
    let report = bench.audit(&runs).await?;
    let met = |count: usize| runs.iter().filter(|run| run.met >= count).count();
    println!(
        "{}",
        json!({
            "bench": "orders", "seed": args.seed, "part": args.part.number, "of": args.part.of, "runs": runs.len(), "met_one": met(1),
            "met_two_or_more": met(2), "duplicates": report.duplicates, "lost": report.lost,
            "illegal": report.illegal, "struck": bench.struck(), "kills": bench.kills,
            "seconds": began.elapsed().as_secs_f64(),
        })
    );
    let is_well = report.duplicates + report.lost + report.illegal == 0;
    if !is_well {
        eprintln!("seed {}: {}", args.seed, report.examples.join("; "));
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Orders that go together: those whose workers meet the same.
fn rounds_of(plans: &[(usize, Plan)], at_once: usize) -> Vec<Vec<&(usize, Plan)>> {
    let mut alike: BTreeMap<String, Vec<&(usize, Plan)>> = BTreeMap::new();
    for plan in plans {
        let troubles: Vec<String> = plan.1.of_workers().into_iter().map(plan::Trouble::name).collect();
        alike.entry(troubles.join(" + ")).or_default().push(plan);
    }
    alike
        .into_values()
        .flat_map(|plans| plans.chunks(at_once).map(<[_]>::to_vec).collect::<Vec<_>>())
        .collect()
}
