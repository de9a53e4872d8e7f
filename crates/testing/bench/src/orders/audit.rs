//! The audit: the provider's ledger against what each job says of itself.

use super::rounds::{Bench, Run};
use ode_job::{JobId, JobRef};
use ode_printful_sim::Entry;
use std::collections::HashMap;

/// What the audit found.
#[derive(Default)]
pub(super) struct Report {
    pub(super) duplicates: usize,
    pub(super) lost: usize,
    pub(super) illegal: usize,
    pub(super) examples: Vec<String>,
}

/// Examples of what went wrong that are told.
const EXAMPLES_MAX: usize = 10;

impl Bench {
    /// Compares what the provider was made to do with what each job says.
    pub(super) async fn audit(&self, runs: &[Run]) -> anyhow::Result<Report> {
        let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
        for line in self.simulator.ledger() {
            let (creates, charges) = counts.entry(line.external_id.unwrap_or_default()).or_default();
            match line.entry {
                Entry::Create => *creates += 1,
                Entry::Charge => *charges += 1,
                Entry::Refuse | Entry::Confirm | Entry::Cancel => {}
            }
        }
        let mut report = Report::default();
        for run in runs {
            let (creates, charges) = counts.get(&run.job.0.simple().to_string()).copied().unwrap_or_default();
            let job = self.store.job(JobRef::Id(run.job)).await?;
            let is_legal = self.is_legal(run.job).await?;
            let is_duplicate = creates > 1 || charges > 1;
            let is_lost = job.state != ode_print::machine::ORDERED || creates == 0 || charges == 0;
            report.duplicates += usize::from(is_duplicate);
            report.lost += usize::from(is_lost);
            report.illegal += usize::from(!is_legal);
            if (is_duplicate || is_lost || !is_legal) && report.examples.len() < EXAMPLES_MAX {
                let (id, state, plan) = (run.job, job.state, &run.plan);
                let code = job.error_code.unwrap_or_default();
                report.examples.push(format!(
                    "job {id} ({plan}): {creates} orders, {charges} charges, {state} {code}, history legal: {is_legal}"
                ));
            }
        }
        Ok(report)
    }

    /// Whether every step of a job's history follows from the one before, as the machine allows.
    async fn is_legal(&self, job: JobId) -> anyhow::Result<bool> {
        let mut state = None;
        for event in self.store.events(job).await? {
            let is_legal = match (state, event.from_state) {
                (None, None) => true,
                (Some(before), Some(from)) => {
                    before == from && ode_print::machine::PRINT.next(from, event.event) == Ok(event.to_state)
                }
                _ => false,
            };
            if !is_legal {
                return Ok(false);
            }
            state = Some(event.to_state);
        }
        Ok(true)
    }
}
