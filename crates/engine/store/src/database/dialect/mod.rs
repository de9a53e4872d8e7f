//! What truly differs between the two databases: the clock, rows as parameters, the four statements of the
//! hot path (enqueue, claim, end, move), opening, and what their errors mean.
//!
//! Statements elsewhere are written once, with a few words in braces that are put into each database's own
//! terms here:
//!
//! | written | meaning |
//! | --- | --- |
//! | `{now}` | the database's clock |
//! | `{after $2}` | that many microseconds from now |
//! | `{rows $1: id uuid, n int, at moment, doc json, name text}` | a JSON array as a table `r` |
//! | `{told history}` | whether a history holds the entry `$2` |
//! | `{last history}` | the number of its last entry |
//! | `{lane $2}` | a text as a lane, and `{text lane}` the other way |
//! | `{json $3}` | a text as JSON |
//! | `{joined seq}` | the numbers of all rows as one text, lowest first |
//! | `{object path}` | the file of the storage that a path is about |
//! | `{tail id}` | the last eight hexadecimal digits of an id |
//! | `{phase state}` | the phase of a state in which a job has ended |
//! | `{latest a, b}` | the latest of moments, of which the first is never missing |
//!
//! The lists of a job's columns are words, too: see [`crate::schema::columns::lists`]; and what follows from the machines: see
//! [`crate::schema::machines::word`]. Parameters have numbers, `$1`, or names,
//! `$worker`: see [`names`].

pub(crate) mod names;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use crate::error::Error;
use crate::schema::columns::lists;
use crate::schema::declaration::{Declaration, declared};
use crate::schema::machines;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL 14 or newer.
    Postgres,
    /// SQLite, embedded.
    Sqlite,
}

/// A statement in a database's terms.
#[derive(Clone, Copy)]
struct Rendered {
    sql: &'static str,
    /// Its parameters, in the order of their numbers, if it has names for them.
    names: &'static [String],
}

/// The statement in this database's terms.
pub(crate) fn render(dialect: Dialect, sql: &'static str) -> &'static str {
    if !sql.contains('{') && !names::has_names(sql) {
        return sql;
    }
    rendered(dialect, sql).sql
}

/// The statement and its parameters. Rendered once and kept for the life of the process: statements are constants, so
/// their number is bounded.
fn rendered(dialect: Dialect, sql: &'static str) -> Rendered {
    static RENDERED: Mutex<Option<HashMap<(Dialect, usize), Rendered>>> = Mutex::new(None);
    let mut rendered = RENDERED.lock().unwrap_or_else(PoisonError::into_inner);
    let rendered = rendered.get_or_insert_with(HashMap::new);
    *rendered.entry((dialect, sql.as_ptr() as usize)).or_insert_with(|| {
        let (sql, names) = names::number(&rewrite(dialect, sql));
        Rendered { sql: sql.leak(), names: names.leak() }
    })
}

/// The statement with its parameters counted from another number on.
pub(crate) fn renumbered(sql: &str, offset: usize) -> String {
    let mut parts = sql.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push('$');
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match part[..digits].parse::<usize>() {
            Ok(number) => out.push_str(&(number + offset).to_string()),
            // The root of a document in JSON.
            Err(_) => out.push_str(&part[..digits]),
        }
        out.push_str(&part[digits..]);
    }
    out
}

/// The text with its words replaced.
pub(crate) fn rewrite(dialect: Dialect, sql: &str) -> String {
    rewrite_for(dialect, declared(), sql)
}

/// The same where other pipelines are declared.
pub(crate) fn rewrite_for(dialect: Dialect, declared: &[&Declaration], sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() * 2);
    let mut rest = sql;
    while let Some(open) = rest.find('{') {
        // A statement may hold braces in a string literal ('{}'), which are not ours.
        if rest[open..].starts_with("{}") {
            out.push_str(&rest[..open + 2]);
            rest = &rest[open + 2..];
            continue;
        }
        let close = open + rest[open..].find('}').expect("every brace of a statement is closed");
        out.push_str(&rest[..open]);
        out.push_str(&word(dialect, declared, &rest[open + 1..close]));
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    out
}

fn word(dialect: Dialect, declared: &[&Declaration], word: &str) -> String {
    use Dialect::{Postgres, Sqlite};
    let (verb, rest) = word.split_once(' ').unwrap_or((word, ""));
    match (verb, dialect) {
        ("now", Postgres) => "now()".into(),
        ("now", Sqlite) => sqlite::NOW.into(),
        ("after", Postgres) => format!("(now() + {rest}::bigint * interval '1 microsecond')"),
        ("after", Sqlite) => format!("({} + {rest})", sqlite::NOW),
        ("told", Postgres) => format!("position($2 IN {rest}) > 0"),
        ("told", Sqlite) => format!("instr(',' || {rest} || ',', $2 || ',') > 0"),
        ("last", Postgres) => format!("ode_seq({rest}, octet_length({rest}) / 7)"),
        ("last", Sqlite) => {
            format!("CAST(substr({rest}, length(rtrim({rest}, '0123456789')) + 1) AS INTEGER)")
        }
        ("tail", Postgres) => format!("right({rest}::text, 8)"),
        ("tail", Sqlite) => format!("lower(substr(hex({rest}), 25))"),
        ("phase", Postgres) => format!("ode_phase({rest})"),
        ("phase", Sqlite) => machines::phase(declared, rest),
        ("latest", Postgres) => format!("greatest({rest})"),
        ("latest", Sqlite) => sqlite::latest(rest),
        ("joined", Postgres) => format!("string_agg({rest}::text, ',' ORDER BY {rest})"),
        ("joined", Sqlite) => format!("group_concat({rest}, ',' ORDER BY {rest})"),
        ("object", Postgres) => format!("split_part({rest}, '@', 1)"),
        ("object", Sqlite) => format!("substr({rest}, 1, instr({rest} || '@', '@') - 1)"),
        ("lane", Postgres) => format!("{rest}::ode_lane"),
        ("text", Postgres) => format!("{rest}::text"),
        ("json", Postgres) => format!("{rest}::json"),
        ("lane" | "text" | "json", Sqlite) => rest.into(),
        ("rows", Postgres) => postgres::rows(rest),
        ("rows", Sqlite) => sqlite::rows(rest),
        (other, _) => match lists::word(dialect, other, rest) {
            Some(list) => rewrite_for(dialect, declared, &list),
            None => machines::word(dialect, declared, other, rest)
                .unwrap_or_else(|| panic!("the statement word {{{other}}} is not known")),
        },
    }
}

/// Splits `$1: id uuid, n int` into the parameter and its columns.
fn columns(spec: &str) -> (&str, Vec<(&str, &str)>) {
    let (param, columns) = spec.split_once(':').expect("rows are written {rows $1: name type, ...}");
    let columns = columns
        .split(',')
        .map(|column| column.trim().split_once(' ').expect("a column of {rows} has a name and a type"));
    (param.trim(), columns.collect())
}

/// What a database error means to the caller.
pub(crate) fn classify(error: sqlx::Error) -> Error {
    match &error {
        sqlx::Error::Io(reason) => Error::Unavailable(reason.to_string()),
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
            Error::Unavailable(error.to_string())
        }
        sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => Error::Unavailable(error.to_string()),
        sqlx::Error::Configuration(reason) => Error::Config(format!(
            "The database address is not understood: {reason}. Use postgres://user@host/name or sqlite:PATH."
        )),
        sqlx::Error::Database(said) => {
            let code = said.code().unwrap_or_default();
            // Each is asked for its own codes only: read as SQLite's, many of PostgreSQL's mean "busy".
            let is_postgres = said.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some();
            let meaning = if is_postgres { postgres::meaning(&code) } else { sqlite::meaning(&code) };
            // SQLite's triggers can only say so.
            let is_taken =
                said.is_unique_violation() || said.message().starts_with("UNIQUE constraint failed");
            let said = said.message().to_owned();
            if is_taken && said.contains("job_journal") {
                return Error::Collision;
            }
            if said.contains("database or disk is full") {
                return Error::DiskFull(said);
            }
            meaning.unwrap_or(Error::Database)(said)
        }
        _ => Error::Database(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_from_where_others_end() {
        assert_eq!(renumbered("SELECT $1, $12 + $2, x ->> '$.a'", 3), "SELECT $4, $15 + $5, x ->> '$.a'");
    }

    #[test]
    fn words_are_put_into_each_databases_terms() {
        let sql = "SELECT '{}', {after $2} FROM {rows $1: id uuid, at moment}";
        assert_eq!(
            rewrite(Dialect::Postgres, sql),
            "SELECT '{}', (now() + $2::bigint * interval '1 microsecond') FROM \
             (SELECT id, timestamptz 'epoch' + at * interval '1 microsecond' AS at \
             FROM json_to_recordset($1::json) AS x (id uuid, at bigint)) AS r"
        );
        assert_eq!(
            rewrite(Dialect::Sqlite, sql),
            format!(
                "SELECT '{{}}', ({} + $2) FROM (SELECT unhex(value ->> 'id', '-') AS id, \
                 value ->> 'at' AS at FROM jsonb_each($1)) AS r",
                sqlite::NOW
            )
        );
    }
}
