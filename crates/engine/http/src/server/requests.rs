//! What the site counts of requests.

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use ode_metrics::{Counter, Family};
use std::borrow::Cow;

static REQUESTS: Counter<3> = Counter::new(
    "ode_http_requests_total",
    "Requests to the site that were answered, by method, route and status.",
    ["method", "route", "status"],
);

/// What the web side counts.
pub static METRICS: [&dyn Family; 1] = [&REQUESTS];

/// What was asked for, as far as it is counted: the route and not the path, which holds ids.
pub struct Asked {
    method: &'static str,
    route: Cow<'static, str>,
}

impl Asked {
    pub fn of(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        Asked {
            method: name(request.method()),
            route: route.map_or("other".into(), |route| route.as_str().to_owned().into()),
        }
    }

    /// Counts it. A stream is answered when it begins.
    pub fn answered(self, status: StatusCode) {
        REQUESTS.add([self.method.into(), self.route, status.as_u16().to_string().into()], 1);
    }
}

/// Anybody can make up a method; only those that a route may have are told apart.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
