//! What lists and logs are asked for in an address: read the same way, and refused in the same words, wherever it is taken.

use crate::server::problem::Problem;
use axum::extract::Query;
use axum::http::Uri;
use jiff::Timestamp;
use ode_job::{JobId, JobRef};
use serde::de::DeserializeOwned;

/// How many are listed where nothing is said.
const LIMIT_DEFAULT: usize = 100;
/// The most that a list below `/api` gives: a page that shows more is slow to draw.
pub const PAGE_MAX: usize = 200;
/// The most that a list or a log below `/v1` gives.
pub const PART_MAX: usize = 1000;

/// Reads the query of a request.
pub fn query<T: DeserializeOwned>(uri: &Uri, form: &str) -> Result<T, Problem> {
    // No name holds it, and PostgreSQL has no place for it.
    if uri.query().is_some_and(|query| query.contains("%00")) {
        return Err(Problem::invalid("The query holds the character U+0000. Remove it."));
    }
    let read = Query::<T>::try_from_uri(uri).map(|Query(query)| query);
    read.map_err(|_| Problem::invalid(format!("The query is not understood. It takes {form}, each once.")))
}

/// The moment that a list is asked for since.
pub fn since(text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let since = text.map(str::parse).transpose();
    since.map_err(|_| Problem::invalid("since is not a moment. Write it like 2026-11-15T09:30:00Z."))
}

/// The job after which a list goes on.
pub fn cursor(text: Option<&str>) -> Result<Option<JobId>, Problem> {
    match text.map(str::parse) {
        None => Ok(None),
        Some(Ok(JobRef::Id(id))) => Ok(Some(id)),
        Some(_) => {
            let detail = "cursor is not understood. Give the next_cursor of the part before, unchanged.";
            Err(Problem::invalid(detail))
        }
    }
}

/// How many are asked for, where `most` is the most that can be.
pub fn limit(text: Option<&str>, most: usize) -> Result<usize, Problem> {
    match text.map(str::parse) {
        None => Ok(LIMIT_DEFAULT),
        Some(Ok(limit)) if (1..=most).contains(&limit) => Ok(limit),
        Some(_) => Err(Problem::invalid(format!("limit is a number from 1 to {most}."))),
    }
}

/// The line of a log after which to go on.
pub fn after(text: Option<&str>) -> Result<i64, Problem> {
    let id = text.map_or(Ok(0), str::parse);
    id.map_err(|_| Problem::invalid("after is the id of a line, a whole number."))
}
