//! The API's own description: OpenAPI 3.1 made from the routes, and a page that shows it.

use crate::problem::ProblemDocument;
use crate::{download, health, jobs, live, upload, view};
use axum::http::header;
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
        jobs::retry, jobs::cancel, jobs::stop, live::stream, health::healthz, health::live, health::ready),
    components(schemas(ProblemDocument, view::JobView, live::JobEvent)),
    modifiers(&Credentials),
    security((), ("session" = []), ("key" = [])),
    tags((name = "jobs", description = "Documents and what becomes of them"),
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
    // Its style is part of the page, and named by its digest rather than allowed in general.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    (
        [(header::CONTENT_SECURITY_POLICY, policy), (header::CACHE_CONTROL, "no-cache")],
        Html(DOCUMENT.1.as_str()),
    )
}

const STYLE: &str = "
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
code { font: 0.9em ui-monospace, monospace; }
section { border-top: 1px solid GrayText; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0; }
.method { font-weight: 700; text-transform: uppercase; }";

/// Writes the description as a page.
fn describe(api: &utoipa::openapi::OpenApi) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>The API of ODE</title><style>{STYLE}</style><main><h1>The API of \
         ODE</h1><p>{}</p><p>For programs: <a href=\"/api/openapi.json\">openapi.json</a> (OpenAPI 3.1). Send an API \
         key as <code>Authorization: Bearer ode_…</code>; a browser is known by its cookie.</p>",
        escaped(api.info.description.as_deref().unwrap_or_default())
    );
    for (path, item) in &api.paths.paths {
        let operations = [("get", &item.get), ("post", &item.post), ("delete", &item.delete)];
        for (method, operation) in
            operations.into_iter().filter_map(|(method, found)| Some((method, found.as_ref()?)))
        {
            describe_operation(&mut page, method, path, operation);
        }
    }
    page.push_str("</main></html>");
    page
}

fn describe_operation(page: &mut String, method: &str, path: &str, operation: &Operation) {
    let summary = escaped(operation.summary.as_deref().unwrap_or_default());
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "<section><h2><code><span class=\"method\">{method}</span> {}</code></h2><p>{summary}</p>",
        escaped(path)
    );
    if let Some(description) = operation.description.as_deref() {
        let _ = write!(page, "<p>{}</p>", escaped(description));
    }
    let parameters = operation.parameters.iter().flatten();
    let rows: String = parameters
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
        .map(|parameter| {
            let (name, about) =
                (escaped(&parameter.name), parameter.description.as_deref().unwrap_or_default());
            format!("<tr><th scope=\"row\"><code>{name}</code><td>{}", escaped(about))
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(page, "<h3>Parameters</h3><table>{rows}</table>");
    }
    page.push_str("<h3>Answers</h3><table>");
    for (status, response) in &operation.responses.responses {
        let about = match response {
            RefOr::T(response) => response.description.as_str(),
            RefOr::Ref(_) => "",
        };
        let _ = write!(page, "<tr><th scope=\"row\"><code>{status}</code><td>{}", escaped(about));
    }
    page.push_str("</table></section>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
