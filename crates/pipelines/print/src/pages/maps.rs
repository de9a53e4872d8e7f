//! The maps: send one, see its print on the way, fetch it, print it again; and for organisations how its order stands.

use crate::machine::{EXPORT_COMPLETE, EXPORTING, ORDERING, PENDING_EXPORT};
use crate::routes::{self, MAP_BYTES_MAX, SKIPPED_BYTES_MAX, Site, arrived, map_id};
use crate::sql::{self, FrozenMap, MapPage, OrderRecord, PrintFacts, PrintableMap, Prints};
use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::response::{Html, Redirect};
use bytes::Bytes;
use ode_http::caller::Caller;
use ode_http::pages::{draw, words};
use ode_http::problem::Problem;
use ode_http::{App, form, upload};
use ode_job::{Artifact, JobId, JobRecord, Owner, State as JobState};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Maps of one page: each has a picture that may have to be drawn.
const ROWS_MAX: usize = 20;
/// Prints of one map that are shown.
const PRINTS_MAX: u16 = 5;

#[derive(Template)]
#[template(path = "maps.html")]
struct Page {
    limit: String,
    /// Who is signed in.
    signed_in: Option<String>,
    active: usize,
    rows: Vec<Row>,
    is_later: bool,
    next: Option<String>,
}

/// A map and its prints.
struct Row {
    id: Uuid,
    name: String,
    paper: String,
    created_at: String,
    created: String,
    /// What is told when it changes, in the words of the queue.
    news: &'static str,
    newest: Option<Print>,
    earlier: Vec<Print>,
    /// Prints that are not shown.
    more: usize,
    /// Whether another print may be asked for: not while one has hardly begun.
    can_print: bool,
    /// The print after which another is asked for, so that asking twice is asking once.
    after: String,
}

/// A print of a map.
struct Print {
    id: JobId,
    class: &'static str,
    label: &'static str,
    percent: Option<u8>,
    told: Option<String>,
    retry_at: Option<(String, String)>,
    why: Option<String>,
    /// What its maker should know about the picture.
    warnings: Vec<String>,
    order: Option<String>,
    attention: Option<String>,
    created_at: String,
    created: String,
    state: JobState,
    can_download: bool,
    can_retry: bool,
    can_order: bool,
    /// Whether it goes on by itself.
    is_active: bool,
}

/// Which part of the list to show.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part {
    cursor: Option<String>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(part): Query<Part>,
) -> Result<Html<String>, Problem> {
    app.hub.attend();
    let before = part.cursor.and_then(|cursor| cursor.parse().ok());
    let MapPage { maps, next_cursor } =
        sql::printable_maps(app.store.sql(), caller.owner, before, ROWS_MAX).await?;
    let ids: Vec<Uuid> = maps.iter().map(|map| map.id).collect();
    let mut prints = sql::prints_of(app.store.sql(), &ids, PRINTS_MAX).await?;
    let mut known = Known::of(&app, caller.owner, prints.values()).await?;
    let rows: Vec<Row> = maps
        .into_iter()
        .map(|map| {
            let prints = prints.remove(&map.id).unwrap_or_default();
            Row::new(map, &prints, &mut known)
        })
        .collect();
    draw(&Page {
        limit: words::size(i64::try_from(MAP_BYTES_MAX).unwrap_or(i64::MAX)),
        signed_in: app.store.owner_name(caller.owner).await?,
        active: rows.iter().flat_map(Row::prints).filter(|print| print.is_active).count(),
        rows,
        is_later: before.is_some(),
        next: next_cursor.map(|cursor| format!("/maps?cursor={cursor}")),
    })
}

/// What is known of the prints on a page.
struct Known {
    /// Whether the one who looks may order them.
    is_payer: bool,
    jobs: HashMap<JobId, JobRecord>,
    facts: PrintFacts,
}

impl Known {
    async fn of(app: &App, owner: Owner, prints: impl Iterator<Item = &Prints>) -> Result<Self, Problem> {
        let ids: Vec<JobId> = prints.flat_map(|prints| prints.jobs.iter().copied()).collect();
        let jobs = app.store.jobs_by_id(ids.iter().copied()).await?;
        Ok(Known {
            is_payer: matches!(owner, Owner::Organisation(_)),
            jobs: jobs.into_iter().map(|job| (job.record.id, job.record)).collect(),
            facts: PrintFacts::of(app.store.sql(), &ids).await?,
        })
    }

    /// A print as it is shown; nothing of one that was removed a moment ago.
    fn print(&mut self, id: JobId) -> Option<Print> {
        let job = self.jobs.remove(&id)?;
        let print = Print::new(&job, self.facts.exports.get(&id), self.facts.orders.get(&id));
        let warnings = self.facts.warnings.remove(&id).unwrap_or_default();
        Some(Print { can_order: print.can_order && self.is_payer, warnings, ..print })
    }
}

impl Row {
    fn new(map: PrintableMap, prints: &Prints, known: &mut Known) -> Self {
        let mut shown = prints.jobs.iter().filter_map(|id| known.print(*id));
        let newest = shown.next();
        let earlier: Vec<Print> = shown.collect();
        Row {
            id: map.id,
            name: map.title.unwrap_or_else(|| "Untitled map".into()),
            paper: map.page_size.map(|size| format!("{}, ", paper(&size))).unwrap_or_default(),
            created_at: map.created_at.to_string(),
            created: words::moment(map.created_at),
            news: newest.as_ref().map_or("", Print::news),
            can_print: newest.as_ref().is_none_or(|print| print.state != PENDING_EXPORT),
            after: newest.as_ref().map_or(map.id, |print| print.id.0).to_string(),
            more: prints.count.saturating_sub(prints.jobs.len()),
            newest,
            earlier,
        }
    }

    fn prints(&self) -> impl Iterator<Item = &Print> {
        self.newest.iter().chain(&self.earlier)
    }
}

/// The size of paper as people say it.
fn paper(size: &str) -> String {
    #[derive(Deserialize)]
    struct Sides {
        width_mm: f64,
        height_mm: f64,
    }
    match serde_json::from_str(size) {
        Ok(Sides { width_mm, height_mm }) => format!("{width_mm} × {height_mm} mm"),
        Err(_) if size.contains('x') => format!("{} in", size.replace('x', " × ")),
        Err(_) => size.to_owned(),
    }
}

impl Print {
    fn new(job: &JobRecord, export: Option<&Artifact>, order: Option<&OrderRecord>) -> Self {
        let (class, label) = standing(job.state, order);
        let is_waiting = [PENDING_EXPORT, EXPORT_COMPLETE].contains(&job.state);
        let retry_at = job.run_at.filter(|_| is_waiting);
        let is_running = [EXPORTING, ORDERING].contains(&job.state);
        Print {
            id: job.id,
            class,
            label,
            percent: is_running.then_some(job.progress.percent),
            told: job.progress.message.clone().filter(|_| is_running).or_else(|| {
                let size = export.map(|file| words::size(file.bytes));
                size.filter(|_| job.state == EXPORT_COMPLETE)
            }),
            retry_at: retry_at.map(|at| (at.to_string(), words::moment(at))),
            why: job.error_message.clone(),
            warnings: Vec::new(),
            order: order.map(order_told),
            attention: order.and_then(|order| order.attention_message.clone()),
            created_at: job.created_at.to_string(),
            created: words::moment(job.created_at),
            state: job.state,
            can_download: export.is_some(),
            can_retry: job.can_print_again(),
            can_order: order.is_none() && [PENDING_EXPORT, EXPORTING, EXPORT_COMPLETE].contains(&job.state),
            is_active: is_running
                || job.state == PENDING_EXPORT
                || job.state == EXPORT_COMPLETE && order.is_some(),
        }
    }

    fn news(&self) -> &'static str {
        match self.class {
            "done" => "complete",
            "failed" => "failed",
            _ => "",
        }
    }
}

/// How a print stands: the look of its badge, and what it says.
fn standing(state: JobState, order: Option<&OrderRecord>) -> (&'static str, &'static str) {
    match (state.as_str(), order) {
        ("pending_export", _) => ("ready", "Waiting"),
        ("exporting", _) => ("running", "Drawing…"),
        ("export_failed", _) => ("failed", "Failed"),
        ("export_complete", None) => ("done", "Ready"),
        ("export_complete", Some(_)) => ("ready", "To be ordered"),
        ("ordering", _) => ("running", "Ordering…"),
        ("order_failed", _) => ("failed", "Order failed"),
        ("ordered", Some(order)) if order.shipped_at.is_some() => ("done", "Shipped"),
        ("ordered", _) => ("done", "Ordered"),
        ("fulfilled", _) => ("done", "Delivered"),
        // Prints have no other states.
        _ => ("held", "Unknown"),
    }
}

/// An order in a line.
fn order_told(order: &OrderRecord) -> String {
    let number = match order.provider_order_id {
        Some(number) => format!("Order {number}"),
        None => "Order".to_owned(),
    };
    let cost = match order.cost {
        Some(cost) => format!("{cost} {}", order.currency),
        None => format!("up to {} {}", order.cost_max, order.currency),
    };
    let standing = match order.provider_status.as_deref() {
        Some(status) => status,
        None if order.placed_at.is_some() => "placed",
        None => "not placed yet",
    };
    format!("{number}: {standing}, {cost}")
}

/// Takes a map from a form and prints it.
pub(super) async fn add(
    State(app): State<Arc<App>>,
    Extension(site): Site,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Redirect, Problem> {
    app.check_disk()?;
    app.limits.upload(&caller).await?;
    let (name, file) = file_of(request).await?;
    let drawer = &site.drawer;
    let frozen = if is_geojson(&file) {
        let features = String::from_utf8(file.into()).map_err(|_| no_map())?;
        let spec = json!({ "schema": 1, "title": { "text": name } });
        drawer.freeze(spec.to_string().into(), Some((&name, &features))).await?
    } else {
        drawer.freeze(file, None).await?
    };
    routes::print(&app, &caller, FrozenMap::new(frozen.text, None), None, None).await?;
    Ok(Redirect::to("/maps"))
}

/// What is read of a form: a map that is heard out, and what stands around it.
const FORM_BYTES_MAX: u64 = (MAP_BYTES_MAX + SKIPPED_BYTES_MAX + (64 << 10)) as u64;

/// The file of the form, and its name without what says its type.
async fn file_of(request: Request) -> Result<(String, Bytes), Problem> {
    let form = form::Form::of(request, FORM_BYTES_MAX);
    let mut form = form.ok_or_else(|| Problem::invalid("This is no form."))?;
    while let Some(field) = upload::patient(form.next_field()).await? {
        if field.name() == "file" {
            let name = field.filename().unwrap_or("Map");
            let name = name.rsplit_once('.').map_or(name, |(name, _)| name).chars().take(100).collect();
            let file = arrived(field.pieces()).await?;
            return if file.is_empty() { Err(no_map()) } else { Ok((name, file)) };
        }
    }
    Err(no_map())
}

fn no_map() -> Problem {
    Problem::invalid("There is no map in the form. Go back and choose a file of JSON.")
}

/// Whether a file holds features alone, rather than a whole specification.
fn is_geojson(file: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    serde_json::from_slice::<Kind<'_>>(file).is_ok_and(|kind| kind.kind == "FeatureCollection")
}

/// After which print another is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Again {
    after: Uuid,
}

/// Prints a map once more.
pub(super) async fn print(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    form: Result<Form<Again>, FormRejection>,
) -> Result<Redirect, Problem> {
    let Form(Again { after }) =
        form.map_err(|_| Problem::invalid("The form is not understood. Go back and send it again."))?;
    routes::print_again(&app, &caller, map_id(&id)?, Some(format!("after {after}"))).await?;
    Ok(Redirect::to("/maps"))
}

/// Tries a failed print again.
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    routes::try_again(&app, &caller, &id).await?;
    Ok(Redirect::to("/maps"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_is_told_as_people_say_it() {
        let told = ["A3", "18x24", "Letter", r#"{"height_mm":297.5,"width_mm":210}"#].map(paper);
        assert_eq!(told, ["A3", "18 × 24 in", "Letter", "210 × 297.5 mm"]);
    }

    #[test]
    fn features_are_told_from_a_specification() {
        assert!(is_geojson(br#"{"features": [], "type": "FeatureCollection"}"#));
        assert!(!is_geojson(br#"{"schema": 1}"#) && !is_geojson(b"[]") && !is_geojson(b"no JSON"));
    }
}
