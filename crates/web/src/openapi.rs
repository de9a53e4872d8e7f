//! The API's own description: OpenAPI 3.1 made from the routes, and a page that shows it.

use crate::problem::ProblemDocument;
use crate::{
    download, exports, health, jobs, live, maps, orders, print, review, scripts, service, upload, view,
};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use std::fmt::Write as _;
use std::sync::LazyLock;
use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};

#[derive(OpenApi)]
#[openapi(
    info(title = "ODE", description = "PDFs in, XML out. Every error is a problem document (RFC 9457) with a stable code.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")),
    paths(upload::upload, jobs::list, jobs::detail, jobs::delete, jobs::events, download::download, download::link, download::by_link,
        review::checks, review::revisions, review::revise, jobs::retry, jobs::cancel, jobs::stop, live::stream, health::healthz, health::live, health::ready,
        maps::list_user_maps, maps::add_user_map, maps::user_map, maps::change_user_map, maps::delete_user_map,
        print::export, print::preview, maps::list_printable_maps, maps::printable_map, maps::preview,
        print::export_again, print::list, print::detail, print::download, print::retry, print::reprint, orders::order, orders::show, exports::fetch,
        service::submit::submit, service::batch::submit, service::read::list, service::read::detail, service::remove::remove,
        service::files::assets, service::read::logs, service::read::events, service::files::view, service::files::download,
        service::files::by_link, scripts::read::types, scripts::submit::submit, scripts::submit::batch, scripts::read::list,
        scripts::read::detail, scripts::read::events, scripts::logs::logs, scripts::artifacts::list, scripts::artifacts::fetch,
        scripts::act::cancel, scripts::act::stop, scripts::act::retry, scripts::act::reveal),
    components(schemas(ProblemDocument, view::JobView, live::JobEvent)),
    modifiers(&Credentials),
    security((), ("session" = []), ("key" = [])),
    tags((name = "jobs", description = "Documents and what becomes of them"),
        (name = "maps", description = "Maps, and their way to a print"),
        (name = "html", description = "PDFs into HTML, for programs with an API key"),
        (name = "scripts", description = "Long automations as jobs, for programs with an API key"),
        (name = "health", description = "Whether it can do its work"))
)]
struct Api;

struct Credentials;

impl utoipa::Modify for Credentials {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let session = ApiKeyValue::with_description(
            "ode_session",
            "A browser's session. Whoever has none gets one with the first answer. Over TLS it is called __Host-ode_session.",
        );
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("ode_…");
        let key =
            key.description(Some("An API key of a user or an organisation, made with `ode keys create`."));
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
        components.add_security_scheme("key", SecurityScheme::Http(key.build()));
    }
}

static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let api = Api::openapi();
    (api.to_json().expect("the description is always valid JSON"), describe(&api))
});

/// The description, for programs.
pub(crate) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], DOCUMENT.0.as_str())
}

/// The description, for people.
pub(crate) async fn page() -> impl IntoResponse {
    ([(header::CACHE_CONTROL, "no-cache")], Html(DOCUMENT.1.as_str()))
}

/// What people look for first comes first.
const ORDER: [&str; 11] = [
    "/api/upload",
    "/api/jobs",
    "/api/stream",
    "/api/files",
    "/api/export",
    "/api/print-jobs",
    "/api/printable-maps",
    "/api/user-maps",
    "/exports",
    "/v1/",
    "/api/healthz",
];

/// Writes the description as a page, dressed like the others.
fn describe(api: &utoipa::openapi::OpenApi) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>The API of ODE</title>\n<link rel=\"icon\" \
         href=\"/assets/icon.svg\" type=\"image/svg+xml\">\n<link rel=\"stylesheet\" \
         href=\"/assets/ode.css\">\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n\
         <header class=\"top\">\n<a class=\"brand\" href=\"/\">ODE</a>\n<nav aria-label=\"Pages\"><a \
         href=\"/\">Queue</a> <a href=\"/maps\">Maps</a> <a href=\"/api/docs\" aria-current=\"page\">API</a></nav>\n</header>\n<main \
         id=\"main\" class=\"docs\">\n<h1>The API</h1>\n<p>{}</p>\n<p>For programs: <a \
         href=\"/api/openapi.json\">openapi.json</a> (OpenAPI 3.1). Send an API key as <code>Authorization: Bearer \
         ode_…</code>; a browser is known by its cookie.</p>\n",
        escaped(api.info.description.as_deref().unwrap_or_default())
    );
    let place = |path: &str| ORDER.iter().position(|start| path.starts_with(start)).unwrap_or(ORDER.len());
    let mut paths: Vec<_> = api.paths.paths.iter().collect();
    paths.sort_by_key(|(path, _)| place(path));
    for (path, item) in paths {
        let operations =
            [("GET", &item.get), ("POST", &item.post), ("PUT", &item.put), ("DELETE", &item.delete)];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                describe_operation(&mut page, method, path, operation);
            }
        }
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn describe_operation(page: &mut String, method: &str, path: &str, operation: &Operation) {
    let summary = escaped(operation.summary.as_deref().unwrap_or_default());
    // Writing to a String cannot fail.
    let _ = write!(page, "<section>\n<h2><code>{method} {}</code></h2>\n<p>{summary}</p>\n", escaped(path));
    if let Some(description) = operation.description.as_deref() {
        let _ = writeln!(page, "<p>{}</p>", escaped(description));
    }
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => {
            Some((parameter.name.clone(), parameter.description.clone().unwrap_or_default()))
        }
        RefOr::Ref(_) => None,
    });
    describe_table(page, "Parameters", parameters);
    let answers = operation.responses.responses.iter().map(|(status, response)| {
        let about = match response {
            RefOr::T(response) => response.description.as_str(),
            RefOr::Ref(_) => "",
        };
        let code = status.parse::<u16>().ok().and_then(|code| StatusCode::from_u16(code).ok());
        let name = code.and_then(|code| code.canonical_reason()).unwrap_or_default();
        let is_problem = code.is_some_and(|code| code.is_client_error() || code.is_server_error());
        let about = if about.is_empty() && is_problem { "A problem document says why." } else { about };
        (format!("{status} {name}"), about.to_owned())
    });
    describe_table(page, "Answers", answers);
    page.push_str("</section>\n");
}

fn describe_table(page: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    let rows: String = rows
        .map(|(name, about)| {
            format!(
                "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td></tr>\n",
                escaped(&name),
                escaped(&about)
            )
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(page, "<h3>{title}</h3>\n<table>\n{rows}</table>\n");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
