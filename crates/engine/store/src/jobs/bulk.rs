//! Many jobs at once on PostgreSQL: COPY in its binary form, twice as fast as an insert.

use crate::Store;
use crate::database::dialect::postgres;
use crate::error::Error;
use crate::jobs::enqueue::{NewRow, Steps};
use crate::schema::columns::{self, Birth, Given, Kind, Read};
use jiff::Timestamp;
use ode_job::Lane;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Tells of the jobs of one group, and wakes workers for them.
const ENTRIES: &str = "WITH e AS (
        INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs)
        SELECT r.seq, r.event, r.from_state, r.to_state, $2, $3
        FROM {rows $1: g int, seq int, event text, from_state text, to_state text} WHERE r.g = $4)
    SELECT pg_notify('ode_ready', $5) WHERE $5 IS NOT NULL";

/// Rows sent at a time: the server reads these while the next are being written out.
const CHUNK: usize = 100;

/// Writes all rows in one transaction.
pub(crate) async fn copy(store: &Store, rows: &[NewRow]) -> Result<(), Error> {
    let (mut steps, mut births) = (Steps::new(), Vec::with_capacity(rows.len()));
    // Jobs that took the same steps are of one pipeline and stand in one lane, or in none.
    let mut groups: BTreeMap<usize, (Option<Lane>, Vec<Uuid>)> = BTreeMap::new();
    for row in rows {
        let group = steps.group(&row.steps, || store.inner.mint.seq());
        let (lane, ids) = groups.entry(group).or_default();
        *lane = lane.or(row.lane);
        ids.push(row.id.0);
        births.push((row, group));
    }
    let births: Vec<Birth<'_>> = births.into_iter().map(|(row, group)| steps.birth(row, group)).collect();
    // The server takes its time for an empty value too, so a column is sent only if some job of the batch has one.
    let is_sent = |(_, _, read): &(&str, Kind, Read)| births.iter().any(|birth| !read(birth).is_none());
    let columns: Vec<(&str, Kind, Read)> = columns::given_columns().filter(is_sent).collect();
    let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    let statement = format!("COPY job_live ({}) FROM STDIN BINARY", names.join(", "));
    let mut tx = store.db().begin().await?;
    let Some(inner) = tx.postgres() else { return Err(Error::Config("COPY is PostgreSQL's own".into())) };
    let mut sink = inner.copy_in_raw(&statement).await?;
    let mut copy = Copy::new();
    for chunk in births.chunks(CHUNK) {
        for birth in chunk {
            copy.row(columns.len());
            for (_, kind, read) in &columns {
                copy.value(*kind, read(birth));
            }
        }
        sink.send(copy.take()).await?;
    }
    sink.send(copy.finish()).await?;
    sink.finish().await?;
    let steps = steps.to_rows();
    for (group, (lane, ids)) in groups {
        let group = i64::try_from(group).unwrap_or(i64::MAX);
        let (actor, lane) = (store.inner.actor.as_str(), lane.map(Lane::as_str));
        let params = [steps.clone(), actor.into(), ids.into(), group.into(), lane.into()];
        tx.run(ENTRIES, &params).await?;
    }
    tx.commit().await
}

/// Rows in PostgreSQL's binary COPY form: a count of fields, then each field with its length.
struct Copy {
    bytes: Vec<u8>,
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const PG_EPOCH_MICROS: i64 = 946_684_800_000_000;

impl Copy {
    fn new() -> Self {
        Copy { bytes: SIGNATURE.to_vec() }
    }

    fn row(&mut self, fields: usize) {
        let fields = i16::try_from(fields).expect("a row has a few dozen columns");
        self.bytes.extend_from_slice(&fields.to_be_bytes());
    }

    fn field(&mut self, bytes: Option<&[u8]>) {
        let length = bytes
            .map_or(-1, |bytes| i32::try_from(bytes.len()).expect("requests are bounded far below 2 GB"));
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(bytes.unwrap_or_default());
    }

    fn value(&mut self, kind: Kind, value: Given<'_>) {
        match (value, kind) {
            (Given::Id(id), _) => self.id(id),
            (Given::Text(text), _) => self.text(text),
            (Given::Number(number), Kind::Small) => self.small(number),
            (Given::Number(number), _) => self.big(number),
            (Given::Flag(flag), _) => self.bool(flag.then_some(true)),
            (Given::Moment(moment), _) => self.moment(moment),
            (Given::Json(json), _) => self.json(json),
            (Given::History(seqs), _) => self.field(Some(&postgres::history(seqs))),
        }
    }

    fn id(&mut self, id: Option<Uuid>) {
        self.field(id.as_ref().map(|id| id.as_bytes().as_slice()));
    }

    fn text(&mut self, text: Option<&str>) {
        self.field(text.map(str::as_bytes));
    }

    fn small(&mut self, number: Option<i64>) {
        let number = number
            .map(|number| i16::try_from(number).expect("priorities and retries are checked at the door"));
        self.field(number.map(i16::to_be_bytes).as_ref().map(<[u8; 2]>::as_slice));
    }

    fn big(&mut self, number: Option<i64>) {
        self.field(number.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
    }

    fn bool(&mut self, claim: Option<bool>) {
        self.field(claim.map(|claim| [u8::from(claim)]).as_ref().map(<[u8; 1]>::as_slice));
    }

    fn moment(&mut self, moment: Option<Timestamp>) {
        self.big(moment.map(|moment| moment.as_microsecond() - PG_EPOCH_MICROS));
    }

    /// JSONB travels as its version, 1, and text. Written in place: a copy of every input would cost more than
    /// the rest of the row.
    fn json(&mut self, json: Option<&Value>) {
        let Some(json) = json else { return self.field(None) };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0, 0, 0, 0, 1]);
        serde_json::to_writer(&mut self.bytes, json).expect("a Value is always valid JSON");
        let length = i32::try_from(self.bytes.len() - start - 4).expect("inputs are bounded far below 2 GB");
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// What was written since the last time.
    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        self.bytes
    }
}
