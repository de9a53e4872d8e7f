//! One face for two databases: parameters, rows and transactions, so that every verb is written once.
//!
//! Values are bound and read by what they mean (an id, a moment, a document); how each database stores them
//! is known here and in [`crate::database::dialect`] only.

use crate::database::connections::{Backend, Connections, Transaction};
use crate::database::dialect::{self, Dialect};
use crate::error::Error;
use jiff::Timestamp;
use ode_job::JobId;
use serde_json::Value;
use sqlx::postgres::{PgArguments, PgConnection, PgRow, PgTypeInfo};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::types::Json;
use sqlx::{
    Arguments, AssertSqlSafe, Decode, Encode, Postgres, Row as _, Sqlite, TypeInfo, ValueRef, query_with,
    raw_sql,
};
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// A value to bind.
#[derive(Debug, Clone)]
pub enum Param {
    Int(Option<i64>),
    Text(Option<String>),
    Id(Option<Uuid>),
    Moment(Option<Timestamp>),
    Json(Option<serde_json::Value>),
    /// A JSON document already written as text.
    Rows(String),
    /// The journal's list of ids.
    Ids(Vec<Uuid>),
    Bytes(Vec<u8>),
    /// Numbers of journal entries, as what they add to a history.
    History(Vec<i64>),
    /// Columns of a batch, for PostgreSQL: an array is read several times faster there than rows of JSON.
    Ints(Vec<Option<i64>>),
    OptIds(Vec<Option<Uuid>>),
    Histories(Vec<Vec<i64>>),
    Texts(Vec<Option<String>>),
    Jsons(Vec<Option<serde_json::Value>>),
}

macro_rules! param_from {
    ($($from:ty => |$value:ident| $param:expr;)+) => {
        $(impl From<$from> for Param {
            fn from($value: $from) -> Param { $param }
        })+
    };
}

param_from! {
    i64 => |value| Param::Int(Some(value));
    Option<i64> => |value| Param::Int(value);
    &str => |value| Param::Text(Some(value.to_owned()));
    String => |value| Param::Text(Some(value));
    Option<String> => |value| Param::Text(value);
    Option<&str> => |value| Param::Text(value.map(str::to_owned));
    Uuid => |value| Param::Id(Some(value));
    Option<Uuid> => |value| Param::Id(value);
    JobId => |value| Param::Id(Some(value.0));
    ode_job::WorkerId => |value| Param::Id(Some(value.0));
    Timestamp => |value| Param::Moment(Some(value));
    Option<Timestamp> => |value| Param::Moment(value);
    serde_json::Value => |value| Param::Json(Some(value));
    Option<serde_json::Value> => |value| Param::Json(value);
    Vec<Uuid> => |value| Param::Ids(value);
}

impl Param {
    /// Rows for the statement word `{rows}`.
    pub fn rows(rows: impl IntoIterator<Item = Value>) -> Param {
        Param::Rows(Value::Array(rows.into_iter().collect()).to_string())
    }

    /// Single values of one kind as an array.
    pub(crate) fn column(values: impl Iterator<Item = Param>) -> Param {
        let mut column = Param::Int(None);
        values.for_each(|value| column.gather(value));
        column
    }

    /// Adds a value to the end of this column, which is none before its first.
    fn gather(&mut self, value: Param) {
        match (self, value) {
            (Param::Ints(column), Param::Int(value)) => column.push(value),
            (Param::Texts(column), Param::Text(value)) => column.push(value),
            (Param::OptIds(column), Param::Id(value)) => column.push(value),
            (Param::Jsons(column), Param::Json(value)) => column.push(value),
            (Param::Histories(column), Param::History(value)) => column.push(value),
            (column, value) => {
                *column = match value {
                    Param::Int(value) => Param::Ints(vec![value]),
                    Param::Text(value) => Param::Texts(vec![value]),
                    Param::Id(value) => Param::OptIds(vec![value]),
                    Param::Json(value) => Param::Jsons(vec![value]),
                    Param::History(value) => Param::Histories(vec![value]),
                    other => other,
                }
            }
        }
    }
}

/// Builds a list of [`Param`]s, or such with names.
#[macro_export]
macro_rules! params {
    ($($name:ident: $value:expr),+ $(,)?) => {
        $crate::sql::Named::default()$(.with(stringify!($name), $value))+
    };
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Param::from($value)),*] };
}
pub use crate::params;

/// Text that both databases can hold: PostgreSQL has no place for U+0000.
pub fn without_nul(text: &str) -> String {
    text.replace('\0', " ")
}

/// The same for every text of a document, in place: hardly any has something to change.
pub fn blank_nuls(json: &mut Value) {
    match json {
        Value::String(text) if text.contains('\0') => *text = without_nul(text),
        Value::Array(items) => items.iter_mut().for_each(blank_nuls),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains('\0')) {
                let blanked = |(name, value): (String, Value)| (without_nul(&name), value);
                *fields = std::mem::take(fields).into_iter().map(blanked).collect();
            }
            fields.values_mut().for_each(blank_nuls);
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn to_postgres(params: &[Param]) -> Result<PgArguments, sqlx::error::BoxDynError> {
    let mut args = PgArguments::default();
    for param in params {
        match param {
            Param::Int(value) => args.add(*value)?,
            Param::Text(value) => args.add(value.as_deref())?,
            Param::Id(value) => args.add(*value)?,
            Param::Moment(value) => args.add(value.map(PgMoment))?,
            Param::Json(value) => args.add(value.as_ref().map(Json))?,
            Param::Rows(text) => args.add(text.as_str())?,
            Param::Ids(ids) => args.add(ids.as_slice())?,
            Param::Bytes(bytes) => args.add(bytes.as_slice())?,
            Param::History(seqs) => args.add(dialect::postgres::history(seqs))?,
            Param::Ints(ints) => args.add(ints.as_slice())?,
            Param::OptIds(ids) => args.add(ids.as_slice())?,
            Param::Histories(jobs) => {
                args.add(jobs.iter().map(|seqs| dialect::postgres::history(seqs)).collect::<Vec<_>>())?
            }
            Param::Texts(texts) => args.add(texts.as_slice())?,
            Param::Jsons(jsons) => {
                args.add(jsons.iter().map(|json| json.as_ref().map(Json)).collect::<Vec<_>>())?
            }
        }
    }
    Ok(args)
}

fn to_sqlite(params: &[Param]) -> Result<SqliteArguments, sqlx::error::BoxDynError> {
    let mut args = SqliteArguments::default();
    for param in params {
        match param {
            Param::Int(value) => args.add(*value)?,
            Param::Text(value) => args.add(value.clone())?,
            Param::Id(value) => args.add(*value)?,
            Param::Moment(value) => args.add(value.map(|moment| moment.as_microsecond()))?,
            Param::Json(value) => args.add(value.as_ref().map(ToString::to_string))?,
            Param::Rows(text) => args.add(text.clone())?,
            Param::Ids(ids) => args.add(ids.iter().flat_map(Uuid::as_bytes).copied().collect::<Vec<u8>>())?,
            Param::Bytes(bytes) => args.add(bytes.clone())?,
            Param::History(seqs) => args.add(dialect::sqlite::history(seqs))?,
            Param::Ints(_) | Param::OptIds(_) | Param::Histories(_) | Param::Texts(_) | Param::Jsons(_) => {
                return Err("SQLite has no arrays".into());
            }
        }
    }
    Ok(args)
}

/// A moment in PostgreSQL's own form: microseconds since the year 2000.
struct PgMoment(Timestamp);

const PG_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// The built-in type `timestamptz`.
const TIMESTAMPTZ: PgTypeInfo = PgTypeInfo::with_oid(sqlx::postgres::types::Oid(1184));

impl sqlx::Type<Postgres> for PgMoment {
    fn type_info() -> PgTypeInfo {
        TIMESTAMPTZ
    }
}

impl Encode<'_, Postgres> for PgMoment {
    fn encode_by_ref(
        &self,
        buffer: &mut sqlx::postgres::PgArgumentBuffer,
    ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
        let micros = self.0.as_microsecond() - PG_EPOCH_MICROS;
        <i64 as Encode<Postgres>>::encode_by_ref(&micros, buffer)
    }
}

/// One row of an answer.
pub struct Row(AnyRow);

enum AnyRow {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

impl Row {
    pub fn int(&self, column: &str) -> Result<i64, Error> {
        self.opt_int(column)?.ok_or_else(|| missing(column))
    }

    pub fn opt_int(&self, column: &str) -> Result<Option<i64>, Error> {
        match &self.0 {
            AnyRow::Sqlite(row) => Ok(row.try_get(column)?),
            // PostgreSQL's integers come in three widths; which one a column has is a matter of storage.
            AnyRow::Postgres(row) => {
                let raw = row.try_get_raw(column)?;
                let width = raw.type_info().name().to_owned();
                match width.as_str() {
                    "INT2" => Ok(row.try_get::<Option<i16>, _>(column)?.map(i64::from)),
                    "INT4" => Ok(row.try_get::<Option<i32>, _>(column)?.map(i64::from)),
                    _ => Ok(row.try_get(column)?),
                }
            }
        }
    }

    pub fn opt_real(&self, column: &str) -> Result<Option<f64>, Error> {
        match &self.0 {
            AnyRow::Postgres(row) => Ok(row.try_get(column)?),
            AnyRow::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    pub fn text(&self, column: &str) -> Result<String, Error> {
        self.opt_text(column)?.ok_or_else(|| missing(column))
    }

    pub fn opt_text(&self, column: &str) -> Result<Option<String>, Error> {
        match &self.0 {
            AnyRow::Postgres(row) => Ok(row.try_get(column)?),
            AnyRow::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    pub fn uuid(&self, column: &str) -> Result<Uuid, Error> {
        self.opt_uuid(column)?.ok_or_else(|| missing(column))
    }

    pub fn opt_uuid(&self, column: &str) -> Result<Option<Uuid>, Error> {
        match &self.0 {
            AnyRow::Postgres(row) => Ok(row.try_get(column)?),
            AnyRow::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    pub fn bytes(&self, column: &str) -> Result<Vec<u8>, Error> {
        match &self.0 {
            AnyRow::Postgres(row) => Ok(row.try_get(column)?),
            AnyRow::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    pub fn opt_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Error> {
        match &self.0 {
            AnyRow::Postgres(row) => Ok(row.try_get(column)?),
            AnyRow::Sqlite(row) => Ok(row.try_get(column)?),
        }
    }

    /// A list of jobs as the journal keeps it.
    pub fn jobs(&self, column: &str) -> Result<Vec<JobId>, Error> {
        let ids: Vec<Uuid> = match &self.0 {
            AnyRow::Postgres(row) => row.try_get(column)?,
            AnyRow::Sqlite(row) => {
                let bytes: Vec<u8> = row.try_get(column)?;
                bytes.chunks_exact(16).filter_map(|id| Uuid::from_slice(id).ok()).collect()
            }
        };
        Ok(ids.into_iter().map(JobId).collect())
    }

    pub fn job(&self, column: &str) -> Result<JobId, Error> {
        self.uuid(column).map(JobId)
    }

    pub fn moment(&self, column: &str) -> Result<Timestamp, Error> {
        self.opt_moment(column)?.ok_or_else(|| missing(column))
    }

    pub fn opt_moment(&self, column: &str) -> Result<Option<Timestamp>, Error> {
        let micros = match &self.0 {
            AnyRow::Sqlite(row) => row.try_get::<Option<i64>, _>(column)?,
            AnyRow::Postgres(row) => {
                let raw = row.try_get_raw(column)?;
                if raw.is_null() {
                    None
                } else {
                    let since_2000 = <i64 as Decode<Postgres>>::decode(raw).map_err(|_| missing(column))?;
                    Some(since_2000.saturating_add(PG_EPOCH_MICROS))
                }
            }
        };
        // PostgreSQL knows dates before and after all of ours, and infinity: one such date, written by somebody
        // in SQL, must not make a whole list unreadable.
        let clamped = |micros: i64| if micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Ok(micros.map(|micros| Timestamp::from_microsecond(micros).unwrap_or_else(|_| clamped(micros))))
    }

    pub fn json(&self, column: &str) -> Result<serde_json::Value, Error> {
        self.opt_json(column)?.ok_or_else(|| missing(column))
    }

    pub fn opt_json(&self, column: &str) -> Result<Option<serde_json::Value>, Error> {
        match &self.0 {
            AnyRow::Postgres(row) => {
                Ok(row.try_get::<Option<Json<serde_json::Value>>, _>(column)?.map(|Json(value)| value))
            }
            AnyRow::Sqlite(row) => {
                let text: Option<String> = row.try_get(column)?;
                text.map(|text| serde_json::from_str(&text).map_err(|_| missing(column))).transpose()
            }
        }
    }

    /// A name of one of our enums.
    pub fn name<T: std::str::FromStr>(&self, column: &str) -> Result<T, Error> {
        self.text(column)?.parse().map_err(|_| missing(column))
    }
}

fn missing(column: &str) -> Error {
    Error::Corrupt(format!("column {column} holds nothing, or something this version cannot read"))
}

/// A statement, or on SQLite several in one text, with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) sql: &'static str,
    pub(crate) params: Vec<Param>,
}

/// Runs a whole transaction without a pause: each statement of its own would cost two changes of thread.
async fn write_at_once(connections: &Connections<Sqlite>, scripts: &[Script]) -> Result<Vec<Row>, Error> {
    let (mut sql, mut params) = ("BEGIN IMMEDIATE;".to_owned(), Vec::new());
    for script in scripts {
        let statement = dialect::render(Dialect::Sqlite, script.sql);
        sql.push_str(&dialect::renumbered(statement, params.len()));
        sql.push(';');
        params.extend_from_slice(&script.params);
    }
    sql.push_str("COMMIT");
    let args = to_sqlite(&params).map_err(sqlx::Error::Encode)?;
    SENT.fetch_add(1, Ordering::Relaxed);
    let mut tx = connections.transaction().await?;
    let rows = query_with(AssertSqlSafe(sql), args).fetch_all(&mut *tx).await?;
    tx.ended();
    Ok(rows.into_iter().map(|row| Row(AnyRow::Sqlite(row))).collect())
}

/// An open database.
#[derive(Clone, Debug)]
pub(crate) enum Db {
    Postgres(Connections<Postgres>),
    /// SQLite has one writer at a time; giving it one connection turns contention into a queue.
    Sqlite {
        write: Connections<Sqlite>,
        read: Connections<Sqlite>,
    },
}

impl Db {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Db::Postgres(_) => Dialect::Postgres,
            Db::Sqlite { .. } => Dialect::Sqlite,
        }
    }

    /// Runs one reading statement.
    pub(crate) async fn read(&self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        let sql = dialect::render(self.dialect(), sql);
        match self {
            Db::Postgres(connections) => connections.fetch(sql, params).await,
            Db::Sqlite { read, .. } => read.fetch(sql, params).await,
        }
    }

    /// Runs one writing statement, which is its own transaction.
    pub(crate) async fn write(&self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        let sql = dialect::render(self.dialect(), sql);
        match self {
            Db::Postgres(connections) => connections.fetch(sql, params).await,
            Db::Sqlite { write, .. } => write.fetch(sql, params).await,
        }
    }

    /// Runs statements as one transaction. Answers the rows of all of them.
    pub(crate) async fn write_all(&self, scripts: &[Script]) -> Result<Vec<Row>, Error> {
        match (self, scripts) {
            (Db::Sqlite { write, .. }, scripts) => write_at_once(write, scripts).await,
            (Db::Postgres(_), [Script { sql, params }]) => self.write(sql, params).await,
            (Db::Postgres(_), scripts) => {
                let (mut tx, mut rows) = (self.begin().await?, Vec::new());
                for script in scripts {
                    rows.extend(tx.run(script.sql, &script.params).await?);
                }
                tx.commit().await?;
                Ok(rows)
            }
        }
    }

    /// Opens a transaction that may write.
    pub(crate) async fn begin(&self) -> Result<Tx, Error> {
        match self {
            Db::Postgres(connections) => Ok(Tx(AnyTx::Postgres(connections.begin("BEGIN").await?))),
            Db::Sqlite { write, .. } => Ok(Tx(AnyTx::Sqlite(write.begin("BEGIN IMMEDIATE").await?))),
        }
    }

    /// Runs a file of statements without parameters, as one transaction.
    pub(crate) async fn run_file(tx: &mut Tx, sql: String) -> Result<(), Error> {
        let sql = raw_sql(AssertSqlSafe(sql));
        match &mut tx.0 {
            AnyTx::Postgres(tx) => sql.execute(&mut **tx).await.map(drop)?,
            AnyTx::Sqlite(tx) => sql.execute(&mut **tx).await.map(drop)?,
        }
        Ok(())
    }

    /// After a change of the schema: statements prepared for the tables of before do not fit any more.
    pub(crate) fn forget_tables(&self) {
        if let Db::Postgres(connections) = self {
            connections.forget();
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Db::Postgres(connections) => connections.close().await,
            Db::Sqlite { write, read } => {
                read.close().await;
                write.close().await;
            }
        }
    }
}

/// An open transaction; dropped, it is rolled back.
pub struct Tx(AnyTx);

enum AnyTx {
    Postgres(Transaction<Postgres>),
    Sqlite(Transaction<Sqlite>),
}

impl Tx {
    /// Which database it is in.
    pub fn dialect(&self) -> Dialect {
        match &self.0 {
            AnyTx::Postgres(_) => Dialect::Postgres,
            AnyTx::Sqlite(_) => Dialect::Sqlite,
        }
    }

    /// Runs one statement.
    pub async fn run(&mut self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        let sql = dialect::render(self.dialect(), sql);
        match &mut self.0 {
            AnyTx::Postgres(tx) => Postgres::fetch(tx, sql, params).await,
            AnyTx::Sqlite(tx) => Sqlite::fetch(tx, sql, params).await,
        }
    }

    /// The PostgreSQL transaction, for what only PostgreSQL has.
    pub(crate) fn postgres(&mut self) -> Option<&mut Transaction<Postgres>> {
        match &mut self.0 {
            AnyTx::Postgres(tx) => Some(tx),
            AnyTx::Sqlite(_) => None,
        }
    }

    /// Lets this transaction remove what is otherwise append-only.
    pub(crate) async fn begin_retention(&mut self) -> Result<(), Error> {
        let sql = match self.dialect() {
            Dialect::Postgres => "SELECT set_config('ode.retention', 'on', TRUE)",
            Dialect::Sqlite => "INSERT INTO retention_pass (open) VALUES (1)",
        };
        self.run(sql, params![]).await.map(drop)
    }

    pub(crate) async fn end_retention(&mut self) -> Result<(), Error> {
        match self.dialect() {
            // The setting ends with the transaction.
            Dialect::Postgres => Ok(()),
            Dialect::Sqlite => self.run("DELETE FROM retention_pass", params![]).await.map(drop),
        }
    }

    /// Makes what it wrote durable.
    pub async fn commit(self) -> Result<(), Error> {
        match self.0 {
            AnyTx::Postgres(tx) => Ok(tx.commit().await?),
            AnyTx::Sqlite(tx) => Ok(tx.commit().await?),
        }
    }
}

/// Statements sent by this process, of all stores: what an idle process costs its database.
pub(crate) static SENT: AtomicU64 = AtomicU64::new(0);

impl Backend for Postgres {
    async fn run(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
        raw_sql(sql).execute(connection).await.map(drop)
    }

    async fn fetch(
        connection: &mut PgConnection,
        sql: &'static str,
        params: &[Param],
    ) -> Result<Vec<Row>, Error> {
        SENT.fetch_add(1, Ordering::Relaxed);
        let args = to_postgres(params).map_err(sqlx::Error::Encode)?;
        let rows = query_with(sql, args).fetch_all(connection).await?;
        Ok(rows.into_iter().map(|row| Row(AnyRow::Postgres(row))).collect())
    }
}

impl Backend for Sqlite {
    async fn run(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
        raw_sql(sql).execute(connection).await.map(drop)
    }

    async fn fetch(
        connection: &mut SqliteConnection,
        sql: &'static str,
        params: &[Param],
    ) -> Result<Vec<Row>, Error> {
        SENT.fetch_add(1, Ordering::Relaxed);
        let args = to_sqlite(params).map_err(sqlx::Error::Encode)?;
        let rows = query_with(sql, args).fetch_all(connection).await?;
        Ok(rows.into_iter().map(|row| Row(AnyRow::Sqlite(row))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn numbers(db: &Db) -> Vec<i64> {
        let rows = db.read("SELECT n FROM t ORDER BY n", params![]).await.unwrap();
        rows.iter().map(|row| row.int("n").unwrap()).collect()
    }

    fn add(number: i64) -> Script {
        Script { sql: "INSERT INTO t VALUES ($1)", params: vec![number.into()] }
    }

    #[tokio::test]
    async fn a_transaction_is_whole_or_nothing_and_leaves_the_way_free() {
        let db = dialect::sqlite::open("sqlite::memory:").await.unwrap();
        db.write("CREATE TABLE t (n INTEGER UNIQUE)", params![]).await.unwrap();
        let mut dropped = db.begin().await.unwrap();
        dropped.run("INSERT INTO t VALUES (1)", params![]).await.unwrap();
        drop(dropped);
        assert!(db.write_all(&[add(2), add(3), add(2)]).await.is_err());
        assert_eq!(numbers(&db).await, [] as [i64; 0]);
        db.write_all(&[add(4), add(5)]).await.unwrap();
        assert_eq!(numbers(&db).await, [4, 5]);
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_leaves_no_transaction_open() {
        let db = dialect::sqlite::open("sqlite::memory:").await.unwrap();
        db.write("CREATE TABLE t (n INTEGER UNIQUE)", params![]).await.unwrap();
        for number in 0..50 {
            let scripts = [add(2 * number), add(2 * number + 1)];
            let waits = async {
                for _ in 0..number % 10 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                _ = db.write_all(&scripts) => {}
                () = waits => {}
            }
        }
        let left = numbers(&db).await;
        assert!(
            left.chunks(2).all(|pair| pair[0] % 2 == 0 && pair.get(1) == Some(&(pair[0] + 1))),
            "{left:?}"
        );
        db.write_all(&[add(1000)]).await.unwrap();
    }
}
