//! The pages of maps and their prints.

mod maps;
mod order;

use axum::Router;
use axum::routing::{get, post};
use ode_http::App;
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/maps", get(maps::show).post(maps::add))
        .route("/maps/{id}/print", post(maps::print))
        .route("/print-jobs/{id}/retry", post(maps::retry))
        .route("/print-jobs/{id}/order", get(order::show).post(order::order))
}
