//! Maps: those that people keep and change, those that are frozen for print, and the jobs that print them.

use crate::Store;
use crate::beside::{EnqueuedTogether, NewJobs};
use crate::blobs::sha256_hex;
use crate::db::{Param, Row, Tx, params, without_nul};
use crate::enqueue::{Enqueued, fingerprint, owner_columns};
use crate::error::Error;
use crate::orders::{PaidOrder, grant};
use crate::read::artifact;
use crate::sql::Held;
use jiff::Timestamp;
use ode_job::{Artifact, JobId, NewJob, Owner, machines};
use serde_json::{Value, json};
use std::collections::HashMap;
use uuid::Uuid;

/// A map that somebody keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMap {
    /// Its identity; later ones are greater.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// Counts changes, from 1.
    pub version: i64,
    /// Its features as GeoJSON text; none in a list.
    pub data: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A map as it is printed. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintableMap {
    /// Its identity; later ones are greater.
    pub id: Uuid,
    /// Whose it is.
    pub owner: Owner,
    /// The map it was made of, and that one's version.
    pub made_of: Option<(Uuid, i64)>,
    /// What it is called on the paper, if it has a title.
    pub title: Option<String>,
    /// Its paper: a name, or width and height as JSON.
    pub page_size: Option<String>,
    /// Its specification in canonical form; none in a list.
    pub data: Option<String>,
    /// The digest of that, hexadecimal.
    pub sha256: String,
    /// When it was frozen.
    pub created_at: Timestamp,
}

/// A part of a list of maps, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapPage<T> {
    /// The maps.
    pub maps: Vec<T>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<Uuid>,
}

/// A map that is about to be frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenMap {
    id: Uuid,
    data: String,
    sha256: String,
    made_of: Option<(Uuid, i64)>,
}

impl FrozenMap {
    /// A specification in canonical form, and the map it was made of.
    #[must_use]
    pub fn new(data: String, made_of: Option<(Uuid, i64)>) -> Self {
        FrozenMap { id: Uuid::now_v7(), sha256: sha256_hex(data.as_bytes()), data, made_of }
    }

    /// The paper that it is drawn for.
    pub(crate) fn page(&self) -> Result<Value, Error> {
        let spec: Value =
            serde_json::from_str(&self.data).map_err(|error| Error::Corrupt(error.to_string()))?;
        Ok(spec["page"].clone())
    }

    pub(crate) fn fingerprint(&self) -> Value {
        json!({ "sha256": self.sha256, "made_of": self.made_of })
    }

    pub(crate) async fn keep(&self, tx: &mut Tx, owner: Owner) -> Result<(), Error> {
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

/// What the jobs of maps are called among print jobs.
const KIND: &str = "map";
/// A list may ask for this many at most.
const LIST_MAX: usize = 1000;

/// Only what an owner may see: `$2` to `$4` are theirs; an operator, who is none of them, sees all.
macro_rules! theirs {
    () => {
        "($2 IS NULL OR session_id = $2) AND ($3 IS NULL OR user_id = $3) AND ($4 IS NULL OR organisation_id = $4)"
    };
}

const ADD_USER_MAP: &str = "INSERT INTO user_maps (id, session_id, user_id, organisation_id, name, data)
    VALUES ($1, $2, $3, $4, $5, {json $6}) RETURNING id, name, version, created_at, updated_at";
const USER_MAP: &str = concat!(
    "SELECT id, name, version, CAST(data AS text) AS data, created_at, updated_at FROM user_maps
    WHERE id = $1 AND deleted_at IS NULL AND ",
    theirs!()
);
const USER_MAPS: &str = concat!(
    "SELECT id, name, version, created_at, updated_at FROM user_maps
    WHERE ($1 IS NULL OR id < $1) AND deleted_at IS NULL AND ",
    theirs!(),
    " ORDER BY id DESC LIMIT $5"
);
const CHANGE_USER_MAP: &str = concat!(
    "UPDATE user_maps SET name = $5, data = {json $6}, version = version + 1, updated_at = {now}
    WHERE id = $1 AND deleted_at IS NULL AND ($7 IS NULL OR version = $7) AND ",
    theirs!(),
    " RETURNING id, name, version, created_at, updated_at"
);
const REMOVE_USER_MAP: &str = concat!(
    "DELETE FROM user_maps WHERE id = $1 AND deleted_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM printable_maps p WHERE p.user_map_id = $1) AND ",
    theirs!(),
    " RETURNING id"
);
/// What it showed goes; that it was there stays, for the frozen maps that name it.
const EMPTY_USER_MAP: &str = concat!(
    "UPDATE user_maps SET name = 'deleted', data = NULL, version = version + 1, updated_at = {now}, deleted_at = {now}
    WHERE id = $1 AND deleted_at IS NULL AND ",
    theirs!(),
    " RETURNING id"
);

const FREEZE: &str =
    "INSERT INTO printable_maps (id, user_map_id, user_map_version, session_id, user_id, organisation_id, data, sha256)
    VALUES ($1, $2, $3, $4, $5, $6, {json $7}, $8)";
const PRINTABLE_MAP: &str = concat!(
    "SELECT id, session_id, user_id, organisation_id, user_map_id, user_map_version, title, page_size,
        CAST(data AS text) AS data, sha256, created_at
    FROM printable_maps WHERE id = $1 AND ",
    theirs!()
);
const PRINTABLE_MAPS: &str = concat!(
    "SELECT id, session_id, user_id, organisation_id, user_map_id, user_map_version, title, page_size, sha256,
        created_at
    FROM printable_maps WHERE ($1 IS NULL OR id < $1) AND ",
    theirs!(),
    " ORDER BY id DESC LIMIT $5"
);
/// Maps that no job prints, oldest first.
const UNPRINTED: &str =
    "SELECT id, session_id, user_id, organisation_id, user_map_id, user_map_version, title, page_size, sha256,
        created_at
    FROM printable_maps m WHERE id > $1 AND NOT EXISTS (SELECT 1 FROM map_print p WHERE p.printable_map_id = m.id)
    ORDER BY id LIMIT $2";
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

impl Held<'_> {
    /// The map that the job prints, in canonical form. None if it prints none, or if the lease is lost.
    pub async fn printable_map(&self) -> Result<Option<String>, Error> {
        self.read(HELD_MAP, &self.params()).await?.first().map(frozen_text).transpose()
    }
}

impl Store {
    /// Keeps a map: a name and GeoJSON that was found right.
    pub async fn add_user_map(&self, owner: Owner, name: &str, data: &str) -> Result<UserMap, Error> {
        let [session, user, organisation] = owner_columns(owner);
        let params = params![Uuid::now_v7(), session, user, organisation, without_nul(name), data];
        let rows = self.db().write(ADD_USER_MAP, params).await?;
        rows.first()
            .map(user_map)
            .transpose()?
            .ok_or_else(|| Error::Corrupt("a map that was just made".into()))
    }

    /// A map with its features.
    pub async fn user_map(&self, owner: Owner, id: Uuid) -> Result<UserMap, Error> {
        let rows = self.db().read(USER_MAP, &owned(id, owner)).await?;
        let row = rows.first().ok_or(Error::NoMap(id))?;
        Ok(UserMap { data: row.opt_text("data")?, ..user_map(row)? })
    }

    /// An owner's maps, newest first.
    pub async fn user_maps(
        &self,
        owner: Owner,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<MapPage<UserMap>, Error> {
        let (params, limit) = part(owner, before, limit);
        let rows = self.db().read(USER_MAPS, &params).await?;
        let maps = rows.iter().take(limit).map(user_map).collect::<Result<Vec<_>, _>>()?;
        let next_cursor = maps.last().map(|map| map.id).filter(|_| rows.len() > limit);
        Ok(MapPage { maps, next_cursor })
    }

    /// Replaces a map's name and features; only if it is still at `version`, where one is given.
    pub async fn change_user_map(
        &self,
        owner: Owner,
        id: Uuid,
        (name, data): (&str, &str),
        version: Option<i64>,
    ) -> Result<UserMap, Error> {
        let mut params = owned(id, owner);
        params.extend([without_nul(name).into(), data.into(), version.into()]);
        let rows = self.db().write(CHANGE_USER_MAP, &params).await?;
        match rows.first() {
            Some(row) => user_map(row),
            None => Err(Error::MapChanged(self.user_map(owner, id).await?.version)),
        }
    }

    /// Deletes a map and its features. What was frozen of it stays as it is.
    pub async fn delete_user_map(&self, owner: Owner, id: Uuid) -> Result<(), Error> {
        let mut tx = self.db().begin().await?;
        let params = owned(id, owner);
        let is_gone = !tx.run(REMOVE_USER_MAP, &params).await?.is_empty()
            || !tx.run(EMPTY_USER_MAP, &params).await?.is_empty();
        if !is_gone {
            return Err(Error::NoMap(id));
        }
        tx.commit().await
    }

    /// Freezes a map and makes the job that prints it, in one transaction; and asks for its order in the same, if one is
    /// given: where that is refused, nothing was made.
    pub async fn print_map(
        &self,
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
        match self.enqueue_beside(&[job], &fingerprint, keep).await? {
            EnqueuedTogether::New(jobs) => {
                let (job, _) = *jobs.first().ok_or_else(|| Error::NotFound("of a print".into()))?;
                Ok(Printing { map: map.id, job, is_known: false })
            }
            EnqueuedTogether::Existing(job) => {
                let rows = self.db().read(MAP_OF_JOB, params![job]).await?;
                let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
                Ok(Printing { map: row.uuid("printable_map_id")?, job, is_known: true })
            }
        }
    }

    /// Refuses to print a map as [`Store::print_map`] would, and makes nothing. Answers the job that the same request made
    /// before, if it did.
    pub async fn check_print(
        &self,
        owner: Owner,
        map: &FrozenMap,
        idempotency_key: Option<String>,
        order: Option<PaidOrder>,
    ) -> Result<Option<JobId>, Error> {
        let (job, fingerprint) = printing(owner, map, idempotency_key, order.as_ref());
        job.check()?;
        let known = self.enqueued_before(&job, &fingerprint).await?;
        if let (None, Some(order)) = (known, &order) {
            self.check_first_order(map, order).await?;
        }
        Ok(known)
    }

    /// The same for [`Store::reprint`].
    pub async fn check_reprint(
        &self,
        owner: Owner,
        map: Uuid,
        idempotency_key: Option<String>,
    ) -> Result<Option<JobId>, Error> {
        let job = self.reprinting(owner, map, idempotency_key).await?;
        job.check()?;
        self.enqueued_before(&job, &fingerprint(&job)).await
    }

    /// Makes another job that prints a frozen map. It belongs to the owner of the map, whoever asked.
    pub async fn reprint(
        &self,
        owner: Owner,
        map: Uuid,
        idempotency_key: Option<String>,
    ) -> Result<Enqueued, Error> {
        self.enqueue(self.reprinting(owner, map, idempotency_key).await?).await
    }

    async fn reprinting(
        &self,
        owner: Owner,
        map: Uuid,
        idempotency_key: Option<String>,
    ) -> Result<NewJob, Error> {
        let rows = self.db().read(PRINTABLE_MAP, &owned(map, owner)).await?;
        let found = printable_map(rows.first().ok_or(Error::NoMap(map))?)?;
        let owner = if owner == Owner::Operator { found.owner } else { owner };
        Ok(NewJob { idempotency_key, ..print_job(owner, map) })
    }

    /// A frozen map with its specification.
    pub async fn printable_map(&self, owner: Owner, id: Uuid) -> Result<PrintableMap, Error> {
        let rows = self.db().read(PRINTABLE_MAP, &owned(id, owner)).await?;
        let row = rows.first().ok_or(Error::NoMap(id))?;
        Ok(PrintableMap { data: Some(frozen_text(row)?), ..printable_map(row)? })
    }

    /// An owner's frozen maps, newest first.
    pub async fn printable_maps(
        &self,
        owner: Owner,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<MapPage<PrintableMap>, Error> {
        let (params, limit) = part(owner, before, limit);
        let rows = self.db().read(PRINTABLE_MAPS, &params).await?;
        let maps = rows.iter().take(limit).map(printable_map).collect::<Result<Vec<_>, _>>()?;
        let next_cursor = maps.last().map(|map| map.id).filter(|_| rows.len() > limit);
        Ok(MapPage { maps, next_cursor })
    }

    /// The jobs that print these maps, at most so many of each.
    pub async fn prints_of(&self, maps: &[Uuid], each_max: u16) -> Result<HashMap<Uuid, Prints>, Error> {
        let keys = Param::rows(maps.iter().map(|id| json!({ "key": id })));
        let rows = self.db().read(PRINTS, &[keys, i64::from(each_max).into()]).await?;
        let mut prints: HashMap<Uuid, Prints> = HashMap::new();
        for row in &rows {
            let of_map = prints.entry(row.uuid("printable_map_id")?).or_default();
            of_map.jobs.push(row.job("job_id")?);
            of_map.count = usize::try_from(row.int("prints")?).unwrap_or_default();
        }
        Ok(prints)
    }

    /// Frozen maps that no job prints, after this one and oldest first; nothing when there are no more.
    pub async fn unprinted_maps(&self, after: Uuid, limit: usize) -> Result<Vec<PrintableMap>, Error> {
        let limit = i64::try_from(limit.clamp(1, LIST_MAX)).unwrap_or(i64::MAX);
        self.db().read(UNPRINTED, params![after, limit]).await?.iter().map(printable_map).collect()
    }

    /// What was exported for these jobs, as far as it was.
    pub async fn exports(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Artifact>, Error> {
        if jobs.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = self.db().read(EXPORTS, &[job_rows(jobs)]).await?;
        rows.iter().map(|row| Ok((row.job("job_id")?, artifact(row)?))).collect()
    }

    /// What whoever made the maps of these print jobs should know of their pictures, in sentences.
    pub async fn export_warnings(&self, jobs: &[JobId]) -> Result<HashMap<JobId, Vec<String>>, Error> {
        let mut warnings: HashMap<JobId, Vec<String>> = HashMap::new();
        for row in &self.db().read(EXPORT_WARNINGS, &[job_rows(jobs)]).await? {
            warnings.entry(row.job("job_id")?).or_default().push(row.text("message")?);
        }
        Ok(warnings)
    }

    /// An export by the digest of its content.
    pub async fn export(&self, sha256: &str) -> Result<Option<Artifact>, Error> {
        self.db().read(EXPORT, params![sha256]).await?.first().map(artifact).transpose()
    }
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
    let input = json!([map.fingerprint(), order]);
    let fingerprint = fingerprint(&NewJob { input, ..job.clone() });
    (job, fingerprint)
}

pub(crate) fn job_rows(jobs: &[JobId]) -> Param {
    Param::rows(jobs.iter().map(|id| json!({ "key": id })))
}

fn print_job(owner: Owner, map: Uuid) -> NewJob {
    NewJob::new(machines::pipeline("print"), KIND, json!({ "printable_map_id": map })).owned_by(owner)
}

fn owned(id: Uuid, owner: Owner) -> Vec<Param> {
    let [session, user, organisation] = owner_columns(owner);
    vec![id.into(), session.into(), user.into(), organisation.into()]
}

/// What asks for a part of a list and one more, and how much the part is.
fn part(owner: Owner, before: Option<Uuid>, limit: usize) -> (Vec<Param>, usize) {
    let limit = limit.clamp(1, LIST_MAX);
    let [session, user, organisation] = owner_columns(owner);
    let count = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    (vec![before.into(), session.into(), user.into(), organisation.into(), count.into()], limit)
}

fn user_map(row: &Row) -> Result<UserMap, Error> {
    Ok(UserMap {
        id: row.uuid("id")?,
        name: row.text("name")?,
        version: row.int("version")?,
        data: None,
        created_at: row.moment("created_at")?,
        updated_at: row.moment("updated_at")?,
    })
}

fn printable_map(row: &Row) -> Result<PrintableMap, Error> {
    let organisation = row.opt_uuid("organisation_id")?.map(Owner::Organisation);
    let user = row.opt_uuid("user_id")?.map(Owner::User);
    let session = row.opt_uuid("session_id")?.map(Owner::Session);
    Ok(PrintableMap {
        id: row.uuid("id")?,
        owner: organisation.or(user).or(session).unwrap_or(Owner::Operator),
        made_of: row.opt_uuid("user_map_id")?.zip(row.opt_int("user_map_version")?),
        title: row.opt_text("title")?.filter(|title| !title.is_empty()),
        page_size: row.opt_text("page_size")?,
        data: None,
        sha256: row.text("sha256")?,
        created_at: row.moment("created_at")?,
    })
}

/// The specification of a row, which must be the one that was frozen.
fn frozen_text(row: &Row) -> Result<String, Error> {
    let data = row.text("data")?;
    if sha256_hex(data.as_bytes()) == row.text("sha256")? {
        Ok(data)
    } else {
        Err(Error::Corrupt("a printable map that is not the one that was frozen".into()))
    }
}
