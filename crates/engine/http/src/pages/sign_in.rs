//! Signing in with a key, and out again.

use crate::App;
use crate::callers::caller::{sign_in_cookie, sign_out_cookie};
use crate::server::problem::Problem;
use askama::Template;
use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use ode_job::ErrorCode;
use ode_store::KeyText;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page;

pub(super) async fn show() -> Result<Html<String>, Problem> {
    super::draw(&Page)
}

/// The key that somebody shows.
#[derive(Deserialize)]
pub(super) struct Shown {
    key: String,
}

pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    form: Result<Form<Shown>, FormRejection>,
) -> Result<Response, Problem> {
    let unknown = || {
        let detail =
            "This is no key, or it was revoked. Go back and paste the whole of it, from ode_ to its end.";
        Problem::new(ErrorCode::Unauthorized, detail)
    };
    let Form(Shown { key }) = form.map_err(|_| unknown())?;
    let key: KeyText = key.trim().parse().map_err(|_| unknown())?;
    app.store.authenticate(&key).await?.ok_or_else(unknown)?;
    let cookie = sign_in_cookie(&app, &headers, key.id());
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/maps")).into_response())
}

pub(super) async fn sign_out(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    ([(header::SET_COOKIE, sign_out_cookie(&app, &headers))], Redirect::to("/maps")).into_response()
}
