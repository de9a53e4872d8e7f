//! How long live documents will still take, from how long others took. What is kept in memory is a few seconds old at
//! most; nothing is written.

use crate::machine::{LANE, XML};
use jiff::Timestamp;
use ode_job::estimate::{self, Place, SAMPLES_MAX, Sample, Speed, Stage, TimeLeft};
use ode_job::{JobId, SourceDocument};
use ode_store::sql::{Row, Sql, params};
use ode_store::{Error, Store};
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The newest conversions by one mapping.
const MEASURED: &str = "SELECT input, started_at, finished_at FROM job_past
    WHERE pipeline = 'xml' AND state = 'complete' AND kind = $1 ORDER BY kind, id DESC LIMIT $2";
/// Whoever runs or waits, as far as it is looked at, and who is held until a moment.
const LINE: &str = "SELECT * FROM (SELECT id, owner, priority, kind, input, started_at, run_at,
        CASE WHEN worker IS NULL THEN 0 ELSE 1 END AS running, {now} AS now
    FROM job_live WHERE lane = {lane $1} ORDER BY lane, priority DESC, owner, id LIMIT $2) AS a
    UNION ALL SELECT * FROM (SELECT id, owner, priority, kind, input, started_at, run_at, 0 AS running, {now} AS now
    FROM job_live WHERE lane IS NULL AND run_at IS NOT NULL AND pipeline = $3 ORDER BY run_at LIMIT $2) AS b";
/// Further back nobody is told how long it will take: it would be a guess about guesses.
const LINE_MAX: i64 = 500;
/// More mappings than this at a time are not estimated.
const KINDS_MAX: usize = 16;
/// What was learned is used for this long.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// What was learned lately, by mapping.
#[derive(Debug, Default)]
pub(crate) struct Speeds {
    known: Mutex<HashMap<String, (Instant, Option<Speed>)>>,
}

impl Speeds {
    fn get(&self, kind: &str) -> Option<Option<Speed>> {
        let known = self.known.lock().expect("no code panics while holding this lock");
        known.get(kind).filter(|(at, _)| at.elapsed() < FRESH_FOR).map(|(_, speed)| *speed)
    }

    fn put(&self, kind: &str, speed: Option<Speed>) {
        let mut known = self.known.lock().expect("no code panics while holding this lock");
        // Names come from outside: what is old is forgotten, so that they cannot fill the memory.
        known.retain(|_, (at, _)| at.elapsed() < FRESH_FOR);
        known.insert(kind.to_owned(), (Instant::now(), speed));
    }
}

/// How long each of these jobs will still take. One that has ended, or of which nothing can be said yet, is not in the answer.
pub(crate) async fn times_left(
    store: &Store,
    speeds: &Speeds,
    jobs: &[JobId],
) -> Result<HashMap<JobId, TimeLeft>, Error> {
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let slots = slots(store).await?;
    if slots == 0 {
        // Nobody works, so nothing can be said, and the line need not be read.
        return Ok(HashMap::new());
    }
    let rows = store.sql().read(LINE, params![LANE.as_str(), LINE_MAX, XML.as_str()]).await?;
    let mut kinds = BTreeSet::new();
    for row in &rows {
        kinds.insert(row.text("kind")?);
    }
    let mut known = HashMap::new();
    for kind in kinds.into_iter().take(KINDS_MAX) {
        let speed = speed(store.sql(), speeds, &kind).await?;
        known.insert(kind, speed);
    }
    let line = rows.iter().map(|row| place(row, &known)).collect::<Result<Vec<_>, _>>()?;
    let mut left = estimate::times_left(&line, slots);
    let asked: BTreeSet<&JobId> = jobs.iter().collect();
    left.retain(|id, _| asked.contains(id));
    Ok(left)
}

/// How many documents all living workers together convert at a time.
async fn slots(store: &Store) -> Result<usize, Error> {
    let workers = store.workers().await?;
    let alive = workers.iter().filter(|worker| worker.is_alive && !worker.is_draining);
    Ok(alive.filter_map(|worker| worker.about.slots.get(&LANE)).sum())
}

async fn speed(sql: Sql<'_>, speeds: &Speeds, kind: &str) -> Result<Option<Speed>, Error> {
    if let Some(known) = speeds.get(kind) {
        return Ok(known);
    }
    let count = i64::try_from(SAMPLES_MAX).unwrap_or(i64::MAX);
    let rows = sql.read(MEASURED, params![kind, count]).await?;
    let samples = rows.iter().map(sample).collect::<Result<Vec<_>, _>>()?;
    let samples: Vec<Sample> = samples.into_iter().flatten().collect();
    let speed = Speed::learn(&samples);
    speeds.put(kind, speed);
    Ok(speed)
}

/// The size of a job's document.
fn bytes(row: &Row) -> Result<Option<u64>, Error> {
    let document = SourceDocument::of(&row.json("input")?);
    Ok(document.and_then(|document| document.bytes).and_then(|bytes| u64::try_from(bytes).ok()))
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// A conversion that was measured; one whose size is not known says nothing.
fn sample(row: &Row) -> Result<Option<Sample>, Error> {
    let (Some(bytes), Some(started_at)) = (bytes(row)?, row.opt_moment("started_at")?) else {
        return Ok(None);
    };
    Ok(Some(Sample { bytes, took: between(started_at, row.moment("finished_at")?) }))
}

fn place(row: &Row, speeds: &HashMap<String, Option<Speed>>) -> Result<Place, Error> {
    let now = row.moment("now")?;
    let speed = speeds.get(&row.text("kind")?).copied().flatten();
    let stage = match (row.int("running")? == 1, row.opt_moment("started_at")?, row.opt_moment("run_at")?) {
        (true, Some(started_at), _) => Stage::Running(between(started_at, now)),
        (false, _, Some(run_at)) => Stage::Held(between(now, run_at)),
        _ => Stage::Waiting,
    };
    Ok(Place {
        id: row.job("id")?,
        owner: row.uuid("owner")?,
        priority: row.int("priority")?,
        takes: speed.zip(bytes(row)?).map(|(speed, bytes)| speed.expect(bytes)),
        stage,
    })
}
