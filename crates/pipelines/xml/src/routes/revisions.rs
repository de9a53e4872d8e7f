//! Corrections of results: what people put right, and what a correction must say.

use super::read_json;
use crate::sql::{self, Revised, Revision};
use crate::values;
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::jobs::find;
use ode_http::problem::{Problem, ProblemDocument, Reading, Sending};
use ode_http::view::moment;
use ode_invoice::terms::{HEADER, TABLES};
use ode_job::{ErrorCode, JobRecord, Phase};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use utoipa::ToSchema;
use uuid::Uuid;

/// As long as a field's name may be in the table.
const FIELD_CHARS_MAX: usize = 255;
/// The longest value of an invoice is its notes.
const VALUE_CHARS_MAX: usize = 10_000;
/// Far beyond what one document has to be corrected; who sends more is no person.
const REVISIONS_MAX: usize = 1000;
/// Of the fields that a result has, so many are named to who asks for another.
const NAMES_TOLD_MAX: usize = 60;
/// The last page that a table can name.
const PAGE_MAX: u32 = i32::MAX as u32;

/// What people corrected in a result.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Revisions {
    /// In the order they did.
    revisions: Vec<RevisionView>,
}

/// A person's edit of one value.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Revision)]
pub(crate) struct RevisionView {
    /// Its identity; later ones are greater.
    #[schema(value_type = String, format = "uuid")]
    id: Uuid,
    /// The field by its name, or a path.
    #[schema(example = "lines.0.total")]
    field: String,
    /// What was read; nothing where the value was missing.
    before: Option<String>,
    /// What is right; nothing where there should be no value.
    after: Option<String>,
    /// The page it stands on, from 1.
    page: Option<u32>,
    /// Where on the page, in points from its top left corner: left, top, right, bottom.
    #[serde(rename = "box")]
    area: Option<[f64; 4]>,
    /// When it was corrected.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    created_at: Timestamp,
}

impl From<Revised> for RevisionView {
    fn from(Revised { id, revision, created_at, .. }: Revised) -> Self {
        let Revision { field, before, after, page, area } = revision;
        RevisionView { id, field, before, after, page, area, created_at }
    }
}

/// What people corrected in a job's result.
#[utoipa::path(get, path = "/api/jobs/{id}/revisions", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = Revisions),
        Reading))]
pub(crate) async fn revisions(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Revisions>, Problem> {
    let job = find(&app, &caller, &id).await?;
    let revisions = sql::revisions(app.store.sql(), job.id).await?;
    Ok(Json(Revisions { revisions: revisions.into_iter().map(RevisionView::from).collect() }))
}

/// Corrects a value. The result stays as it is; the correction is kept beside it, and as an example to learn from.
#[utoipa::path(post, path = "/api/jobs/{id}/revisions", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    request_body = Revision,
    responses(
        (status = 201, body = RevisionView),
        Sending,
        (status = 409, body = ProblemDocument, content_type = "application/problem+json",
            description = "There is no result to correct, or before is not what was read (NOT_READY, CONFLICT)")))]
pub(crate) async fn revise(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<RevisionView>), Problem> {
    const FORM: &str = "The correction is not understood. It is a JSON object with field, before and after (texts), page (a \
                        number from 1) and box (four numbers), of which field and a change are needed.";
    let job = find(&app, &caller, &id).await?;
    let new = read_json(request, FORM).await?;
    let revised = correct(&app, &caller, &job, new).await?;
    Ok((StatusCode::CREATED, Json(revised.into())))
}

/// Records a correction of a result that is there to be corrected.
pub(crate) async fn correct(
    app: &App,
    caller: &Caller,
    job: &JobRecord,
    new: Revision,
) -> Result<Revised, Problem> {
    match job.phase {
        Phase::Done => {}
        Phase::Held | Phase::Ready | Phase::Running => return Err(ErrorCode::NotReady.into()),
        Phase::Failed | Phase::Cancelled => {
            let detail = "This document was not converted, so there is nothing to correct.";
            return Err(Problem::new(ErrorCode::Conflict, detail));
        }
    }
    let (revision, author) = (checked(new)?, Some(caller.owner.key()));
    let (read, checks) = (values::read_values(app, job.id).await?, app.store.checks(job.id).await?);
    if let Some(read) = read {
        let checked = checks.into_iter().filter_map(|check| check.field);
        agree(&revision, &read.values, fields().chain(checked))?;
    }
    let there = sql::revisions(app.store.sql(), job.id).await?;
    let last = there.iter().rfind(|one| one.revision.field == revision.field);
    if let Some(same) = last.filter(|one| one.revision == revision && one.author == author) {
        // Sent twice: one correction, and one example to learn from.
        return Ok(same.clone());
    }
    if there.len() >= REVISIONS_MAX {
        let detail = format!("{REVISIONS_MAX} corrections of one document are kept, and it has as many.");
        return Err(Problem::new(ErrorCode::Conflict, detail));
    }
    Ok(sql::revise(app.store.sql(), job.id, &revision, author).await?)
}

/// Fields that results may have, with `*` for the number of a row, such as `lines.*.total`.
fn fields() -> impl Iterator<Item = String> {
    let header = HEADER.iter().map(|term| term.name.to_owned());
    let columns = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| format!("{}.*.{}", table.name, column.name)));
    header.chain(columns)
}

/// A correction is of a field that results have, and knows what was read. Where a result is not ours to read, its sender's
/// word is taken.
fn agree(
    revision: &Revision,
    values: &[(String, String)],
    known: impl IntoIterator<Item = String>,
) -> Result<(), Problem> {
    let Revision { field, before, .. } = revision;
    let read = values.iter().find(|(name, _)| name == field).map(|(_, text)| text.as_str());
    let is_it = |name: &str| any_row(name) == any_row(field);
    if read.is_none()
        && !values.iter().any(|(name, _)| is_it(name))
        && !known.into_iter().any(|name| is_it(&name))
    {
        let names: BTreeSet<String> = values.iter().map(|(name, _)| any_row(name)).collect();
        let names: Vec<&str> = names.iter().take(NAMES_TOLD_MAX).map(String::as_str).collect();
        return Err(Problem::invalid(format!(
            "There is no field {field}. This result has {}; others are those of the invoice model, with the number of a row \
             from 0 in the place of *.",
            names.join(", ")
        )));
    }
    if read == before.as_deref() {
        return Ok(());
    }
    let quoted = |text: Option<&str>| text.map_or_else(|| "nothing".to_owned(), |text| format!("\"{text}\""));
    Err(Problem::new(
        ErrorCode::Conflict,
        format!(
            "{field} was read as {}, and before says {}. Look at the result again, and say what stands there.",
            quoted(read),
            quoted(before.as_deref())
        ),
    ))
}

/// A field's path for any row of its table: `lines.0.total` is `lines.*.total`.
fn any_row(field: &str) -> String {
    let parts = field.split('.').map(|part| if part.parse::<u16>().is_ok() { "*" } else { part });
    parts.collect::<Vec<_>>().join(".")
}

fn checked(new: Revision) -> Result<Revision, Problem> {
    let Revision { field, before, after, page, area } = new;
    let field = field.trim().to_owned();
    if field.is_empty() || field.chars().count() > FIELD_CHARS_MAX || field.chars().any(char::is_control) {
        return Err(Problem::invalid(format!(
            "field names the value that is corrected, in up to {FIELD_CHARS_MAX} characters of one line."
        )));
    }
    let (before, after) = (before.filter(|text| !text.is_empty()), after.filter(|text| !text.is_empty()));
    if [&before, &after].into_iter().flatten().any(|text| text.chars().count() > VALUE_CHARS_MAX) {
        return Err(Problem::invalid(format!("A value has {VALUE_CHARS_MAX} characters at most.")));
    }
    if before == after {
        return Err(Problem::invalid("The correction changes nothing. Write what the value should be."));
    }
    if page.is_some_and(|page| page == 0 || page > PAGE_MAX) {
        return Err(Problem::invalid("page counts from 1."));
    }
    if let Some([left, top, right, bottom]) = area
        && (page.is_none() || left > right || top > bottom)
    {
        return Err(Problem::invalid(
            "box is left, top, right and bottom on a page, and page says on which.",
        ));
    }
    Ok(Revision { field, before, after, page, area })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(before: Option<&str>, after: Option<&str>) -> Revision {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Revision {
            field: " gross_total ".into(),
            before: text(before),
            after: text(after),
            ..Revision::default()
        }
    }

    #[test]
    fn a_correction_changes_something_and_says_where() {
        let taken = checked(new(Some("1"), Some("2"))).unwrap();
        assert_eq!((taken.field.as_str(), taken.after.as_deref()), ("gross_total", Some("2")));
        let removed = checked(new(Some("1"), Some(""))).unwrap();
        assert_eq!(removed.after, None, "a value that should not be there");
        assert!(checked(new(Some("1"), Some("1"))).is_err());
        assert!(checked(new(None, Some(""))).is_err());
        let placed = |page, area| checked(Revision { page, area, ..new(Some("1"), Some("2")) }).is_ok();
        assert!(placed(Some(1), Some([1.0, 2.0, 3.0, 4.0])) && placed(Some(2), None));
        assert!(!placed(None, Some([1.0, 2.0, 3.0, 4.0])), "a place without a page");
        assert!(!placed(Some(1), Some([3.0, 2.0, 1.0, 4.0])), "right before left");
        assert!(!placed(Some(0), None));
    }

    #[test]
    fn a_correction_is_of_a_field_that_exists_and_knows_what_was_read() {
        let values = [("gross_total", "630.00"), ("lines.0.total", "10.00")];
        let values = values.map(|(field, text)| (field.to_owned(), text.to_owned()));
        let agree = |field: &str, before: Option<&str>| {
            let new = Revision { field: field.into(), ..new(before, Some("2")) };
            let known = ["due_date".to_owned(), "lines.*.id".to_owned()];
            super::agree(&checked(new).unwrap(), &values, known)
        };
        assert!(agree("gross_total", Some("630.00")).is_ok());
        assert!(agree("lines.0.total", Some("10.00")).is_ok());
        for missing in ["due_date", "lines.0.id", "lines.7.total"] {
            assert!(agree(missing, None).is_ok(), "{missing} was not read");
        }
        let stale = agree("gross_total", Some("10.00")).unwrap_err();
        assert_eq!((stale.status(), stale.code()), (StatusCode::CONFLICT, ErrorCode::Conflict));
        assert!(stale.document().detail.contains("was read as \"630.00\""), "{stale:?}");
        assert!(agree("gross_total", None).is_err() && agree("due_date", Some("1")).is_err());
        let unknown = agree("nosuchfield", None).unwrap_err();
        assert_eq!(unknown.status(), StatusCode::BAD_REQUEST);
        assert!(unknown.document().detail.contains("gross_total, lines.*.total"), "{unknown:?}");
    }

    #[test]
    fn a_name_or_value_that_is_too_long_is_refused() {
        let long = Revision { field: "a".repeat(256), ..new(Some("1"), Some("2")) };
        assert!(checked(long).is_err());
        assert!(checked(Revision { field: "a\nb".into(), ..new(None, Some("2")) }).is_err());
        assert!(checked(new(None, Some(&"é".repeat(10_000)))).is_ok());
        assert!(checked(new(None, Some(&"é".repeat(10_001)))).is_err());
    }
}
