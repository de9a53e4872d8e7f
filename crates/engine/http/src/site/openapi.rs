//! The API's own description: OpenAPI 3.1 made from the routes, and a page that shows it.

use crate::jobs;
use crate::jobs::checks;
use crate::jobs::download;
use crate::jobs::live;
use crate::jobs::upload;
use crate::jobs::view;
use crate::server::problem::{ProblemDocument, codes_of};
use crate::site::health;
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{RefOr, Response};

#[derive(OpenApi)]
#[openapi(
    info(title = "ODE", description = "PDFs in, XML out. Every error is a problem document (RFC 9457) with a stable code.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")),
    paths(upload::upload, jobs::routes::list, jobs::routes::detail, jobs::routes::delete, jobs::routes::events, download::download, download::link, download::by_link,
        checks::checks, jobs::routes::retry, jobs::routes::cancel, jobs::routes::stop, live::stream, health::healthz, health::live, health::ready),
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

/// The description in its two forms.
pub struct Described {
    /// For programs.
    pub json: String,
    /// For people.
    pub page: String,
}

impl Described {
    /// That of the shared routes, with what pipelines say of theirs.
    pub fn new(added: utoipa::openapi::OpenApi) -> Self {
        let mut api = Api::openapi();
        api.merge(added);
        // In the order of their addresses, whatever the order of the pipelines.
        let mut tags = api.tags.take().unwrap_or_default();
        tags.sort_by_key(|tag| place_of_tag(&api, &tag.name));
        api.tags = Some(tags);
        let json = api.to_json().expect("the description is always valid JSON");
        Described { json, page: describe(&api) }
    }
}

/// The description, for programs.
pub async fn document(Extension(described): Extension<Arc<Described>>) -> impl IntoResponse {
    let head = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (head, described.json.clone())
}

/// The description, for people.
pub async fn page(Extension(described): Extension<Arc<Described>>) -> impl IntoResponse {
    ([(header::CACHE_CONTROL, "no-cache")], Html(described.page.clone()))
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

/// The place of an address in this order.
fn place(path: &str) -> usize {
    ORDER.iter().position(|start| path.starts_with(start)).unwrap_or(ORDER.len())
}

/// The place of the first address with this tag.
fn place_of_tag(api: &utoipa::openapi::OpenApi, tag: &str) -> usize {
    let has_tag = |operation: &&Operation| operation.tags.iter().flatten().any(|name| name == tag);
    let tagged = api.paths.paths.iter().filter(|(_, item)| {
        [&item.get, &item.post, &item.put, &item.delete]
            .into_iter()
            .flatten()
            .any(|operation| has_tag(&operation))
    });
    tagged.map(|(path, _)| place(path)).min().unwrap_or(ORDER.len())
}

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
    let mut paths: Vec<_> = api.paths.paths.iter().collect();
    paths.sort_by_key(|(path, _)| place(path));
    let schemas = serde_json::to_value(&api.components).expect("the description is always valid JSON");
    let schemas = &schemas["schemas"];
    for (path, item) in paths {
        let operations =
            [("GET", &item.get), ("POST", &item.post), ("PUT", &item.put), ("DELETE", &item.delete)];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                describe_operation(&mut page, (method, path), operation, schemas);
            }
        }
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn describe_operation(
    page: &mut String,
    (method, path): (&str, &str),
    operation: &Operation,
    schemas: &Value,
) {
    let summary = escaped(operation.summary.as_deref().unwrap_or_default());
    // Writing to a String cannot fail.
    let _ = write!(page, "<section>\n<h2><code>{method} {}</code></h2>\n<p>{summary}</p>\n", escaped(path));
    if let Some(description) = operation.description.as_deref() {
        let _ = writeln!(page, "<p>{}</p>", marked(description));
    }
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => {
            Some((parameter.name.clone(), parameter.description.clone().unwrap_or_default()))
        }
        RefOr::Ref(_) => None,
    });
    describe_table(page, "Parameters", parameters);
    let body = serde_json::to_value(&operation.request_body).expect("the description is always valid JSON");
    for (kind, content) in body["content"].as_object().into_iter().flatten() {
        let mut rows = Vec::new();
        list_fields(&mut rows, "", &content["schema"], schemas);
        if rows.is_empty() {
            rows.push(("the whole".to_owned(), kind_of(resolved(&content["schema"], schemas), schemas)));
        }
        describe_table(page, &format!("Body, as {}", escaped(kind)), rows.into_iter());
    }
    let answers = operation.responses.responses.iter().map(|(status, response)| {
        let about = match response {
            RefOr::T(response) if response.description.is_empty() => answered(response),
            RefOr::T(response) => response.description.clone(),
            RefOr::Ref(_) => String::new(),
        };
        let code = status.parse::<u16>().ok().and_then(|code| StatusCode::from_u16(code).ok());
        let name = code.and_then(|code| code.canonical_reason()).unwrap_or_default();
        let codes = code.map(codes_of).unwrap_or_default();
        let about = if codes.is_empty() || !about.starts_with("Problem") {
            about
        } else {
            let codes: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
            format!("Problem: {}", codes.join(", "))
        };
        (format!("{status} {name}"), about)
    });
    describe_table(page, "Answers", answers);
    page.push_str("</section>\n");
}

/// What an answer holds, by the name that it has in the description for programs.
fn answered(response: &Response) -> String {
    let content = serde_json::to_value(&response.content).expect("the description is always valid JSON");
    let told = content.as_object().into_iter().flatten().map(|(kind, content)| {
        let name = content["schema"]["$ref"].as_str().and_then(|address| address.rsplit('/').next());
        format!("{} as {kind}", name.unwrap_or("A file"))
    });
    told.collect::<Vec<_>>().join(", or ")
}

/// Fields of fields are listed by their paths, down to here; deeper ones are in the description for programs.
const DOTS_MAX: usize = 2;

/// Lists the fields of what is sent: name or path, then kind, whether it is needed, and what it is.
fn list_fields(rows: &mut Vec<(String, String)>, within: &str, schema: &Value, schemas: &Value) {
    let schema = resolved(schema, schemas);
    let needed: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let found = resolved(field, schemas);
        let about =
            [field, found].into_iter().find_map(|told| told["description"].as_str()).unwrap_or_default();
        let need = if needed.contains(&name.as_str()) { ", needed" } else { "" };
        rows.push((format!("{within}{name}"), format!("{}{need}. {about}", kind_of(found, schemas))));
        if within.matches('.').count() < DOTS_MAX {
            let (inner, mark) =
                if found["items"].is_object() { (&found["items"], "[]") } else { (found, "") };
            list_fields(rows, &format!("{within}{name}{mark}."), inner, schemas);
        }
    }
}

/// What a schema leads to: one that is named elsewhere, or the one of several that is a value.
fn resolved<'a>(schema: &'a Value, schemas: &'a Value) -> &'a Value {
    let parts = ["oneOf", "allOf", "anyOf"].into_iter().find_map(|several| schema[several].as_array());
    let schema = parts.and_then(|parts| parts.iter().find(|part| part["type"] != "null")).unwrap_or(schema);
    let name = schema["$ref"].as_str().and_then(|address| address.rsplit('/').next());
    name.map_or(schema, |name| &schemas[name])
}

/// The kind of a value in words.
fn kind_of(schema: &Value, schemas: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| value.to_string().replace('"', "")).collect();
        return format!("one of {}", values.join(", "));
    }
    if schema["items"].is_object() {
        return format!("list of {}", kind_of(resolved(&schema["items"], schemas), schemas));
    }
    let kinds = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
    let kind = kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("any value");
    match schema["format"].as_str() {
        Some("binary") => "file".to_owned(),
        Some(format) => format!("{kind} ({format})"),
        None => kind.to_owned(),
    }
}

fn describe_table(page: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    let rows: String = rows
        .map(|(name, about)| {
            format!(
                "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td></tr>\n",
                escaped(&name),
                marked(&about)
            )
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(page, "<h3>{title}</h3>\n<table>\n{rows}</table>\n");
    }
}

/// A description with what stands between backticks as code.
fn marked(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escaped(part).into_owned(),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.map(part).collect()
}

fn escaped(text: &str) -> Cow<'_, str> {
    html_escape::encode_double_quoted_attribute(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn section(address: &str) -> String {
        let page = describe(&Api::openapi());
        let (_, rest) =
            page.split_once(&format!("<h2><code>{address}</code></h2>")).expect("it is described");
        rest.split_once("</section>").expect("it ends").0.to_owned()
    }

    #[track_caller]
    fn assert_told(address: &str, told: &[&str]) {
        let section = section(address);
        for told in told {
            assert!(section.contains(told), "{told:?} is not told of {address}:\n{section}");
        }
    }

    #[test]
    fn what_is_to_be_sent_is_told_field_by_field() {
        let row = |name: &str| format!("<code>{name}</code></th><td>");
        assert_told(
            "POST /api/upload",
            &[
                "Body, as multipart/form-data",
                &format!("{}list of ", row("file")),
                ", needed. The PDFs.",
                &format!("{}string. Which mapping makes the XML", row("mapping")),
                &row("output"),
            ],
        );
    }

    #[test]
    fn every_status_of_a_problem_names_the_codes_it_comes_with() {
        assert_told("POST /api/upload", &["NOT_PDF", "TRUNCATED", "ENCRYPTED", "DISK_FULL", "RATE_LIMITED"]);
        assert_told("GET /api/jobs", &["Problem: <code>INVALID</code><"]);
    }
}
