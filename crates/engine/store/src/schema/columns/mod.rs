//! The columns of a job: one table, from which every list of them is rendered.
//!
//! A statement names a list by a word in braces ([`lists`] has them), which [`crate::database::dialect::render`] replaces once.
//! So a column is added in [`COLUMNS`] and by a migration, and stands in every list that it belongs in.

pub(crate) mod lists;
#[cfg(test)]
mod tests;

use crate::database::db::Param;
use crate::database::dialect::{self, Dialect};
use crate::jobs::enqueue::{NewRow, owner_columns};
use jiff::Timestamp;
use ode_job::Lane;
use serde_json::{Value, json};
use uuid::Uuid;

/// One column: what it holds, which tables have it, and where its value comes from in each statement that writes a
/// whole job. `None` leaves it to the table's default.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    kind: Kind,
    tables: Tables,
    /// The number of the engine's migration that brought it.
    since: usize,
    /// A new job's value in `job_live`.
    new: Option<New>,
    /// The value in `job_past` when the job ends. The job's row in `job_live` is `j`.
    ended: Option<Source>,
    /// The value in `job_past` of a job that is done when it is made.
    done: Option<Source>,
    /// The value in `job_live` when an ended job is tried again. Its row in `job_past` is `j`.
    reopened: Option<Source>,
    shown: Option<Shown>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Id,
    Text,
    Lane,
    Small,
    Int,
    Big,
    /// True or nothing.
    Flag,
    Moment,
    Json,
    History,
}

/// Which tables have a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    Both,
    Live,
    Past,
    /// It is made by the view `jobs`, there on PostgreSQL alone or on both databases.
    View(Option<Dialect>),
}

/// Where a new job's value comes from.
#[derive(Clone, Copy)]
enum New {
    /// Handed to the statement.
    Given(Read),
    /// Made by the statement from its parameters and from the values of [`GIVEN_BESIDE`].
    Made(&'static str),
}

/// Where a value comes from in the other statements.
#[derive(Clone, Copy)]
enum Source {
    /// The column of this name in the other table, or the value as it is given for a new job.
    Same,
    Sql(&'static str),
}

/// A column of the view `jobs`.
#[derive(Clone, Copy)]
struct Shown {
    name: &'static str,
    /// Its value for a live job and for an ended one, if it is not simply that of the column.
    live: Option<&'static str>,
    past: Option<&'static str>,
    /// Whether `JobRecord` has it; the others are there for people who query the view.
    is_read: bool,
}

/// Reads a value from a new job.
pub(crate) type Read = for<'a> fn(&Birth<'a>) -> Given<'a>;

/// A new job and the entries of the journal that record its first steps.
#[derive(Clone, Copy)]
pub(crate) struct Birth<'a> {
    pub(crate) row: &'a NewRow,
    /// Jobs that took the same steps share their entries.
    pub(crate) group: usize,
    pub(crate) seqs: &'a [i64],
}

/// A new job's value, however it is handed over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    Id(Option<Uuid>),
    Text(Option<&'a str>),
    Number(Option<i64>),
    Flag(bool),
    Moment(Option<Timestamp>),
    Json(Option<&'a Value>),
    History(&'a [i64]),
}

use Given::{Flag, History, Id, Json, Moment, Number, Text};

/// The columns, in the order of the view `jobs`; the order on disk is that of the migrations. A new one comes last, with the
/// version of its migration, as in `column("traced_by", Kind::Id).since(7).given(..).kept().shown()`.
pub(crate) const COLUMNS: &[Column] = &[
    column("id", Kind::Id).given(|new| Id(Some(new.row.id.0))).kept().shown(),
    column("owner", Kind::Id)
        .live()
        .given(|new| Id(Some(new.row.job.owner.key())))
        .reopened("coalesce(j.organisation_id, j.session_id, j.user_id, $nobody)"),
    column("reference", Kind::Text)
        .only_in_view(Some(Dialect::Postgres))
        .shown_as("reference")
        .made_of("ode_reference(id)", "ode_reference(id)")
        .unread(),
    column("pipeline", Kind::Text).given(|new| Text(Some(new.row.job.pipeline.as_str()))).kept().shown(),
    column("kind", Kind::Text).given(|new| Text(Some(&new.row.job.kind))).kept().shown_as("type"),
    column("state", Kind::Text)
        .given(|new| Text(Some(new.row.state.as_str())))
        .kept()
        .ended("$to")
        .reopened("$to")
        .shown(),
    column("phase", Kind::Text).only_in_view(None).shown().made_of(
        "CASE WHEN worker IS NOT NULL THEN 'running' WHEN lane IS NOT NULL THEN 'ready' ELSE 'held' END",
        "{phase state}",
    ),
    column("session_id", Kind::Id).given(|new| Id(owner_columns(new.row.job.owner)[0])).kept().shown(),
    column("user_id", Kind::Id).given(|new| Id(owner_columns(new.row.job.owner)[1])).kept().shown(),
    column("organisation_id", Kind::Id).given(|new| Id(owner_columns(new.row.job.owner)[2])).kept().shown(),
    column("created_by", Kind::Id).given(|new| Id(new.row.job.created_by)).kept().shown(),
    column("external_id", Kind::Text)
        .given(|new| Text(new.row.job.external_id.as_deref()))
        .kept()
        .not_done()
        .shown(),
    column("priority", Kind::Small).given(|new| Number(Some(new.row.job.priority.into()))).kept().shown(),
    column("input", Kind::Json).given(|new| Json(Some(&new.row.job.input))).kept().shown(),
    column("config", Kind::Json)
        .given(|new| Json(unless_empty(&new.row.job.config)))
        .kept()
        .shown()
        .made_of("coalesce(config, '{}')", "coalesce(config, '{}')"),
    column("metadata", Kind::Json)
        .given(|new| Json(unless_empty(&new.row.job.metadata)))
        .kept()
        .shown()
        .made_of("coalesce(metadata, '{}')", "coalesce(metadata, '{}')"),
    column("result", Kind::Json).past().ended("result").done("$result").shown(),
    column("error_code", Kind::Text).past().ended("code").shown(),
    column("error_message", Kind::Text).past().ended("message").shown(),
    column("error_detail", Kind::Text).past().ended("detail").shown(),
    column("attempts", Kind::Small).made("$started").kept().done("0").shown_as("attempt_count"),
    column("retries", Kind::Small).ended("j.retries").done("0").shown_as("retry_count"),
    column("retries_max", Kind::Small)
        .given(|new| Number(new.row.job.retries_max.map(i64::from)))
        .kept()
        .not_done()
        .shown_as("max_retries")
        .made_of("coalesce(retries_max, 3)", "coalesce(retries_max, 3)"),
    column("progress_percent", Kind::Small)
        .live()
        .shown()
        .made_of("coalesce(progress_percent, 0)", "CASE WHEN {phase state} = 'done' THEN 100 ELSE 0 END"),
    column("progress_message", Kind::Text).live().shown(),
    column("progress_step", Kind::Int)
        .live()
        .shown_as("current_step")
        .made_of("coalesce(progress_step, 0)", "0"),
    column("progress_steps", Kind::Int)
        .live()
        .shown_as("total_steps")
        .made_of("coalesce(progress_steps, 0)", "0"),
    column("worker", Kind::Id).live().made("CASE WHEN $started = 1 THEN $worker END").shown_as("worker_id"),
    column("process_pid", Kind::Big).live().shown().unread(),
    column("lease_until", Kind::Moment)
        .live()
        .made("CASE WHEN $started = 1 THEN {after $lease} END")
        .shown_as("lease_expires_at"),
    column("run_at", Kind::Moment).live().given(|new| Moment(new.row.run_at)).shown(),
    column("timeout_at", Kind::Moment)
        .live()
        .made("CASE WHEN $started = 1 THEN {after $limit_micros} END")
        .shown(),
    column("engine_version", Kind::Text).past().ended("$version").done("$version").shown(),
    column("created_at", Kind::Moment).kept().done("{now}").shown(),
    column("queued_at", Kind::Moment).kept().reopened("{now}").shown().made_of(
        "CASE WHEN state IN ({states unqueued}) OR run_at IS NOT NULL THEN queued_at
            ELSE coalesce(queued_at, created_at) END",
        "coalesce(queued_at, created_at)",
    ),
    column("started_at", Kind::Moment)
        .made("CASE WHEN $started = 1 THEN {now} END")
        .ended("j.started_at")
        .shown(),
    column("finished_at", Kind::Moment).past().shown(),
    column("updated_at", Kind::Moment).reopened("{now}").shown().made_of(
        "{latest created_at, updated_at, started_at}",
        "{latest created_at, updated_at, finished_at}",
    ),
    column("history", Kind::History)
        .given(|new| History(new.seqs))
        .kept()
        .ended("j.history || $adds")
        .reopened("j.history || $adds")
        .shown()
        .unread(),
    // Those from here on are for the engine alone.
    column("lane", Kind::Lane)
        .live()
        .given(|new| Text(new.row.lane.map(Lane::as_str)))
        .reopened("{lane $lane}"),
    column("timeout_ms", Kind::Big).given(|new| Number(new.row.timeout_ms())).kept().not_done(),
    column("advance", Kind::Flag).given(|new| Flag(new.row.job.advance)).kept().not_done(),
    column("fence", Kind::Int).made("$started").kept().done("0"),
    column("crashes", Kind::Small).live(),
    column("stop_at", Kind::Moment).live(),
];

/// What a statement that stores new jobs is handed beside the columns: whether a job is born claimed, how long its
/// attempt may take then, and the group of its steps.
const GIVEN_BESIDE: [(&str, Kind, Read); 3] = [
    ("started", Kind::Int, |new| Number(Some(new.row.is_born_claimed().into()))),
    ("limit_micros", Kind::Big, |new| Number(new.row.born_limit())),
    ("g", Kind::Int, |new| Number(i64::try_from(new.group).ok())),
];

const fn column(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        tables: Tables::Both,
        since: 1,
        new: None,
        ended: None,
        done: None,
        reopened: None,
        shown: None,
    }
}

impl Column {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no migration has added a column yet; the tests add one")
    )]
    const fn since(self, number: usize) -> Self {
        Column { since: number, ..self }
    }

    const fn live(self) -> Self {
        Column { tables: Tables::Live, ..self }
    }

    const fn past(self) -> Self {
        Column { tables: Tables::Past, ..self }
    }

    const fn only_in_view(self, of: Option<Dialect>) -> Self {
        Column { tables: Tables::View(of), ..self }
    }

    const fn given(self, read: Read) -> Self {
        Column { new: Some(New::Given(read)), ..self }
    }

    const fn made(self, sql: &'static str) -> Self {
        Column { new: Some(New::Made(sql)), ..self }
    }

    /// Goes along when the job ends and when it is tried again, and is the same where a job is done when it is made.
    const fn kept(self) -> Self {
        let done = match self.new {
            Some(New::Given(_)) => Some(Source::Same),
            Some(New::Made(_)) | None => None,
        };
        Column { ended: Some(Source::Same), reopened: Some(Source::Same), done, ..self }
    }

    const fn ended(self, sql: &'static str) -> Self {
        Column { ended: Some(Source::Sql(sql)), ..self }
    }

    const fn done(self, sql: &'static str) -> Self {
        Column { done: Some(Source::Sql(sql)), ..self }
    }

    const fn not_done(self) -> Self {
        Column { done: None, ..self }
    }

    const fn reopened(self, sql: &'static str) -> Self {
        Column { reopened: Some(Source::Sql(sql)), ..self }
    }

    const fn shown(self) -> Self {
        self.shown_as(self.name)
    }

    const fn shown_as(self, name: &'static str) -> Self {
        Column { shown: Some(Shown { name, live: None, past: None, is_read: true }), ..self }
    }

    /// What the view shows of a live job and of an ended one.
    const fn made_of(self, live: &'static str, past: &'static str) -> Self {
        match self.shown {
            Some(shown) => {
                Column { shown: Some(Shown { live: Some(live), past: Some(past), ..shown }), ..self }
            }
            None => self,
        }
    }

    const fn unread(self) -> Self {
        match self.shown {
            Some(shown) => Column { shown: Some(Shown { is_read: false, ..shown }), ..self },
            None => self,
        }
    }
}

/// The values that a new job is stored with: name, kind and how each is read.
pub(crate) fn given() -> impl Iterator<Item = (&'static str, Kind, Read)> {
    of_columns(COLUMNS).chain(GIVEN_BESIDE)
}

/// Those of them that are columns.
pub(crate) fn given_columns() -> impl Iterator<Item = (&'static str, Kind, Read)> {
    of_columns(COLUMNS)
}

fn of_columns(columns: &[Column]) -> impl Iterator<Item = (&'static str, Kind, Read)> {
    columns.iter().filter_map(|column| match column.new {
        Some(New::Given(read)) => Some((column.name, column.kind, read)),
        Some(New::Made(_)) | None => None,
    })
}

impl Birth<'_> {
    /// The values as one object.
    pub(crate) fn to_json(self) -> Value {
        given().map(|(name, _, read)| (name.to_owned(), read(&self).into_json())).collect()
    }
}

impl Given<'_> {
    pub(crate) fn is_none(&self) -> bool {
        match self {
            Id(id) => id.is_none(),
            Text(text) => text.is_none(),
            Number(number) => number.is_none(),
            Flag(flag) => !flag,
            Moment(moment) => moment.is_none(),
            Json(json) => json.is_none(),
            History(seqs) => seqs.is_empty(),
        }
    }

    /// The value as a parameter of its own.
    pub(crate) fn into_param(self, dialect: Dialect) -> Param {
        match self {
            Id(id) => id.into(),
            Text(text) => text.into(),
            Number(number) => number.into(),
            Flag(flag) => i64::from(flag).into(),
            Moment(moment) => moment.map(Timestamp::as_microsecond).into(),
            Json(json) => json.cloned().into(),
            History(seqs) => match dialect {
                Dialect::Postgres => Param::History(seqs.to_vec()),
                Dialect::Sqlite => first_history(seqs).into(),
            },
        }
    }

    fn into_json(self) -> Value {
        match self {
            Id(id) => json!(id),
            Text(text) => text.into(),
            Number(number) => number.into(),
            Flag(flag) => i32::from(flag).into(),
            Moment(moment) => moment.map(Timestamp::as_microsecond).into(),
            Json(json) => json.cloned().into(),
            History(seqs) => first_history(seqs).into(),
        }
    }
}

/// A history that begins with these entries, on SQLite.
fn first_history(seqs: &[i64]) -> String {
    dialect::sqlite::history(seqs).trim_start_matches(',').to_owned()
}

/// An empty document is the default, and the default is not stored.
fn unless_empty(json: &Value) -> Option<&Value> {
    let is_empty = json.is_null() || json.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty { None } else { Some(json) }
}
