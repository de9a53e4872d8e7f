//! What a pipeline adds to the site.

use crate::{App, JobKind};
use axum::Router;
use std::sync::Arc;
use utoipa::openapi::OpenApi;

/// Addresses of a pipeline, by who may use them, and their description.
#[derive(Default)]
pub struct Routes {
    /// How its jobs appear at the addresses that all pipelines share.
    pub kind: Option<JobKind>,
    /// The type of job that a document becomes for which none is named, if it is one of this pipeline's.
    pub type_default: Option<String>,
    /// For whoever has a session, signed in, or brings a key: a [`crate::callers::caller::Caller`] is in the request's extensions.
    pub known: Router<Arc<App>>,
    /// For programs with a key; the caller is there as well.
    pub keyed: Router<Arc<App>>,
    /// For anybody. What they show must be public, or named by a link that was signed.
    pub open: Router<Arc<App>>,
    /// What the API's description says of them.
    pub api: OpenApi,
}
