//! SQLite's own terms. Each verb of the hot path is a few statements in one immediate transaction, over whole
//! batches: a statement has a cost of its own here, a row hardly any.

use super::columns;
use crate::database::connections::Connections;
use crate::database::db::Db;
use crate::error::Error;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::str::FromStr;
use std::time::Duration;

/// The clock, in microseconds since 1970.
pub(super) const NOW: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

/// `{rows ...}`: a JSON array as a table. A column of the kind `of $1` is the row's id in the list of ids `$1`, which
/// costs a fraction of one in JSON.
pub(super) fn rows(spec: &str) -> String {
    let (param, columns) = columns(spec);
    let selected = columns.iter().map(|(name, kind)| match *kind {
        kind if kind.starts_with("of ") => format!("substr({}, key * 16 + 1, 16) AS {name}", &kind[3..]),
        "uuid" => format!("unhex(value ->> '{name}', '-') AS {name}"),
        "json" => format!("nullif(value -> '{name}', 'null') AS {name}"),
        _ => format!("value ->> '{name}' AS {name}"),
    });
    // In its binary form a row is not written out and read again for each of its columns.
    let selected = selected.collect::<Vec<_>>().join(", ");
    format!("(SELECT {selected} FROM jsonb_each({param})) AS r")
}

/// What entries add to a history: a comma and the number, each.
pub(crate) fn history(seqs: &[i64]) -> String {
    seqs.iter().map(|seq| format!(",{seq}")).collect()
}

/// See the word `{latest}`: here, the largest of nothing and something is nothing.
pub(super) fn latest(moments: &str) -> String {
    let (first, others) = moments.split_once(", ").unwrap_or((moments, "0"));
    let others: Vec<String> = others.split(", ").map(|moment| format!("coalesce({moment}, 0)")).collect();
    format!("max({first}, {})", others.join(", "))
}

/// What a result code means to the caller.
pub(super) fn meaning(code: &str) -> Option<fn(String) -> Error> {
    // Extended codes carry the primary one in their low byte.
    let primary = code.parse::<i32>().ok()? & 0xff;
    match primary {
        5 | 6 => Some(Error::Unavailable),
        8 => Some(|said| {
            Error::ReadOnly(format!("{said}. Make the file and its directory writable for whoever runs ode."))
        }),
        13 => Some(Error::DiskFull),
        14 => {
            Some(|said| Error::Unavailable(format!("{said}; the directory may be missing or not writable")))
        }
        11 | 26 => Some(|said| {
            Error::Corrupt(format!(
                "the file is damaged or not a database ({said}); restore it from a backup, or name another"
            ))
        }),
        1 if code == "1" => Some(|said| {
            if said.starts_with("no such table") {
                Error::Schema(format!(
                    "The database does not have ODE's tables: {said}. Run `ode migrate up`."
                ))
            } else {
                Error::Database(said)
            }
        }),
        _ => None,
    }
}

/// Another process may hold the file for the length of a batch, not longer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// A batch's rows are handed over without a pause: each would cost two changes of thread.
const ROWS_AHEAD: usize = 2_048;
/// Readers do not block the writer in WAL mode; a few are enough for one machine.
const READERS_MAX: u32 = 4;

/// Opens the file, making it if need be. Accepting a job is a promise, so commits are synced (`FULL`).
pub(crate) async fn open(url: &str) -> Result<Db, Error> {
    let options = SqliteConnectOptions::from_str(url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .row_buffer_size(ROWS_AHEAD);
    let options = sqlx::ConnectOptions::disable_statement_logging(options);
    // A database in memory belongs to its one connection, which must therefore stay open and serve both ways.
    let pool = SqlitePoolOptions::new()
        .idle_timeout(None)
        .max_lifetime(None)
        // There is no server that could have gone.
        .test_before_acquire(false);
    let write = pool.clone().max_connections(1).connect_with(options.clone()).await?;
    let write = Connections::new(write);
    let read = if url.contains(":memory:") {
        write.clone()
    } else {
        Connections::new(pool.max_connections(READERS_MAX).connect_with(options.read_only(true)).await?)
    };
    Ok(Db::Sqlite { write, read })
}

/// See the statement of the same name in [`super::postgres`]; `$jobs` is all of them. Two statements in one.
pub(crate) const ENQUEUE: &str = "
INSERT INTO job_live ({new_columns}) SELECT {new_values} FROM {given_rows $jobs};
INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs)
SELECT r.seq, r.event, r.from_state, r.to_state, $actor, t.ids
FROM {rows $steps: g int, seq int, event text, from_state text, to_state text},
    (SELECT value ->> 'g' AS g, unhex(group_concat(replace(value ->> 'id', '-', ''), '')) AS ids
        FROM json_each($jobs) GROUP BY 1) t
WHERE t.g = r.g";

/// Whose turn it is: the owners of the highest waiting priority, beginning after the one served last.
/// `$1` lane, `$2` the owner served last, `$3` how many at most.
pub(crate) const TURN: &str = "
WITH RECURSIVE top (priority) AS (
    SELECT priority FROM job_live WHERE lane = $1 AND worker IS NULL ORDER BY lane, priority DESC, owner, id LIMIT 1
), ring (owner, wrapped, n) AS (
    SELECT (SELECT owner FROM job_live WHERE lane = $1 AND priority = top.priority AND worker IS NULL AND owner > $2
        ORDER BY lane, priority DESC, owner, id LIMIT 1), 0, 1
    FROM top
    UNION ALL
    SELECT CASE WHEN ring.owner IS NULL
        THEN (SELECT owner FROM job_live WHERE lane = $1 AND priority = top.priority AND worker IS NULL
            ORDER BY lane, priority DESC, owner, id LIMIT 1)
        ELSE (SELECT owner FROM job_live WHERE lane = $1 AND priority = top.priority AND worker IS NULL
            AND owner > ring.owner ORDER BY lane, priority DESC, owner, id LIMIT 1) END,
        max(ring.wrapped, ring.owner IS NULL), ring.n + 1
    FROM ring, top
    WHERE ring.n < $3 AND NOT (ring.wrapped AND (ring.owner IS NULL OR ring.owner > $2))
)
SELECT ring.owner, top.priority FROM ring, top WHERE ring.owner IS NOT NULL AND NOT (wrapped AND ring.owner > $2)";

/// One owner's share, in no order. Parameters as for the claim in [`super::postgres`].
pub(crate) const CLAIM_SHARE: &str = "
UPDATE job_live SET fence = fence + 1, attempts = attempts + 1, state = $to, worker = $worker,
    lease_until = {after $lease}, started_at = {now},
    timeout_at = {now} + coalesce(timeout_ms * 1000, $limit),
    history = history || ',' || $seq
WHERE id IN (SELECT id FROM job_live WHERE lane = $lane AND priority = $priority AND owner = $owner AND worker IS NULL
    ORDER BY lane, priority DESC, owner, id LIMIT $count)
RETURNING id, fence, attempts, retries, retries_max, crashes, owner, timeout_ms, kind, input, config, session_id,
    user_id, organisation_id";

/// Records a claim in the journal. `$jobs` are the ids.
pub(crate) const CLAIM_ENTRY: &str = "
INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs) VALUES ($seq, 'processing', $from, $to, $actor, $jobs)";

/// Records the steps of the jobs that were changed, `$written`.
pub(crate) const TELL: &str = "
INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs, details)
SELECT r.seq, r.event, r.from_state, r.to_state, $actor, $written, $details
FROM {rows $steps: seq int, event text, from_state text, to_state text}";

/// Publishes the files of those that are still as expected, before they are changed: what has passed its export has one.
pub(crate) const KEEP: &str = "
INSERT INTO job_artifact (id, job_id, role, name, storage, path, content_type, bytes, sha256)
SELECT r.id, r.job_id, r.role, r.name, r.storage, r.path, r.content_type, r.bytes, r.sha256
FROM {rows $files: id uuid, job_id uuid, role text, name text, storage text, path text, content_type text, bytes int,
        sha256 text}
    CROSS JOIN jsonb_each($rows) x CROSS JOIN job_live l
WHERE substr($jobs, x.key * 16 + 1, 16) = r.job_id
    AND l.id = r.job_id AND l.fence = x.value ->> 'fence' AND l.state = $from";

/// The first step of the statement of the same name in [`super::postgres`]; [`TELL`] follows for the jobs it answers
/// with. Those that ended are not live any more: a trigger of `job_past` sees to that.
pub(crate) const END: &str = "
    INSERT INTO job_past ({ended_columns})
    SELECT {ended_values}
    FROM {rows $rows: id of $jobs, fence int, result json, code text, message text, detail text}
        JOIN job_live j ON j.id = r.id AND j.fence = r.fence AND j.state = $from
    RETURNING id";

/// Likewise; [`TELL`] follows.
pub(crate) const MOVE: &str = "
    UPDATE job_live SET state = $to, lane = coalesce(r.lane, iif(job_live.advance, r.next_lane, NULL)), run_at = {after r.wait}, worker = NULL, lease_until = NULL,
        timeout_at = NULL, stop_at = iif(r.keeps_wish, job_live.stop_at, NULL), process_pid = NULL, progress_percent = NULL, progress_message = NULL,
        progress_step = NULL, progress_steps = NULL, attempts = job_live.attempts + r.attempts,
        retries = job_live.retries + r.retries, crashes = job_live.crashes + r.crashes,
        history = job_live.history || $adds,
        advance = coalesce(job_live.advance, nullif(r.advance, 0)),
        queued_at = iif(r.lane IS NULL, job_live.queued_at, {now}), updated_at = {now}
    FROM {rows $rows: id of $jobs, fence int, lane text, next_lane text, wait int, attempts int, retries int, crashes int, advance int,
        keeps_wish int}
    WHERE job_live.id = r.id AND job_live.fence = r.fence AND job_live.state = $from
    RETURNING job_live.id";
