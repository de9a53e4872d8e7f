//! What goes on at this moment, in one look: for those who watch an installation.

use crate::Store;
use crate::database::db::{Row, params};
use crate::database::health::Finding;
use crate::error::Error;
use jiff::Timestamp;
use ode_job::breaker::Standing;
use ode_job::{Lane, Pipeline, State, WorkerRecord};
use std::collections::BTreeMap;
use std::time::Duration;

/// Jobs that have not ended. As large as the work that is left, not as the history.
const LIVE: &str = "SELECT pipeline, state, count(*) AS jobs, {now} AS now,
        count(CASE WHEN worker IS NULL AND lane IS NOT NULL THEN 1 END) AS waiting,
        min(CASE WHEN worker IS NULL AND lane IS NOT NULL THEN coalesce(queued_at, created_at) END) AS waiting_since,
        min(CASE WHEN worker IS NOT NULL THEN started_at END) AS running_since
    FROM job_live GROUP BY pipeline, state ORDER BY pipeline, state";

/// Jobs of one pipeline in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveJobs {
    pub pipeline: Pipeline,
    /// Where they stand.
    pub state: State,
    pub count: i64,
    /// Those of them that wait for a worker.
    pub waiting: i64,
    /// For how long the oldest of those has waited.
    pub waiting_for: Option<Duration>,
    /// For how long the oldest of those that run has been running.
    pub running_for: Option<Duration>,
}

/// What goes on at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overview {
    /// Jobs that have not ended.
    pub live: Vec<LiveJobs>,
    /// Worker processes that are alive.
    pub workers_alive: usize,
    /// Lanes in which jobs wait although none of them works there.
    pub unserved: Vec<Lane>,
    /// Where the breakers of what they depend on stand: the worst of what living workers say of each.
    pub breakers: Vec<Standing>,
}

impl Store {
    /// What goes on at this moment. Reads the whole of the live table.
    pub async fn overview(&self) -> Result<Overview, Error> {
        let rows = self.db().read(LIVE, params![]).await?;
        let live = rows.iter().map(live_jobs).collect::<Result<Vec<_>, _>>()?;
        let workers = self.workers().await?;
        let alive: Vec<&WorkerRecord> = workers.iter().filter(|worker| worker.is_alive).collect();
        let (unserved, breakers) = (unserved(&live, &workers), worst(&alive));
        Ok(Overview { live, workers_alive: alive.len(), unserved, breakers })
    }
}

fn live_jobs(row: &Row) -> Result<LiveJobs, Error> {
    let now = row.moment("now")?;
    let since = |moment: Timestamp| Duration::try_from(now.duration_since(moment)).unwrap_or_default();
    Ok(LiveJobs {
        pipeline: row.name("pipeline")?,
        state: row.name("state")?,
        count: row.int("jobs")?,
        waiting: row.int("waiting")?,
        waiting_for: row.opt_moment("waiting_since")?.map(since),
        running_for: row.opt_moment("running_since")?.map(since),
    })
}

fn unserved(live: &[LiveJobs], workers: &[WorkerRecord]) -> Vec<Lane> {
    let waiting = live.iter().filter(|jobs| jobs.waiting > 0);
    let lanes = waiting.filter_map(|jobs| jobs.pipeline.lane(jobs.state));
    lanes.filter(|lane| !workers.iter().any(|worker| worker.serves(*lane))).collect()
}

/// Each dependency once, as the worker sees it to whom it has been away the longest.
fn worst(workers: &[&WorkerRecord]) -> Vec<Standing> {
    let mut worst: BTreeMap<&str, &Standing> = BTreeMap::new();
    for standing in workers.iter().flat_map(|worker| &worker.about.breakers) {
        let known = worst.entry(&standing.name).or_insert(standing);
        let is_worse = match (standing.away_since, known.away_since) {
            (Some(this), Some(that)) => this < that,
            (this, that) => this.is_some() && that.is_none(),
        };
        if is_worse {
            *known = standing;
        }
    }
    worst.into_values().cloned().collect()
}

impl Overview {
    /// How many jobs wait for a worker.
    #[must_use]
    pub fn waiting(&self) -> i64 {
        self.live.iter().map(|jobs| jobs.waiting).sum()
    }

    /// For how long the oldest of them has waited.
    #[must_use]
    pub fn waiting_for(&self) -> Option<Duration> {
        self.live.iter().filter_map(|jobs| jobs.waiting_for).max()
    }

    /// The same as findings: whether anybody works, what waits, and whether what work depends on is there.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.workers_finding(), self.queue_finding()];
        findings.extend(self.breakers.iter().map(breaker_finding));
        findings
    }

    fn workers_finding(&self) -> Finding {
        let found = match self.workers_alive {
            1 => "1 is alive".to_owned(),
            count => format!("{count} are alive"),
        };
        if self.unserved.is_empty() {
            return Finding::ok("workers", found);
        }
        let lanes: Vec<&str> = self.unserved.iter().map(|lane| lane.as_str()).collect();
        let found = format!("{found}, nobody works on {}", lanes.join(" and "));
        let advice = "Start one with `ode worker` or `ode serve`: jobs wait and nobody works on them. Where one runs, it \
             has no handler for them; its first lines in the log say which it has.";
        Finding::bad("workers", found, advice)
    }

    /// Waiting is no fault by itself: who watches decides how long is too long.
    fn queue_finding(&self) -> Finding {
        let found = match self.waiting_for() {
            Some(oldest) => {
                format!("{} waiting, the oldest for {} s", self.waiting(), oldest.as_secs())
            }
            None => "nothing waits".to_owned(),
        };
        Finding::ok("queue", found)
    }
}

fn breaker_finding(standing: &Standing) -> Finding {
    let Standing { name, state, calls, failures, away_since, .. } = standing;
    let found = format!("breaker {state}, {failures} of {calls} calls failed lately");
    match away_since {
        None => Finding::ok(name, found),
        Some(since) => {
            let advice =
                "See that it runs and can be reached. Jobs wait for it without using up their tries.";
            Finding::bad(name, format!("{found}, away since {since:.0}"), advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ode_job::WorkerId;
    use ode_job::record::About;
    use ode_xml::machine::{LANE as XML, QUEUED};

    fn waiting(count: i64) -> LiveJobs {
        LiveJobs {
            pipeline: ode_xml::machine::XML,
            state: QUEUED,
            count,
            waiting: count,
            waiting_for: (count > 0).then_some(Duration::from_secs(7)),
            running_for: None,
        }
    }

    fn standing(away_since: Option<Timestamp>) -> Standing {
        Standing {
            name: "gateway http://there".into(),
            state: if away_since.is_some() { "open" } else { "closed" }.into(),
            until: None,
            away_since,
            calls: 10,
            failures: 6,
        }
    }

    fn bad(overview: &Overview) -> Vec<String> {
        overview.findings().into_iter().filter(|finding| !finding.is_ok).map(|finding| finding.name).collect()
    }

    #[test]
    fn waiting_is_bad_news_only_where_nobody_works() {
        let idle = Overview::default();
        assert_eq!(bad(&idle), [""; 0]);
        let works = Overview { live: vec![waiting(2)], workers_alive: 1, ..Overview::default() };
        assert_eq!(bad(&works), [""; 0]);
        let stuck = Overview { workers_alive: 0, unserved: vec![XML], ..works };
        assert_eq!(bad(&stuck), ["workers"]);
        assert_eq!(stuck.findings()[0].found, "0 are alive, nobody works on xml");
        assert_eq!(stuck.findings()[1].found, "2 waiting, the oldest for 7 s");
    }

    #[test]
    fn a_lane_is_served_by_a_living_worker_that_takes_from_it() {
        let check = |workers: &[WorkerRecord], expected: &[Lane]| {
            assert_eq!(unserved(&[waiting(1)], workers), expected, "{workers:?}");
        };
        check(&[], &[XML]);
        check(&[worker(&[ode_html::machine::LANE])], &[XML]);
        check(&[WorkerRecord { is_alive: false, ..worker(&[XML]) }], &[XML]);
        check(&[WorkerRecord { is_draining: true, ..worker(&[XML]) }], &[XML]);
        check(&[worker(&[ode_html::machine::LANE]), worker(&[XML])], &[]);
        check(&[worker(&[])], &[]);
        assert_eq!(unserved(&[waiting(0)], &[]), []);
    }

    fn worker(slots: &[Lane]) -> WorkerRecord {
        let slots = slots.iter().map(|lane| (*lane, 3)).collect();
        WorkerRecord {
            id: WorkerId(uuid::Uuid::nil()),
            host: "here".into(),
            pid: 1,
            version: "0".into(),
            started_at: Timestamp::UNIX_EPOCH,
            beat_at: Timestamp::UNIX_EPOCH,
            running: 0,
            is_draining: false,
            is_alive: true,
            about: About { slots, breakers: Vec::new() },
        }
    }

    #[test]
    fn what_is_away_is_named() {
        let there = Overview { breakers: vec![standing(None)], ..Overview::default() };
        assert_eq!(bad(&there), [""; 0]);
        let away = Overview { breakers: vec![standing(Some(Timestamp::UNIX_EPOCH))], ..there };
        assert_eq!(bad(&away), ["gateway http://there"]);
    }
}
