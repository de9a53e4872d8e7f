//! The lists of a job's columns, as words of statements.
//!
//! | word | list |
//! | --- | --- |
//! | `{job_columns}` | what makes a `JobRecord`, of the view `jobs` |
//! | `{job_columns j}` | the same, of a row called `j` |
//! | `{new_columns}` | the columns of `job_live` in which a new job is stored |
//! | `{new_values}` | their values, from a row of `{given_names}` |
//! | `{new_params}` | their values, from single parameters |
//! | `{given_names}` | what is handed over of each new job |
//! | `{given_arrays}` | the same as parameters, an array for each |
//! | `{given_rows $jobs}` | the same as a JSON array |
//! | `{ended_columns}`, `{ended_values}` | the row in `job_past` of a job `j` that ends |
//! | `{ended_values given_}` | the same with variables for parameters, such as `given_to` for `$to` |
//! | `{done_columns}`, `{done_values}` | the same of a job that is done when it is made |
//! | `{reopened_columns}`, `{reopened_values}` | the row in `job_live` of a job `j` that is tried again |
//! | `{live_jobs}`, `{past_jobs}` | the halves of the view `jobs` |
//!
//! Migrations have one word, `{jobs_view}`: see [`in_migration`].

use super::{COLUMNS, Column, GIVEN_BESIDE, Kind, New, Shown, Source, Tables};
use crate::database::dialect::{Dialect, names, rewrite_for};
use crate::schema::declaration::Declaration;

/// The list of this name, which may hold words in its turn; none if there is no such list.
pub(crate) fn word(dialect: Dialect, name: &str, of: &str) -> Option<String> {
    list(COLUMNS, dialect, name, of)
}

/// The list of this name of a table of columns.
pub(super) fn list(columns: &[Column], dialect: Dialect, name: &str, of: &str) -> Option<String> {
    let given = || super::of_columns(columns).chain(GIVEN_BESIDE);
    let made: Vec<String> = match name {
        "job_columns" => {
            let read = columns.iter().filter_map(|column| column.shown).filter(|shown| shown.is_read);
            let prefix = if of.is_empty() { String::new() } else { format!("{of}.") };
            read.map(|shown| format!("{prefix}{}", shown.name)).collect()
        }
        "new_columns" => named(columns, |column| column.new.is_some()),
        "new_values" => {
            let is_given = |name: &str| given().any(|(given, ..)| given == name);
            let value = |column: &Column| new_value(dialect, column, column.name);
            let value = |column| {
                value(column).map(|sql| names::replace(&sql, |name| is_given(name).then(|| name.to_owned())))
            };
            columns.iter().filter_map(value).collect()
        }
        "new_params" => {
            let value = |column: &Column| new_value(dialect, column, &format!("${}", column.name));
            columns.iter().filter_map(value).collect()
        }
        "given_names" => given().map(|(name, ..)| name.to_owned()).collect(),
        "given_arrays" => given().map(|(name, kind, _)| format!("${name}::{}[]", kind.of_array())).collect(),
        "given_rows" => {
            let typed: Vec<String> =
                given().map(|(name, kind, _)| format!("{name} {}", kind.of_rows())).collect();
            vec![format!("{{rows {of}: {}}}", typed.join(", "))]
        }
        "ended_columns" => named(columns, |column| column.ended.is_some()),
        "ended_values" => {
            let value = |column: &Column| moved(column, column.ended?);
            let name = |name: &str| (!of.is_empty()).then(|| format!("{of}{name}"));
            columns.iter().filter_map(value).map(|sql| names::replace(&sql, name)).collect()
        }
        "done_columns" => named(columns, |column| column.done.is_some()),
        "done_values" => columns.iter().filter_map(|column| done(dialect, column)).collect(),
        "reopened_columns" => named(columns, |column| column.reopened.is_some()),
        "reopened_values" => columns.iter().filter_map(|column| moved(column, column.reopened?)).collect(),
        "live_jobs" => columns.iter().filter_map(|column| shown(dialect, column, Tables::Live)).collect(),
        "past_jobs" => columns.iter().filter_map(|column| shown(dialect, column, Tables::Past)).collect(),
        _ => return None,
    };
    Some(made.join(", "))
}

/// A file of the engine's migration of this number, up or down. The word `{jobs_view}` makes the view `jobs` anew there, of the
/// columns there are then. Other views stand on it, so on the way down it keeps those that go with this migration, as
/// NULL, and the tables can drop them.
pub(crate) fn in_migration(
    dialect: Dialect,
    declared: &[&Declaration],
    number: usize,
    is_up: bool,
    sql: &str,
) -> String {
    rewrite_for(dialect, declared, &sql.replace("{jobs_view}", &view(COLUMNS, dialect, number, is_up)))
}

/// A file of the schema of this program.
pub(crate) fn in_newest(dialect: Dialect, declared: &[&Declaration], sql: &str) -> String {
    in_migration(dialect, declared, usize::MAX, true, sql)
}

pub(super) fn view(columns: &[Column], dialect: Dialect, number: usize, is_up: bool) -> String {
    let as_null = |column: &Column| match column.shown {
        Some(shown) if !is_up && column.since == number => {
            let shown = Some(Shown { live: None, past: None, ..shown });
            Column { tables: Tables::View(None), shown, ..*column }
        }
        _ => *column,
    };
    let columns: Vec<Column> = columns.iter().filter(|column| column.since <= number).map(as_null).collect();
    let half = |name| list(&columns, dialect, name, "").unwrap_or_default();
    let create = match dialect {
        Dialect::Postgres => "CREATE OR REPLACE VIEW jobs WITH (security_invoker) AS",
        Dialect::Sqlite => "DROP VIEW IF EXISTS jobs; CREATE VIEW jobs AS",
    };
    let (live, past) = (half("live_jobs"), half("past_jobs"));
    format!("{create} SELECT {live} FROM job_live UNION ALL SELECT {past} FROM job_past;")
}

pub(super) fn named(columns: &[Column], is_in: impl Fn(&Column) -> bool) -> Vec<String> {
    columns.iter().filter(|column| is_in(column)).map(|column| column.name.to_owned()).collect()
}

/// A new job's value: what it is given, as the column stores it, or what the statement makes.
fn new_value(dialect: Dialect, column: &Column, given: &str) -> Option<String> {
    Some(match column.new? {
        New::Given(_) => column.kind.stored(dialect, given),
        New::Made(sql) => sql.to_owned(),
    })
}

/// The value of a job whose row moves from one table to the other.
fn moved(column: &Column, from: Source) -> Option<String> {
    Some(match from {
        Source::Same => format!("j.{}", column.name),
        Source::Sql(sql) => sql.to_owned(),
    })
}

fn done(dialect: Dialect, column: &Column) -> Option<String> {
    Some(match column.done? {
        Source::Same => column.kind.stored(dialect, &format!("${}", column.name)),
        Source::Sql(sql) => sql.to_owned(),
    })
}

/// A column of one half of the view `jobs`. Both halves have the same types: only then does SQLite look up single jobs
/// in the tables behind it.
fn shown(dialect: Dialect, column: &Column, half: Tables) -> Option<String> {
    let Shown { name, live, past, .. } = column.shown?;
    if matches!(column.tables, Tables::View(Some(only)) if only != dialect) {
        return None;
    }
    let made = if half == Tables::Live { live } else { past };
    let own = (column.tables == half || column.tables == Tables::Both).then_some(column.name);
    let value = made.or(own).unwrap_or("NULL");
    let value = match dialect {
        Dialect::Postgres if value.contains(' ') => format!("({value})::{}", column.kind.on_postgres()),
        Dialect::Postgres => format!("{value}::{}", column.kind.on_postgres()),
        Dialect::Sqlite if value == "NULL" => format!("CAST(NULL AS {})", column.kind.on_sqlite()),
        Dialect::Sqlite => value.to_owned(),
    };
    Some(format!("{value} AS {name}"))
}

impl Kind {
    /// The type on PostgreSQL, without the bounds that a domain adds.
    pub(super) fn on_postgres(self) -> &'static str {
        match self {
            Kind::Id => "uuid",
            Kind::Text => "text",
            Kind::Lane => "ode_lane",
            Kind::Small => "smallint",
            Kind::Int => "integer",
            Kind::Big => "bigint",
            Kind::Flag => "boolean",
            Kind::Moment => "timestamptz",
            Kind::Json => "jsonb",
            Kind::History => "bytea",
        }
    }

    pub(super) fn on_sqlite(self) -> &'static str {
        match self {
            Kind::Id => "BLOB",
            Kind::Text | Kind::Lane | Kind::Json | Kind::History => "TEXT",
            Kind::Small | Kind::Int | Kind::Big | Kind::Flag | Kind::Moment => "INTEGER",
        }
    }

    /// The type of a given value in an array.
    fn of_array(self) -> &'static str {
        match self {
            Kind::Id => "uuid",
            Kind::Text | Kind::Lane => "text",
            Kind::Small | Kind::Int | Kind::Big | Kind::Flag | Kind::Moment => "bigint",
            Kind::Json => "jsonb",
            Kind::History => "bytea",
        }
    }

    /// The type of a given value for the word `{rows}`.
    fn of_rows(self) -> &'static str {
        match self {
            Kind::Id => "uuid",
            Kind::Text | Kind::Lane | Kind::History => "text",
            Kind::Small | Kind::Int | Kind::Big | Kind::Flag => "int",
            Kind::Moment => "moment",
            Kind::Json => "json",
        }
    }

    /// A given value as the column stores it.
    fn stored(self, dialect: Dialect, given: &str) -> String {
        match (self, dialect) {
            (Kind::Lane, Dialect::Postgres) => format!("{given}::ode_lane"),
            (Kind::Flag, Dialect::Postgres) => format!("CASE WHEN {given} = 1 THEN TRUE END"),
            (Kind::Flag, Dialect::Sqlite) => format!("nullif({given}, 0)"),
            (Kind::Moment, Dialect::Postgres) => {
                format!("timestamptz 'epoch' + {given} * interval '1 microsecond'")
            }
            _ => given.to_owned(),
        }
    }
}
