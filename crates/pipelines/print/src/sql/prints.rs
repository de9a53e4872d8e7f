//! Jobs that print maps: freezing a map with its job, printing it again, and exported pictures.

use super::caps::check_first_order;
use super::maps::{MapError, frozen_text, printable_map};
use super::orders::{OrderRecord, grant, orders_of};
use crate::machine::PRINT;
use crate::order::product::page_of;
use crate::request::{KIND, OrderAsk, PrintInput};
use ode_job::{Artifact, JobId, NewJob, Owner};
use ode_store::sql::{Held, Param, Sql, Tx, artifact, owner_columns, params};
use ode_store::{Enqueued, EnqueuedTogether, Error, NewJobs, Store, fingerprint};
use serde_json::{Value, json};
use std::collections::HashMap;
use uuid::Uuid;

/// An order, and who pays for it.
#[derive(Debug, Clone)]
pub struct PaidOrder {
    /// The organisation within whose limit it must be.
    pub organisation: Uuid,
    pub ask: OrderAsk,
}

/// A map that is about to be frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenMap {
    id: Uuid,
    data: String,
    sha256: String,
    made_of: Option<(Uuid, i64)>,
}

/// What was made of a request to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printing {
    /// The frozen map.
    pub map: Uuid,
    /// The job that prints it.
    pub job: JobId,
    /// Whether an earlier request under the same idempotency key made them.
    pub is_known: bool,
}

/// The jobs that print a map, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prints {
    /// The newest of them.
    pub jobs: Vec<JobId>,
    /// How many there are in all.
    pub count: usize,
}

const FREEZE: &str =
    "INSERT INTO printable_maps (id, user_map_id, user_map_version, session_id, user_id, organisation_id, data, sha256)
    VALUES ($1, $2, $3, $4, $5, $6, {json $7}, $8)";
/// The newest jobs of each of these maps, and how many each has.
const PRINTS: &str = "SELECT * FROM (SELECT p.printable_map_id, p.job_id,
        row_number() OVER (PARTITION BY p.printable_map_id ORDER BY p.job_id DESC) AS place,
        count(*) OVER (PARTITION BY p.printable_map_id) AS prints
    FROM {rows $1: key uuid} JOIN map_print p ON p.printable_map_id = r.key) AS of_map
    WHERE place <= $2 ORDER BY job_id DESC";
const MAP_OF_JOB: &str = "SELECT printable_map_id FROM map_print WHERE job_id = $1";
/// The map of a job, for the one who holds it.
const HELD_MAP: &str = "SELECT CAST(m.data AS text) AS data, m.sha256
    FROM map_print p JOIN printable_maps m ON m.id = p.printable_map_id JOIN job_live l ON l.id = p.job_id
    WHERE p.job_id = $1 AND l.fence = $2 AND l.worker = $3";
const EXPORTS: &str = "SELECT a.job_id, a.role, a.name, a.storage, a.path, a.content_type, a.bytes, a.sha256
    FROM {rows $1: key uuid} JOIN job_artifact a ON a.job_id = r.key AND a.role = 'export'";
/// What drawing a map said of it; told again with each attempt, and shown once.
const EXPORT_WARNINGS: &str =
    "SELECT l.job_id, l.message FROM {rows $1: key uuid} JOIN job_log l ON l.job_id = r.key
    WHERE l.level = 'warn' GROUP BY l.job_id, l.message ORDER BY min(l.id)";
const EXPORT: &str = "SELECT role, name, storage, path, content_type, bytes, sha256 FROM job_artifact
    WHERE sha256 = $1 AND role = 'export' ORDER BY id LIMIT 1";

impl FrozenMap {
    /// A specification in canonical form, and the map it was made of.
    #[must_use]
    pub fn new(data: String, made_of: Option<(Uuid, i64)>) -> Self {
        FrozenMap { id: Uuid::now_v7(), sha256: ode_store::sha256_hex(&data), data, made_of }
    }

    /// The paper that it is drawn for.
    pub(super) fn page(&self) -> Result<Value, Error> {
        page_of(&self.data).map_err(|error| Error::Corrupt(error.to_string()))
    }

    async fn keep(&self, tx: &mut Tx, owner: Owner) -> Result<(), Error> {
        let [session, user, organisation] = owner_columns(owner);
        let params = params![
            self.id,
            self.made_of.map(|(map, _)| map),
            self.made_of.map(|(_, version)| version),
            session,
            user,
            organisation,
            self.data.as_str(),
            self.sha256.as_str(),
        ];
        tx.run(FREEZE, params).await.map(drop)
    }
}

/// The map that a job prints, in canonical form. None if it prints none, or if the lease is lost.
pub async fn held_map(held: Held<'_>) -> Result<Option<String>, Error> {
    held.read(HELD_MAP, &held.params()).await?.first().map(frozen_text).transpose()
}

/// Freezes a map and makes the job that prints it, in one transaction; and asks for its order in the same, if one is
/// given: where that is refused, nothing was made.
pub async fn print_map(
    store: &Store,
    owner: Owner,
    map: &FrozenMap,
    idempotency_key: Option<String>,
    order: Option<PaidOrder>,
) -> Result<Printing, Error> {
    let (job, fingerprint) = printing(owner, map, idempotency_key, order.as_ref());
    let order = order.as_ref();
    let keep = async |mut new: NewJobs| {
        map.keep(new.tx(), owner).await?;
        new.insert().await?;
        if let (Some(order), Some(job)) = (order, new.ids().first().copied()) {
            grant(new.tx(), job, order.organisation, &order.ask).await?;
        }
        Ok(new)
    };
    match store.enqueue_beside(&[job], &fingerprint, keep).await? {
        EnqueuedTogether::New(jobs) => {
            let (job, _) = *jobs.first().ok_or_else(|| Error::NotFound("of a print".into()))?;
            Ok(Printing { map: map.id, job, is_known: false })
        }
        EnqueuedTogether::Existing(job) => {
            let rows = store.sql().read(MAP_OF_JOB, params![job]).await?;
            let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
            Ok(Printing { map: row.uuid("printable_map_id")?, job, is_known: true })
        }
    }
}

/// Refuses to print a map as [`print_map`] would, and makes nothing. Returns the job that the same request made before, if it
/// did.
pub async fn check_print(
    store: &Store,
    owner: Owner,
    map: &FrozenMap,
    idempotency_key: Option<String>,
    order: Option<PaidOrder>,
) -> Result<Option<JobId>, Error> {
    let (job, fingerprint) = printing(owner, map, idempotency_key, order.as_ref());
    job.check()?;
    let known = store.enqueued_before(&job, &fingerprint).await?;
    if let (None, Some(order)) = (known, &order) {
        check_first_order(store.sql(), &map.page()?, order).await?;
    }
    Ok(known)
}

/// Refuses to print a frozen map again as [`reprint`] would, and makes nothing. Returns the job that the same request made
/// before, if it did.
pub async fn check_reprint(
    store: &Store,
    owner: Owner,
    map: Uuid,
    idempotency_key: Option<String>,
) -> Result<Option<JobId>, MapError> {
    let job = reprinting(store.sql(), owner, map, idempotency_key).await?;
    job.check().map_err(Error::from)?;
    Ok(store.enqueued_before(&job, &fingerprint(&job)).await?)
}

/// Makes another job that prints a frozen map. It belongs to the owner of the map, whoever asked.
pub async fn reprint(
    store: &Store,
    owner: Owner,
    map: Uuid,
    idempotency_key: Option<String>,
) -> Result<Enqueued, MapError> {
    let job = reprinting(store.sql(), owner, map, idempotency_key).await?;
    Ok(store.enqueue(job).await?)
}

async fn reprinting(
    sql: Sql<'_>,
    owner: Owner,
    map: Uuid,
    idempotency_key: Option<String>,
) -> Result<NewJob, MapError> {
    let found = printable_map(sql, owner, map).await?;
    let owner = if owner == Owner::Operator { found.owner } else { owner };
    Ok(NewJob { idempotency_key, ..print_job(owner, map) })
}

/// The jobs that print these maps, at most so many of each.
pub async fn prints_of(sql: Sql<'_>, maps: &[Uuid], each_max: u16) -> Result<HashMap<Uuid, Prints>, Error> {
    let keys = Param::rows(maps.iter().map(|id| json!({ "key": id })));
    let rows = sql.read(PRINTS, &[keys, i64::from(each_max).into()]).await?;
    let mut prints: HashMap<Uuid, Prints> = HashMap::new();
    for row in &rows {
        let of_map = prints.entry(row.uuid("printable_map_id")?).or_default();
        of_map.jobs.push(row.job("job_id")?);
        of_map.count = usize::try_from(row.int("prints")?).unwrap_or_default();
    }
    Ok(prints)
}

/// What is known of prints beside their jobs.
#[derive(Debug)]
pub struct PrintFacts {
    /// Their pictures.
    pub exports: HashMap<JobId, Artifact>,
    /// What whoever made the maps should know of them.
    pub warnings: HashMap<JobId, Vec<String>>,
    /// Their orders.
    pub orders: HashMap<JobId, OrderRecord>,
}

impl PrintFacts {
    /// Reads what is known of these prints.
    pub async fn of(sql: Sql<'_>, jobs: &[JobId]) -> Result<Self, Error> {
        Ok(PrintFacts {
            exports: exports(sql, jobs).await?,
            warnings: export_warnings(sql, jobs).await?,
            orders: orders_of(sql, jobs).await?,
        })
    }
}

/// What was exported for these jobs, as far as it was.
pub async fn exports(sql: Sql<'_>, jobs: &[JobId]) -> Result<HashMap<JobId, Artifact>, Error> {
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sql.read(EXPORTS, &[job_rows(jobs)]).await?;
    rows.iter().map(|row| Ok((row.job("job_id")?, artifact(row)?))).collect()
}

/// What whoever made the maps of these print jobs should know of their pictures, in sentences.
pub async fn export_warnings(sql: Sql<'_>, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<String>>, Error> {
    let mut warnings: HashMap<JobId, Vec<String>> = HashMap::new();
    for row in &sql.read(EXPORT_WARNINGS, &[job_rows(jobs)]).await? {
        warnings.entry(row.job("job_id")?).or_default().push(row.text("message")?);
    }
    Ok(warnings)
}

/// An export by the digest of its content.
pub async fn export(sql: Sql<'_>, sha256: &str) -> Result<Option<Artifact>, Error> {
    sql.read(EXPORT, params![sha256]).await?.first().map(artifact).transpose()
}

/// A job that prints a map, and what makes two requests for it the same. A map gets a new id with each request, so it
/// counts by its content.
fn printing(
    owner: Owner,
    map: &FrozenMap,
    idempotency_key: Option<String>,
    order: Option<&PaidOrder>,
) -> (NewJob, String) {
    let job = NewJob { idempotency_key, advance: order.is_some(), ..print_job(owner, map.id) };
    let order = order.map(|order| json!([order.organisation, order.ask]));
    let input = json!([{ "sha256": map.sha256, "made_of": map.made_of }, order]);
    let fingerprint = fingerprint(&NewJob { input, ..job.clone() });
    (job, fingerprint)
}

/// Jobs as rows of the column `key`.
pub(super) fn job_rows(jobs: &[JobId]) -> Param {
    Param::rows(jobs.iter().map(|id| json!({ "key": id })))
}

fn print_job(owner: Owner, map: Uuid) -> NewJob {
    NewJob::new(PRINT, KIND, PrintInput::of_map(map).to_json()).owned_by(owner)
}
