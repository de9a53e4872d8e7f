//! PostgreSQL's own terms. Each verb of the hot path is one statement: one round trip, one commit.

use super::columns;
use crate::error::Error;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use std::str::FromStr;
use std::time::Duration;

/// The channel on which enqueuers say which lane has work.
pub(crate) const READY_CHANNEL: &str = "ode_ready";
/// The channel on which a person's wish to stop a running job is told.
pub(crate) const STOP_CHANNEL: &str = "ode_stop";

/// `{rows ...}`: a JSON array as a table.
pub(super) fn rows(spec: &str) -> String {
    let (param, columns) = columns(spec);
    let selected = columns.iter().map(|(name, kind)| match *kind {
        "moment" => format!("timestamptz 'epoch' + {name} * interval '1 microsecond' AS {name}"),
        _ => (*name).to_owned(),
    });
    let typed = columns.iter().map(|(name, kind)| {
        let kind = match *kind {
            "int" | "moment" => "bigint",
            "json" => "jsonb",
            "lane" => "ode_lane",
            other => other,
        };
        format!("{name} {kind}")
    });
    let (selected, typed) = (selected.collect::<Vec<_>>().join(", "), typed.collect::<Vec<_>>().join(", "));
    format!("(SELECT {selected} FROM json_to_recordset({param}::json) AS x ({typed})) AS r")
}

/// What entries add to a history: seven bytes each.
pub(crate) fn history(seqs: &[i64]) -> Vec<u8> {
    seqs.iter().flat_map(|seq| seq.to_be_bytes().into_iter().skip(1)).collect()
}

/// What an SQLSTATE means to the caller.
pub(super) fn meaning(sqlstate: &str) -> Option<fn(String) -> Error> {
    match sqlstate {
        // Connections that ended or were refused, and servers that are starting or stopping.
        "57P01" | "57P02" | "57P03" | "53300" => Some(Error::Unavailable),
        code if code.len() == 5 && code.starts_with("08") => Some(Error::Unavailable),
        // Deadlocks, serialization failures and timeouts of locks, statements and sessions pass when tried again.
        "40001" | "40P01" | "55P03" | "57014" | "25P03" | "25P04" | "57P05" => Some(Error::Unavailable),
        "25006" => Some(|said| Error::ReadOnly(format!("{said}. Point --database at the primary."))),
        "53100" => Some(Error::DiskFull),
        "28000" | "28P01" | "3D000" => Some(|said| {
            Error::Config(format!("The database refused the connection: {said}. Check --database."))
        }),
        "42P01" | "42703" => Some(|said| {
            Error::Schema(format!("The database does not have ODE's tables: {said}. Run `ode migrate up`."))
        }),
        _ => None,
    }
}

/// How long to wait for a connection before saying that there is none.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a pool. Plans must not depend on statistics, which lag behind a queue that goes from empty to a
/// million rows in seconds: every statement of the engine is a walk along an index, so other ways are closed.
pub(crate) async fn open(url: &str, connections_max: u32) -> Result<PgPool, Error> {
    let options = PgConnectOptions::from_str(url)?.application_name("ode").options([
        ("jit", "off"),
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("max_parallel_workers_per_gather", "0"),
        ("plan_cache_mode", "force_generic_plan"),
        // Which the triggers know that would be work for nothing where rows are only ever moved.
        ("ode.engine", "on"),
    ]);
    let options = options.disable_statement_logging();
    let port = options.get_port();
    let pool = PgPoolOptions::new()
        .after_connect(move |_, _| {
            Box::pin(async move {
                send_without_delay(port);
                Ok(())
            })
        })
        .max_connections(connections_max)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .connect_with(options.clone())
        .await;
    match pool {
        Err(sqlx::Error::PoolTimedOut) => Err(why_unreachable(&options).await.into()),
        pool => Ok(pool?),
    }
}

/// How long to look for the reason of a failure that has taken its time already.
const REASON_TIMEOUT: Duration = Duration::from_secs(2);

/// The pool waits for a server that may be starting, and then only says that it waited. One more try says why.
async fn why_unreachable(options: &PgConnectOptions) -> sqlx::Error {
    let tried = tokio::time::timeout(REASON_TIMEOUT, options.connect()).await;
    tried.ok().and_then(Result::err).unwrap_or(sqlx::Error::PoolTimedOut)
}

/// Switches Nagle's algorithm off on our connections to this port.
///
/// The driver leaves it on, and COPY ends with a small message that the kernel then keeps back until the server
/// acknowledges the data before it, 40 ms later: four times as long as the COPY itself. The driver does not
/// hand out its sockets either, so they are found among this process's own. Where that is not allowed, bulk
/// loads are slower and nothing else changes.
#[cfg(target_os = "linux")]
fn send_without_delay(port: u16) {
    use rustix::net::{getpeername, sockopt::set_tcp_nodelay};
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    use std::net::SocketAddr;
    let Ok(me) = pidfd_open(getpid(), PidfdFlags::empty()) else { return };
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    for entry in entries.flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(socket) = pidfd_getfd(&me, number, PidfdGetfdFlags::empty()) else { continue };
        let peer = getpeername(&socket).ok().flatten().and_then(|peer| SocketAddr::try_from(peer).ok());
        if peer.is_some_and(|peer| peer.port() == port) {
            // Slower is all it is if this fails.
            let _ = set_tcp_nodelay(&socket, true);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn send_without_delay(_port: u16) {}

/// A statement that stores new jobs: what it does `first`, `only` which of them it stores, what is asked `back` of them, and
/// what it does and answers `last`.
macro_rules! enqueue {
    (first $first:literal, only $only:literal, back $back:literal, last $last:literal) => {
        concat!(
            "
WITH ",
            $first,
            "t AS MATERIALIZED (
    SELECT * FROM unnest({given_arrays}) AS t ({given_names})",
            $only,
            "
), l AS (
    INSERT INTO job_live ({new_columns}) SELECT {new_values} FROM t",
            $back,
            "
), e AS (
    INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs)
    SELECT r.seq, r.event, r.from_state, r.to_state, $actor, s.ids
    FROM {rows $steps: g int, seq int, event text, from_state text, to_state text}
    JOIN (SELECT t.g, array_agg(t.id) AS ids FROM t GROUP BY t.g) s ON s.g = r.g
)",
            $last
        )
    };
}

/// Stores new jobs, handed over as one array for each column. `$steps` by group, `$actor` who, `$lanes` to wake (or
/// nothing), `$worker` and `$lease` in microseconds of jobs that are born claimed.
pub(crate) const ENQUEUE: &str = enqueue!(first "", only "", back "", last "SELECT pg_notify('ode_ready', r.lane) FROM {rows $lanes: lane text}");

/// The same for jobs with a key each, `$keys`, and perhaps a file, `$files`: those whose keys are free. Answers which, and
/// those with a file as `BY_IDS` reads them, so that nobody has to read what was just written: what changes in
/// `file_columns` changes here. Idempotency keys are taken before the others here as elsewhere, so that two
/// processes do not wait for each other in a circle.
pub(crate) const ENQUEUE_KEYED: &str = enqueue!(
    first "k AS (
    INSERT INTO job_key (kind, owner, key, job_id, request)
    SELECT r.kind, r.owner, r.key, r.job_id, r.request
    FROM {rows $keys: kind text, owner uuid, key text, job_id uuid, request text} ORDER BY r.kind DESC, r.owner, r.key
    ON CONFLICT (kind, owner, key) DO NOTHING RETURNING job_id
), ",
    only " WHERE id IN (SELECT job_id FROM k)",
    back " RETURNING *",
    last ", a AS (
    INSERT INTO job_artifact (id, job_id, role, name, storage, path, content_type, bytes, sha256)
    SELECT r.id, r.job_id, r.role, r.name, r.storage, r.path, r.content_type, r.bytes, r.sha256
    FROM {rows $files: id uuid, job_id uuid, role text, name text, storage text, path text, content_type text,
        bytes int, sha256 text} WHERE r.job_id IN (SELECT job_id FROM k)
    RETURNING job_id, role, path, created_at
), j AS (
    SELECT {live_jobs} FROM l
)
SELECT k.job_id AS made, {job_columns j}, a.path AS source_path,
    a.created_at AS uploaded_at, NULL::text AS result_path, NULL::timestamptz AS made_at,
    NULL::bigint AS download_count, NULL::timestamptz AS first_downloaded_at, p.source_micros, p.result_micros,
    (SELECT count(pg_notify('ode_ready', r.lane)) FROM {rows $lanes: lane text}) AS woken
FROM k LEFT JOIN (a JOIN j ON j.id = a.job_id AND a.role = 'source') ON j.id = k.job_id LEFT JOIN retention_policy p ON TRUE"
);

/// Stores one new job, as most without keys come: half the work of unpacking arrays. Parameters as for [`ENQUEUE`], but the
/// job's as single values, and `$wakes` the lane.
pub(crate) const ENQUEUE_ONE: &str = "
WITH l AS (
    INSERT INTO job_live ({new_columns}) VALUES ({new_params})
), e AS (
    INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs)
    SELECT r.seq, r.event, r.from_state, r.to_state, $actor, ARRAY[$id]
    FROM {rows $steps: seq int, event text, from_state text, to_state text}
)
SELECT pg_notify('ode_ready', $wakes) WHERE $wakes IS NOT NULL";

/// Takes leases. `$count` how many at most, `$after` the owner served last, `$lease` and the attempt's `$limit` in
/// microseconds, `$seq` the entry's number, `$actor` who, `$from` and `$to` the states, `$adds` what it adds to the
/// history, `$ring` how many owners share it.
///
/// The highest priority that waits is served; among its owners, beginning after the one served last, each gets
/// an equal share, oldest first. A claim writes `job_live` and the journal and nothing else, and it changes no
/// indexed column, so a row stays where it is on its page.
pub(crate) const CLAIM: &str = "
WITH RECURSIVE top AS MATERIALIZED (
    SELECT priority, owner, id FROM job_live WHERE lane = $lane::ode_lane AND worker IS NULL ORDER BY lane, priority DESC, owner, id LIMIT 1
), ring (owner, wrapped, n) AS (
    SELECT (SELECT owner FROM job_live WHERE lane = $lane::ode_lane AND priority = top.priority AND worker IS NULL AND owner > $after
        ORDER BY lane, priority DESC, owner, id LIMIT 1), FALSE, 1
    FROM top
    UNION ALL
    SELECT CASE WHEN ring.owner IS NULL THEN top.owner
        ELSE (SELECT owner FROM job_live WHERE lane = $lane::ode_lane AND priority = top.priority AND worker IS NULL
            AND owner > ring.owner ORDER BY lane, priority DESC, owner, id LIMIT 1) END,
        ring.wrapped OR ring.owner IS NULL, ring.n + 1
    FROM ring, top
    WHERE ring.n < $ring AND NOT (ring.wrapped AND (ring.owner IS NULL OR ring.owner > $after))
), turn AS MATERIALIZED (
    SELECT ring.owner, count(*) OVER () AS owners, top.priority,
        CASE WHEN ring.owner = top.owner THEN top.id ELSE '00000000-0000-0000-0000-000000000000' END AS oldest
    FROM ring, top
    WHERE ring.owner IS NOT NULL AND NOT (wrapped AND ring.owner > $after)
), picked AS MATERIALIZED (
    SELECT p.id, p.ctid FROM turn CROSS JOIN LATERAL (
        SELECT id, ctid FROM job_live
        WHERE lane = $lane::ode_lane AND priority = turn.priority AND owner = turn.owner AND id >= turn.oldest AND worker IS NULL
        ORDER BY lane, priority DESC, owner, id LIMIT ($count + turn.owners - 1) / turn.owners
        FOR UPDATE SKIP LOCKED) p
    LIMIT $count
), claimed AS (
    UPDATE job_live l SET fence = l.fence + 1, attempts = l.attempts + 1, state = $to, worker = $worker,
        lease_until = now() + $lease::bigint * interval '1 microsecond', started_at = now(),
        timeout_at = now() + coalesce(l.timeout_ms * 1000, $limit::bigint) * interval '1 microsecond',
        history = l.history || $adds
    FROM picked
    WHERE l.ctid = picked.ctid
    RETURNING l.id, l.fence, l.attempts, l.retries, l.retries_max, l.crashes, l.owner, l.timeout_ms,
        l.kind, l.input, l.config, l.session_id, l.user_id, l.organisation_id
), e AS (
    INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs)
    SELECT $seq, 'processing', $from, $to, $actor, array_agg(id) FROM claimed HAVING count(*) > 0
)
SELECT * FROM claimed";

/// How the statements end that end or move jobs: for the jobs `d` that they changed, the steps are told and the files
/// published. Answers the jobs.
macro_rules! tell_and_keep {
    () => {
        "), e AS (
    INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs, details)
    SELECT r.seq, r.event, r.from_state, r.to_state, $actor, d.ids, $details
    FROM {rows $steps: seq int, event text, from_state text, to_state text},
        (SELECT array_agg(id) AS ids FROM d HAVING count(*) > 0) d
), a AS (
    INSERT INTO job_artifact (id, job_id, role, name, storage, path, content_type, bytes, sha256)
    SELECT r.id, r.job_id, r.role, r.name, r.storage, r.path, r.content_type, r.bytes, r.sha256
    FROM {rows $files: id uuid, job_id uuid, role text, name text, storage text, path text, content_type text, bytes int,
        sha256 text} JOIN d ON d.id = r.job_id
)
SELECT id FROM d"
    };
}

/// Ends jobs. `$jobs` and, as arrays, their `$fences`, `$results` and failures, `$steps`, `$adds` what they add to the
/// history, `$actor` who, `$from` and `$to` the states, `$version` the engine's, `$details` and `$files`.
pub(crate) const END: &str = concat!(
    "
WITH d AS (
    DELETE FROM job_live l USING unnest($jobs::uuid[], $fences::bigint[], $results::jsonb[], $codes::text[],
        $messages::text[], $failure_details::text[]) AS r (id, fence, result, code, message, detail)
    WHERE l.id = r.id AND l.fence = r.fence AND l.state = $from
    RETURNING l.*, r.result, r.code, r.message, r.detail
), p AS (
    INSERT INTO job_past ({ended_columns}) SELECT {ended_values} FROM d j
",
    tell_and_keep!()
);

/// Moves jobs that stay live. Parameters as for [`END`]; each job brings, in `$rows`, its new lane, how long it
/// waits, which is counted by the database's clock, and what it has spent.
pub(crate) const MOVE: &str = concat!("
WITH d AS (
    UPDATE job_live l SET state = $to, lane = coalesce(r.lane, CASE WHEN l.advance THEN r.next_lane END), run_at = {after r.wait}, worker = NULL, lease_until = NULL,
        timeout_at = NULL, stop_at = CASE WHEN r.keeps_wish = 1 THEN l.stop_at END, process_pid = NULL, progress_percent = NULL, progress_message = NULL,
        progress_step = NULL, progress_steps = NULL, attempts = l.attempts + r.attempts,
        retries = l.retries + r.retries, crashes = l.crashes + r.crashes, history = l.history || $adds,
        advance = coalesce(l.advance, CASE WHEN r.advance = 1 THEN TRUE END),
        queued_at = CASE WHEN r.lane IS NULL THEN l.queued_at ELSE now() END, updated_at = now()
    FROM {rows $rows: id uuid, fence int, lane lane, next_lane lane, wait int, attempts int, retries int, crashes int, advance int,
        keeps_wish int}
    WHERE l.id = r.id AND l.fence = r.fence AND l.state = $from
    RETURNING l.id
", tell_and_keep!());
