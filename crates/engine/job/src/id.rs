//! Names of things: jobs, their human-readable references, workers and owners.

use jiff::{Timestamp, civil, tz::TimeZone};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// A job's identity: a UUID of version 7, so that ids sort by the moment they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub Uuid);

impl JobId {
    /// Builds an id from a moment, a random part and a counter.
    ///
    /// The counter fills the last 32 bits, which are also the tail of the reference: a process that counts
    /// up by one never makes the same reference twice within a second.
    pub fn build(now: Timestamp, random: u32, counter: u32) -> Self {
        Self::at_tick(tick_of(now), random, counter)
    }

    /// Builds an id from a tick ([`tick_of`]); ids of later ticks sort after those of earlier ones.
    pub fn at_tick(tick: u64, random: u32, counter: u32) -> Self {
        let (millis, fraction) = (u128::from(tick / TICKS_PER_MILLI), u128::from(tick % TICKS_PER_MILLI));
        let high = (millis & 0xffff_ffff_ffff) << 80 | 0x7 << 76 | fraction << 64;
        let low = 0b10 << 62 | u128::from(random >> 2) << 32 | u128::from(counter);
        JobId(Uuid::from_u128(high | low))
    }

    /// When the id was made, to the millisecond.
    pub fn made_at(self) -> Timestamp {
        let millis = i64::try_from(self.0.as_u128() >> 80).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
    }

    /// The reference people read aloud: `JOB_YYYYMMDD_HHMMSS_xxxxxxxx`.
    pub fn reference(self) -> String {
        let time = self.made_at().to_zoned(TimeZone::UTC).strftime("%Y%m%d_%H%M%S").to_string();
        format!("JOB_{time}_{:08x}", self.tail())
    }

    /// The last 32 bits, which the reference shows.
    pub fn tail(self) -> u32 {
        let bytes = self.0.as_bytes();
        u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]])
    }
}

/// Version 7 leaves twelve bits beside the version: a fraction of the millisecond keeps the order finer.
const TICKS_PER_MILLI: u64 = 4096;

/// The moment in ticks of 1/4096 ms since 1970, the finest that ids tell apart.
pub fn tick_of(moment: Timestamp) -> u64 {
    let nanos = moment.as_nanosecond().max(0).cast_unsigned();
    u64::try_from(nanos * u128::from(TICKS_PER_MILLI) / 1_000_000).unwrap_or(u64::MAX)
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a person may type where a job is wanted: its id or its reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobRef {
    Id(JobId),
    /// The second it was made in, and the tail.
    Reference {
        /// The lowest id of that second.
        from: JobId,
        /// The lowest id of the next second.
        until: JobId,
        /// The last 32 bits of the id.
        tail: u32,
    },
}

/// Text that is neither an id nor a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a job id. Give a UUID, or a reference such as JOB_20261115_093000_1a2b3c4d; `ode jobs list` shows them."
)]
pub struct NotAJobId(String);

impl FromStr for JobRef {
    type Err = NotAJobId;

    fn from_str(text: &str) -> Result<Self, NotAJobId> {
        let text = text.trim();
        if let Ok(id) = Uuid::parse_str(text) {
            return Ok(JobRef::Id(JobId(id)));
        }
        parse_reference(text).ok_or_else(|| NotAJobId(text.chars().take(60).collect()))
    }
}

fn parse_reference(text: &str) -> Option<JobRef> {
    let rest = text.strip_prefix("JOB_")?;
    let (time, tail) = rest.split_once('_').and_then(|(day, rest)| {
        let (clock, tail) = rest.split_once('_')?;
        let is_plain = day.len() == 8 && clock.len() == 6 && tail.len() == 8 && tail.is_ascii();
        is_plain.then(|| (format!("{day}{clock}"), tail))
    })?;
    let second = civil::DateTime::strptime("%Y%m%d%H%M%S", time).ok()?;
    let from = second.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let until = from.checked_add(jiff::SignedDuration::from_secs(1)).ok()?;
    let lowest =
        |at: Timestamp| JobId(Uuid::from_u128((at.as_millisecond().max(0).cast_unsigned() as u128) << 80));
    Some(JobRef::Reference {
        from: lowest(from),
        until: lowest(until),
        tail: u32::from_str_radix(tail, 16).ok()?,
    })
}

/// A worker process's identity, new at every start: a restarted worker is another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub Uuid);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who may see a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "id")]
pub enum Owner {
    /// Whoever operates this installation: made on the command line, seen by nobody through the API.
    Operator,
    /// An anonymous browser session.
    Session(Uuid),
    /// A signed-in person.
    User(Uuid),
    /// An organisation, by API key.
    Organisation(Uuid),
}

impl Owner {
    /// The key under which jobs take turns: one owner's flood must not starve another's single job.
    pub fn key(self) -> Uuid {
        match self {
            Owner::Operator => Uuid::nil(),
            Owner::Session(id) | Owner::User(id) | Owner::Organisation(id) => id,
        }
    }

    /// Whose a job is by what its row names: some belong to two.
    pub fn of(
        session: Option<Uuid>,
        user: Option<Uuid>,
        organisation: Option<Uuid>,
    ) -> impl Iterator<Item = Self> {
        let owners =
            [session.map(Owner::Session), user.map(Owner::User), organisation.map(Owner::Organisation)];
        owners.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> JobId {
        let now: Timestamp = "2026-11-15T09:30:00.123456Z".parse().unwrap();
        JobId::build(now, u32::MAX, 0x1a2b_3c4d)
    }

    #[test]
    fn an_id_is_a_version_7_uuid_that_knows_its_moment() {
        assert_eq!(id().0.get_version_num(), 7);
        assert_eq!(id().0.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(id().made_at().to_string(), "2026-11-15T09:30:00.123Z");
    }

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let at = |micros: i64| Timestamp::from_microsecond(1_790_000_000_000_000 + micros).unwrap();
        let ids: Vec<_> = (0..5000).map(|i| JobId::build(at(i), u32::MAX - i as u32, 0)).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn a_reference_leads_back_to_its_id() {
        let reference = id().reference();
        assert_eq!(reference, "JOB_20261115_093000_1a2b3c4d");
        let JobRef::Reference { from, until, tail } = reference.parse().unwrap() else {
            panic!("not a reference")
        };
        assert!(from <= id() && id() < until);
        assert_eq!(tail, id().tail());
    }

    #[test]
    fn what_is_neither_id_nor_reference_is_refused() {
        for text in
            ["", "42", "JOB_", "JOB_20261315_093000_1a2b3c4d", "JOB_20261115_093000_1a2b3c4", "JOB_1_2_é"]
        {
            assert!(text.parse::<JobRef>().is_err(), "{text}");
        }
    }
}
