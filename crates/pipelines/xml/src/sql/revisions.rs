//! Corrections of results, and the examples to learn from that come of them.

use jiff::Timestamp;
use ode_job::{JobId, SourceDocument};
use ode_store::Error;
use ode_store::sql::{Row, Sql, params, without_nul};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

/// A correction of one value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRevision)]
pub struct Revision {
    /// The field by its name, or a path.
    #[schema(min_length = 1, max_length = 255, example = "lines.0.total")]
    pub field: String,
    /// What was read, as the result has it; nothing where the value was missing.
    #[schema(max_length = 10_000)]
    pub before: Option<String>,
    /// What is right; nothing where there should be no value.
    #[schema(max_length = 10_000)]
    pub after: Option<String>,
    /// The page it stands on, from 1.
    #[schema(minimum = 1)]
    pub page: Option<u32>,
    /// Where on that page, in points from its top left corner: left, top, right, bottom.
    #[serde(rename = "box")]
    pub area: Option<[f64; 4]>,
}

/// A correction as it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Revised {
    /// Its identity; later ones are greater.
    pub id: Uuid,
    /// The correction.
    #[serde(flatten)]
    pub revision: Revision,
    pub author: Option<Uuid>,
    pub created_at: Timestamp,
}

/// One example to learn from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingSample {
    /// Its identity; later ones are greater.
    pub id: Uuid,
    /// The job it comes from.
    pub job_id: JobId,
    /// The mapping that read the document.
    pub mapping: String,
    /// The document, by its digest.
    pub document_sha256: Option<String>,
    pub field: String,
    pub read: Option<String>,
    /// What is right.
    pub expected: Option<String>,
    /// The page, from 1.
    pub page: Option<i64>,
    /// Where on the page: left, top, right, bottom.
    #[serde(rename = "box")]
    pub area: Option<Value>,
    /// When a person said so.
    pub created_at: Timestamp,
}

const OF_JOB: &str = "SELECT type, input, result FROM jobs WHERE id = $1";
const REVISE: &str = "INSERT INTO revisions (id, job_id, field, before_value, after_value, page, box, author)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    RETURNING id, field, before_value, after_value, page, box, author, created_at";
const SAMPLE: &str =
    "INSERT INTO training_samples (id, job_id, revision_id, mapping, document_sha256, field, read_value,
        expected_value, page, box)
    SELECT $2, job_id, id, $3, $4, field, before_value, after_value, page, box FROM revisions WHERE id = $1";
const REVISIONS: &str =
    "SELECT id, field, before_value, after_value, page, box, author, created_at FROM revisions
    WHERE job_id = $1 ORDER BY id";
const SAMPLES: &str =
    "SELECT id, job_id, mapping, document_sha256, field, read_value, expected_value, page, box, created_at
    FROM training_samples WHERE id > $1 ORDER BY id LIMIT $2";

/// Examples read at a time.
const SAMPLES_PAGE: i64 = 500;

/// Records a correction by this person, and the example that it is.
pub async fn revise(
    sql: Sql<'_>,
    job: JobId,
    revision: &Revision,
    author: Option<Uuid>,
) -> Result<Revised, Error> {
    let mut tx = sql.begin().await?;
    let rows = tx.run(OF_JOB, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let document = SourceDocument::of(&row.json("input")?).unwrap_or_default();
    let result = row.opt_json("result")?.unwrap_or_default();
    // The mapping that was really used, where `auto` was asked for.
    let mapping = result["mapping"].as_str().map_or_else(|| row.text("type"), |name| Ok(name.to_owned()))?;
    let (id, sample) = (Uuid::now_v7(), Uuid::now_v7());
    let text = |value: &Option<String>| value.as_deref().map(without_nul);
    let params = params![
        id,
        job,
        without_nul(&revision.field),
        text(&revision.before),
        text(&revision.after),
        revision.page.map(i64::from),
        revision.area.map(|area| json!(area)),
        author,
    ];
    let rows = tx.run(REVISE, params).await?;
    tx.run(SAMPLE, params![id, sample, mapping, document.sha256]).await?;
    tx.commit().await?;
    let row = rows.first().ok_or_else(|| Error::Corrupt("a correction without an answer".into()))?;
    revised(row)
}

/// Corrections of a job's result, in the order in which they were made.
pub async fn revisions(sql: Sql<'_>, job: JobId) -> Result<Vec<Revised>, Error> {
    sql.read(REVISIONS, params![job]).await?.iter().map(revised).collect()
}

/// Examples after this one, oldest first; nothing when there are no more.
pub async fn training_samples(sql: Sql<'_>, after: Uuid) -> Result<Vec<TrainingSample>, Error> {
    sql.read(SAMPLES, params![after, SAMPLES_PAGE]).await?.iter().map(sample).collect()
}

fn revised(row: &Row) -> Result<Revised, Error> {
    let revision = Revision {
        field: row.text("field")?,
        before: row.opt_text("before_value")?,
        after: row.opt_text("after_value")?,
        page: row.opt_int("page")?.and_then(|page| u32::try_from(page).ok()),
        area: row.opt_json("box")?.and_then(|area| serde_json::from_value(area).ok()),
    };
    let (id, author, created_at) = (row.uuid("id")?, row.opt_uuid("author")?, row.moment("created_at")?);
    Ok(Revised { id, revision, author, created_at })
}

fn sample(row: &Row) -> Result<TrainingSample, Error> {
    Ok(TrainingSample {
        id: row.uuid("id")?,
        job_id: row.job("job_id")?,
        mapping: row.text("mapping")?,
        document_sha256: row.opt_text("document_sha256")?,
        field: row.text("field")?,
        read: row.opt_text("read_value")?,
        expected: row.opt_text("expected_value")?,
        page: row.opt_int("page")?,
        area: row.opt_json("box")?,
        created_at: row.moment("created_at")?,
    })
}
