//! What the database takes from the declared machines: the states that rows may have, where a job made in SQL begins, which jobs
//! may be called off there, and whose ends owners are notified of.
//!
//! `postgres.sql` and `sqlite.sql` are made after the engine's tables, and again whenever they or a machine have changed. On SQLite
//! the rules of rows stand in the tables, whose text is then changed: rows are checked as they are written, at no cost beyond
//! that, and no table is copied ([0028](../../../../../../docs/decisions/0028-rules-from-the-machines.md)).

#[cfg(test)]
mod tests;

use crate::database::db::{Db, Row, Tx, params};
use crate::database::dialect::{Dialect, rewrite_for};
use crate::error::Error;
use crate::files::blobs::sha256_hex;
use crate::schema::columns::lists;
use crate::schema::declaration::{Declaration, Notified};
use ode_job::{Event, Phase, Pipeline, Standing, State};

const POSTGRES: &str = include_str!("postgres.sql");
const SQLITE: &str = include_str!("sqlite.sql");

/// Rules of `job_live` on SQLite. The comments at both ends mark what is replaced when a machine changes.
const LIVE_RULES: &str = "/* from the machines */
    CONSTRAINT job_live_state_of_pipeline CHECK ({live_states}),
    CONSTRAINT job_live_lane_of_pipeline CHECK ({lanes_of}),
    CONSTRAINT job_live_running_is_leased CHECK ((state IN ({states running})) = (worker IS NOT NULL)
        AND (worker IS NULL) = (lease_until IS NULL)
        AND (worker IS NULL OR (started_at IS NOT NULL AND lane IS NOT NULL))
        AND (lane IS NULL OR state NOT IN ({states held})))
    /* to here */";
/// Rules of `job_past` on SQLite. What was done by nobody, because its twin was done already, was never begun.
const PAST_RULES: &str = "/* from the machines */
    CONSTRAINT job_past_state_of_pipeline CHECK ({past_states}),
    CONSTRAINT job_past_result_and_error CHECK (CASE
        WHEN state IN ({states done}) THEN error_code IS NULL AND error_message IS NULL
        WHEN state IN ({states cancelled}) THEN result IS NULL AND error_code IS NULL AND error_message IS NULL
        ELSE result IS NULL AND error_code IS NOT NULL AND error_message IS NOT NULL END),
    CONSTRAINT job_past_done_was_started CHECK (
        attempts = 0 OR started_at IS NOT NULL OR state NOT IN ({states started}))
    /* to here */";
const RULES_BEGIN: &str = "/* from the machines */";
const RULES_END: &str = "/* to here */";

const MISSING_LANES: &str = "SELECT name FROM {rows $1: name text}
    WHERE to_regtype('ode_lane') IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM pg_enum WHERE enumtypid = to_regtype('ode_lane') AND enumlabel = name)";
/// What a database that has the engine's tables knows of the machines.
pub(crate) const KNOWN: &str = "SELECT pipelines, sha256 FROM ode_machines";
/// A job of this pipeline.
pub(crate) const JOB_OF: &str = "SELECT 1 AS one FROM job_live WHERE pipeline = $1
    UNION ALL SELECT 1 FROM job_past WHERE pipeline = $1 LIMIT 1";
const FORGET: &str = "DELETE FROM ode_machines";
const RECORD: &str = "INSERT INTO ode_machines (pipelines, sha256) VALUES ($1, $2)";
/// Has everything made anew with the next migration.
pub(crate) const OUTDATE: &str = "UPDATE ode_machines SET sha256 = ''";
const TABLE: &str = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = $1";
const SCHEMA_VERSION: &str = "SELECT schema_version FROM pragma_schema_version";

/// Adds the lanes that the type of PostgreSQL lacks, each for itself: a new value can be used by later transactions only.
pub(crate) async fn add_lanes(db: &Db, declared: &[&Declaration]) -> Result<(), Error> {
    if db.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let names = lanes(declared).map(|name| serde_json::json!({ "name": name }));
    for row in db.read(MISSING_LANES, params![crate::database::db::Param::rows(names)]).await? {
        let mut tx = db.begin().await?;
        let add = format!("ALTER TYPE ode_lane ADD VALUE IF NOT EXISTS '{}'", row.text("name")?);
        Db::run_file(&mut tx, add).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// The pipelines that a database knows and this program does not.
pub(crate) fn undeclared(rows: &[Row], declared: &[&Declaration]) -> Result<Vec<String>, Error> {
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let is_declared = |name: &str| declared.iter().any(|declaration| declaration.pipeline.as_str() == name);
    let known = row.text("pipelines")?;
    Ok(known.split_terminator(", ").filter(|name| !is_declared(name)).map(str::to_owned).collect())
}

/// Refuses a database that holds jobs of a pipeline that this program does not know.
pub(crate) fn check_jobless(pipeline: &str, jobs: &[Row]) -> Result<(), Error> {
    if jobs.is_empty() {
        return Ok(());
    }
    Err(Error::Schema(format!(
        "The database has jobs of the pipeline \"{pipeline}\", which this program does not know. Run a program that has this \
         pipeline; nothing was changed."
    )))
}

/// What follows from the machines, and the digest by which a database knows that it has it.
pub(crate) struct Made {
    pub(crate) sql: String,
    sha256: String,
}

impl Made {
    pub(crate) fn new(dialect: Dialect, declared: &[&Declaration]) -> Self {
        let file = if dialect == Dialect::Postgres { POSTGRES } else { SQLITE };
        let sql = lists::in_newest(dialect, declared, file);
        let rules = [LIVE_RULES, PAST_RULES].map(|rules| rewrite_for(dialect, declared, rules));
        let sha256 = sha256_hex(format!("{sql}{}", rules.concat()).as_bytes());
        Made { sql, sha256 }
    }

    /// Whether the database has it.
    pub(crate) fn is_in(&self, rows: &[Row]) -> Result<bool, Error> {
        rows.first().map_or(Ok(false), |row| Ok(row.text("sha256")? == self.sha256))
    }

    /// Takes down that the database has it.
    pub(crate) async fn record(&self, tx: &mut Tx, declared: &[&Declaration]) -> Result<(), Error> {
        tx.run(FORGET, params![]).await?;
        tx.run(RECORD, params![names(declared), self.sha256.as_str()]).await.map(drop)
    }
}

/// Puts the rules of these machines into the text of SQLite's tables. That is how SQLite has constraints changed that do not
/// concern what is stored: in `sqlite_schema`, with a new version of the schema, so that all connections read it again.
pub(crate) async fn change_rules(tx: &mut Tx, declared: &[&Declaration]) -> Result<(), Error> {
    let mut changes = String::new();
    for (table, rules) in [("job_live", LIVE_RULES), ("job_past", PAST_RULES)] {
        let rows = tx.run(TABLE, params![table]).await?;
        let old = rows.first().map_or_else(|| Ok(String::new()), |row| row.text("sql"))?;
        let new = with_rules(&old, &rewrite_for(Dialect::Sqlite, declared, rules))
            .ok_or_else(|| Error::Schema(format!("The table {table} has no rules from the machines.")))?;
        if new != old {
            let text = new.replace('\'', "''");
            changes += &format!(
                "UPDATE sqlite_schema SET sql = '{text}' WHERE type = 'table' AND name = '{table}';\n"
            );
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    let rows = tx.run(SCHEMA_VERSION, params![]).await?;
    let version = rows.first().map_or(Ok(0), |row| row.int("schema_version"))?;
    let sql = format!(
        "PRAGMA writable_schema = ON;\n{changes}PRAGMA schema_version = {};\nPRAGMA writable_schema = RESET;\n\
         SELECT 1 FROM job_live, job_past LIMIT 0;",
        version + 1
    );
    Db::run_file(tx, sql).await
}

/// The text of a table with other rules between its marks.
fn with_rules(table: &str, rules: &str) -> Option<String> {
    let begin = table.find(RULES_BEGIN)?;
    let end = begin + table[begin..].find(RULES_END)? + RULES_END.len();
    Some(format!("{}{rules}{}", &table[..begin], &table[end..]))
}

/// The word of this name, made of the machines:
///
/// | word | |
/// | --- | --- |
/// | `{pipelines}` | their names |
/// | `{lanes}` | the names of their lanes, quoted |
/// | `{states done}` | states of a kind, see [`is_of_kind`], quoted |
/// | `{live_states p.}`, `{past_states p.}`, `{lanes_of p.}` | whether state or lane of the row `p` is one of its pipeline |
/// | `{births}` | rows of a pipeline, the state and the state in line of a new job, its lane, and whether it waits for its time in the former |
/// | `{cancels}` | rows of a pipeline, a state in which SQL may call off, the state after, and whether that is a failure |
/// | `{notified}` | the pipelines whose ends owners are notified of, quoted |
/// | `{own_webhook p.}` | the address that the job `p` itself brings to be notified at |
/// | `{live_rules}`, `{past_rules}` | rules of the two tables on SQLite |
pub(crate) fn word(dialect: Dialect, declared: &[&Declaration], name: &str, of: &str) -> Option<String> {
    let states = |is_live| {
        by_pipeline(declared, of, "FALSE", |pipeline| {
            let own = pipeline
                .pipeline
                .machine()
                .states
                .iter()
                .filter(|standing| is_live_phase(standing.phase) == is_live);
            Some(format!("{of}state IN ({})", quoted(own.map(|standing| standing.state.as_str()))))
        })
    };
    Some(match name {
        "pipelines" => names(declared),
        "lanes" => quoted(lanes(declared)),
        "states" => quoted(states_of_kind(declared, of)),
        "live_states" => states(true),
        "past_states" => states(false),
        "lanes_of" => by_pipeline(declared, of, "NULL", |declaration| {
            let lanes = declaration.pipeline.lanes().map(ode_job::Lane::as_str);
            Some(format!("{of}lane IN ({})", quoted(lanes)))
        }),
        "births" => {
            rows(declared.iter().map(|declaration| birth(declaration.pipeline)), "('', '', '', '', FALSE)")
        }
        "cancels" => {
            rows(declared.iter().flat_map(|declaration| cancels(declaration)), "('', '', '', FALSE)")
        }
        "notified" => {
            let notified = declared.iter().filter(|declaration| declaration.notified != Notified::Nobody);
            quoted(notified.map(|declaration| declaration.pipeline.as_str()))
        }
        "own_webhook" => {
            by_pipeline(declared, of, "NULL", |declaration| match (declaration.notified, dialect) {
                (Notified::OwnerAnd(key), Dialect::Postgres) => Some(format!("{of}input ->> '{key}'")),
                // Hardly any job has one, and to find that out does not take reading the document.
                (Notified::OwnerAnd(key), Dialect::Sqlite) => {
                    Some(format!("iif(instr({of}input, '\"{key}\"'), {of}input ->> '$.{key}', NULL)"))
                }
                (Notified::Nobody | Notified::Owner, _) => None,
            })
        }
        "live_rules" => rewrite_for(dialect, declared, LIVE_RULES),
        "past_rules" => rewrite_for(dialect, declared, PAST_RULES),
        _ => return None,
    })
}

/// The phase of an ended job's state, on SQLite.
pub(crate) fn phase(declared: &[&Declaration], state: &str) -> String {
    let [done, cancelled] = ["done", "cancelled"].map(|kind| quoted(states_of_kind(declared, kind)));
    format!(
        "CASE WHEN {state} IN ({done}) THEN 'done' WHEN {state} IN ({cancelled}) THEN 'cancelled' ELSE 'failed' END"
    )
}

fn names(declared: &[&Declaration]) -> String {
    let names: Vec<&str> = declared.iter().map(|declaration| declaration.pipeline.as_str()).collect();
    names.join(", ")
}

fn lanes(declared: &[&Declaration]) -> impl Iterator<Item = &'static str> {
    declared.iter().flat_map(|declaration| declaration.pipeline.lanes()).map(ode_job::Lane::as_str)
}

/// The states of all machines of which this is true, each once.
fn states_of_kind(declared: &[&Declaration], kind: &str) -> impl Iterator<Item = &'static str> {
    let pipelines = || declared.iter().map(|declaration| declaration.pipeline);
    let mut states: Vec<&'static str> = Vec::new();
    for state in pipelines().flat_map(|pipeline| pipeline.machine().states).map(|standing| standing.state) {
        let knowing: Vec<_> =
            pipelines().filter_map(|pipeline| Some((pipeline, pipeline.standing(state)?))).collect();
        if is_of_kind(kind, &knowing) && !states.contains(&state.as_str()) {
            states.push(state.as_str());
        }
    }
    states.into_iter()
}

/// Whether a state is of a kind, by the pipelines that know it: of that phase in one; `held` in all in which it does not end a job;
/// `started` if only a job that ran ends in it, or one that is done; `unqueued` if it comes before the line in one.
fn is_of_kind(kind: &str, knowing: &[(Pipeline, &Standing)]) -> bool {
    let any = |phase| knowing.iter().any(|(_, standing)| standing.phase == phase);
    match kind {
        "running" => any(Phase::Running),
        "done" => any(Phase::Done),
        "failed" => any(Phase::Failed),
        "cancelled" => any(Phase::Cancelled),
        "held" => any(Phase::Held) && !any(Phase::Ready),
        "started" => {
            let mut ends = knowing.iter().filter(|(_, standing)| !is_live_phase(standing.phase)).peekable();
            ends.peek().is_some() && ends.all(|(pipeline, standing)| is_end_of_started(*pipeline, standing))
        }
        "unqueued" => knowing.iter().any(|(pipeline, standing)| {
            let machine = pipeline.machine();
            standing.phase == Phase::Held && machine.initial == standing.state && !machine.is_early_initial
        }),
        other => panic!("no state is of the kind {other}"),
    }
}

fn is_end_of_started(pipeline: Pipeline, standing: &Standing) -> bool {
    let mut into = pipeline.machine().edges.iter().filter(|edge| edge.to == standing.state);
    standing.phase == Phase::Done || into.all(|edge| pipeline.phase(edge.from) == Some(Phase::Running))
}

fn is_live_phase(phase: Phase) -> bool {
    matches!(phase, Phase::Held | Phase::Ready | Phase::Running)
}

/// A value for each pipeline of the row `of`, where there is one, or else another.
fn by_pipeline(
    declared: &[&Declaration],
    of: &str,
    otherwise: &str,
    value: impl Fn(&Declaration) -> Option<String>,
) -> String {
    let arm = |declaration: &&Declaration| {
        Some(format!(" WHEN '{}' THEN {}", declaration.pipeline.as_str(), value(declaration)?))
    };
    let arms: String = declared.iter().filter_map(arm).collect();
    if arms.is_empty() {
        otherwise.to_owned()
    } else {
        format!("CASE {of}pipeline{arms} ELSE {otherwise} END")
    }
}

fn birth(pipeline: Pipeline) -> String {
    let machine = pipeline.machine();
    let waiting = pipeline.path_to_ready().map_or(machine.initial, |edge| edge.to);
    let lane = pipeline.lane(waiting).map_or_else(|| "NULL".to_owned(), |lane| format!("'{lane}'"));
    format!("('{pipeline}', '{}', '{waiting}', {lane}, {})", machine.initial, machine.is_early_initial)
}

fn cancels(declaration: &Declaration) -> Vec<String> {
    let pipeline = declaration.pipeline;
    let edges = pipeline.machine().edges.iter();
    let edges = edges.filter(|edge| edge.event == Event::Cancelled && declaration.is_cancelled_in_sql);
    let row = |from: State, to: State| {
        format!("('{pipeline}', '{from}', '{to}', {})", pipeline.phase(to) == Some(Phase::Failed))
    };
    edges.map(|edge| row(edge.from, edge.to)).collect()
}

/// Rows of VALUES, which must have one.
fn rows(rows: impl Iterator<Item = String>, none: &str) -> String {
    let rows = rows.collect::<Vec<_>>().join(", ");
    if rows.is_empty() { none.to_owned() } else { rows }
}

/// Names as a list of SQL. Names of machines have nothing in them that would have to be escaped; none is empty.
fn quoted(names: impl Iterator<Item = &'static str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    if quoted.is_empty() { "''".to_owned() } else { quoted.join(", ") }
}
