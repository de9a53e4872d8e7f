//! Maps and prints over HTTP: the API, the pages, the links to pictures, and the door for the provider's events.

mod exports;
mod maps;
mod orders;
mod previews;
mod prints;

pub use exports::ExportLinks;
pub(crate) use maps::{MAP_BYTES_MAX, SKIPPED_BYTES_MAX, arrived, map_id, no_map};
pub(crate) use orders::{ask, payer};
pub use previews::PrintSite;
pub(crate) use previews::Site;
pub(crate) use prints::{find_print, print, print_again, try_again};

use crate::pages;
use axum::Router;
use axum::extract::Extension;
use axum::routing::{get, post};
use ode_http::{App, Routes};
use std::sync::Arc;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    paths(maps::list_user_maps, maps::add_user_map, maps::user_map, maps::change_user_map, maps::delete_user_map,
        prints::export, prints::preview, maps::list_printable_maps, maps::printable_map, maps::preview,
        prints::export_again, prints::list, prints::detail, prints::download, prints::retry, prints::reprint,
        orders::order, orders::show, exports::fetch),
    tags((name = "maps", description = "Maps, and their way to a print"))
)]
struct Api;

/// The addresses of maps and prints.
pub(crate) fn routes(site: Arc<PrintSite>) -> Routes {
    Routes {
        kind: Some(prints::job_kind()),
        known: known().merge(pages::routes()).layer(Extension(site.clone())),
        open: open().layer(Extension(site)),
        api: Api::openapi(),
        ..Routes::default()
    }
}

fn known() -> Router<Arc<App>> {
    Router::new()
        .route("/api/user-maps", get(maps::list_user_maps).post(maps::add_user_map))
        .route(
            "/api/user-maps/{id}",
            get(maps::user_map).put(maps::change_user_map).delete(maps::delete_user_map),
        )
        .route("/api/export", post(prints::export))
        .route("/api/export/preview", post(prints::preview))
        .route("/api/printable-maps", get(maps::list_printable_maps))
        .route("/api/printable-maps/{id}", get(maps::printable_map))
        .route("/api/printable-maps/{id}/preview", get(maps::preview))
        .route("/api/printable-maps/{id}/export", post(prints::export_again))
        .route("/api/print-jobs", get(prints::list))
        .route("/api/print-jobs/{id}", get(prints::detail))
        .route("/api/print-jobs/{id}/download", get(prints::download))
        .route("/api/print-jobs/{id}/retry", post(prints::retry))
        .route("/api/print-jobs/{id}/reprint", post(prints::reprint))
        .route("/api/print-jobs/{id}/order", get(orders::show).post(orders::order))
}

fn open() -> Router<Arc<App>> {
    Router::new()
        .route("/exports/{file}", get(exports::fetch))
        .route("/webhooks/printful", post(orders::hook))
}
