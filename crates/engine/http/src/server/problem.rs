//! Errors as RFC 9457 problem documents, with our codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ode_job::{ErrorCode, Event, Failure, JobId, Refused};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::openapi::{self, ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

/// An answer that says what went wrong and what to do next.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    code: ErrorCode,
    /// Other than the code's own sentence.
    title: Option<String>,
    detail: String,
    /// Where in what was sent.
    path: Option<String>,
    retry_after: Option<Duration>,
    /// The job it is about, where that helps.
    job_id: Option<JobId>,
}

/// When whoever is told that we are busy should come back: about as long as a few conversions take.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// What went wrong, as RFC 9457 has it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// The kind of problem, as a name: `urn:ode:error:` and the code.
    #[schema(example = "urn:ode:error:NOT_FOUND")]
    r#type: String,
    /// What kind it is, in a sentence.
    pub title: String,
    /// The status of the answer.
    status: u16,
    /// The stable code; `ode explain CODE` says more.
    #[schema(value_type = String, example = "NOT_FOUND")]
    code: ErrorCode,
    /// What happened here and what to do next.
    pub detail: String,
    /// Where in what was sent it is wrong, such as `layers[0].style.color`, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Seconds after which it may be tried again, where that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// The job it is about, where that helps.
    #[schema(value_type = Option<String>, format = "uuid")]
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<JobId>,
}

/// Documents the problems of several routes at once.
macro_rules! problems {
    ($($(#[$about:meta])* $name:ident: $($status:literal),+;)+) => {
        $($(#[$about])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
                let problem = || ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
                let response = || ResponseBuilder::new().content("application/problem+json", problem()).build();
                [$($status),+].into_iter().map(|status: u16| (status.to_string(), response().into())).collect()
            }
        })+
    };
}

problems! {
    /// Those of who reads something.
    Reading: 400, 401, 404, 422, 429, 503;
    /// Those of who changes something that is there.
    Acting: 400, 401, 403, 404, 409, 429;
    /// Those of who fetches a file.
    Fetching: 400, 401, 404, 409, 416, 422, 429, 503;
    /// Those of who sends something.
    Sending: 400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503, 507;
}

impl Problem {
    /// One whose status goes with its code.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Problem::with_status(status(code), code, detail)
    }

    pub fn with_status(status: StatusCode, code: ErrorCode, detail: impl Into<String>) -> Self {
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(BUSY_FOR);
        Problem { status, code, title: None, detail: detail.into(), path: None, retry_after, job_id: None }
    }

    pub fn not_found() -> Self {
        Problem::new(ErrorCode::NotFound, "There is nothing at this address.")
    }

    /// There is no such job, or it is somebody else's: the answer is the same.
    pub fn no_job() -> Self {
        Problem::new(
            ErrorCode::NotFound,
            "There is no job by that id. Reload the list to see which there are.",
        )
    }

    pub fn method_not_allowed() -> Self {
        Problem::with_status(
            StatusCode::METHOD_NOT_ALLOWED,
            ErrorCode::Invalid,
            "This address does not take this method. The header Allow names those it takes.",
        )
    }

    /// The request itself is wrong.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Problem::new(ErrorCode::Invalid, detail)
    }

    /// The request did not arrive in the time it had.
    pub fn too_slow(detail: impl Into<String>) -> Self {
        Problem::with_status(StatusCode::REQUEST_TIMEOUT, ErrorCode::Invalid, detail)
    }

    /// Something broke that should not have.
    pub fn our_fault() -> Self {
        Problem::new(
            ErrorCode::Unknown,
            "This is our fault, not yours. Try again; if it stays so, the operator's log says why.",
        )
    }

    /// The same in other words.
    pub fn reworded(mut self, words: impl FnOnce(&str) -> String) -> Self {
        self.detail = words(&self.detail);
        self
    }

    /// The same under another title.
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same, about this place in what was sent; all of it has no place.
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into()).filter(|path| !path.is_empty());
        self
    }

    /// The same about a part of what was sent.
    pub fn within(mut self, part: &str) -> Self {
        self.detail = format!("{part}: {}", self.detail);
        self.path = Some(self.path.map_or_else(|| part.to_owned(), |path| format!("{part}.{path}")));
        self
    }

    /// The same, to be tried again after so long.
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The same about this job.
    pub fn about(mut self, job: JobId) -> Self {
        self.job_id = Some(job);
        self
    }

    /// What it is called, also in counts.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// How long to wait, in whole seconds: one more rather than one less.
    fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
    }

    pub fn document(&self) -> ProblemDocument {
        ProblemDocument {
            r#type: format!("urn:ode:error:{}", self.code),
            title: self.title.clone().unwrap_or_else(|| self.code.sentence().to_owned()),
            status: self.status.as_u16(),
            code: self.code,
            detail: self.detail.clone(),
            path: self.path.clone(),
            retry_after: self.retry_after_seconds(),
            job_id: self.job_id,
        }
    }
}

impl From<ErrorCode> for Problem {
    /// In the code's own words.
    fn from(code: ErrorCode) -> Self {
        Failure::from(code).into()
    }
}

impl From<ode_store::Error> for Problem {
    /// What the store says about jobs is for people; what it says about itself is for the log.
    fn from(error: ode_store::Error) -> Self {
        use ode_store::Error;
        match &error {
            Error::NotFound(_) | Error::Ambiguous(_) => Problem::no_job(),
            Error::Refused { refused } => Problem::new(ErrorCode::Conflict, refusal(refused)),
            Error::Declined { code, message, .. } => Problem::new(*code, message.clone()),
            Error::Invalid(invalid) => Problem::new(error.code(), error.to_string()).at(invalid.field()),
            Error::Duplicate { .. } | Error::Repeated(_) | Error::KeyReused | Error::SecretKept(_) => {
                Problem::new(error.code(), error.to_string())
            }
            Error::Busy(_) => Problem::new(ErrorCode::Conflict, sentence(ErrorCode::Conflict.sentence())),
            Error::DiskFull(_) => {
                tracing::error!(%error, "there is no space left");
                Problem::from(ErrorCode::DiskFull).after(Duration::from_secs(60))
            }
            Error::Unavailable(_) | Error::ReadOnly(_) => {
                tracing::error!(%error, "the database is away");
                Problem::from(error.code())
            }
            Error::Collision
            | Error::LeaseLost(_)
            | Error::Schema(_)
            | Error::Config(_)
            | Error::Blob(_)
            | Error::Corrupt(_)
            | Error::Database(_) => {
                tracing::error!(%error, "a request failed by our own fault");
                Problem::our_fault()
            }
        }
    }
}

/// Why a job's state does not allow what was asked for.
fn refusal(refused: &Refused) -> String {
    let may = match refused.event {
        Event::Retried => "Only a job that failed can be tried again",
        Event::Cancelled => {
            "Only a job that has not started can be cancelled, and one that runs can be stopped"
        }
        Event::Stopped => "Only a job that is running can be stopped",
        Event::Advanced => "Only a print that is not ordered yet can be ordered",
        Event::Expired => "Only a job that has ended can be removed; cancel or stop it first",
        _ => "The job's state does not allow this",
    };
    format!("{may}. This one is {}.", refused.from)
}

impl From<Failure> for Problem {
    /// What failed by our own fault is told without how: that is for the log.
    fn from(failure: Failure) -> Self {
        match status(failure.code) {
            StatusCode::INTERNAL_SERVER_ERROR => Problem::our_fault(),
            status => Problem::with_status(status, failure.code, sentence(&failure.message)),
        }
    }
}

/// With the full stop that the codes leave to the page.
pub fn sentence(message: &str) -> String {
    if message.ends_with(['.', '!', '?', '…']) { message.to_owned() } else { format!("{message}.") }
}

/// The status a code is told with. An unknown mapping is 422 and not 404: the address is right, a value in what was
/// sent is not.
fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Invalid => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden | ErrorCode::CrossSite | ErrorCode::SpendCap => StatusCode::FORBIDDEN,
        // What was removed is not there: who asks for it learns why from the code.
        ErrorCode::NotFound | ErrorCode::Expired => StatusCode::NOT_FOUND,
        ErrorCode::NotReady
        | ErrorCode::Conflict
        | ErrorCode::Duplicate
        | ErrorCode::Cancelled
        | ErrorCode::Stopped => StatusCode::CONFLICT,
        ErrorCode::TooLarge | ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::NotPdf => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::Unreadable
        | ErrorCode::Truncated
        | ErrorCode::Encrypted
        | ErrorCode::NoPages
        | ErrorCode::UnknownMapping
        | ErrorCode::NoMapping
        | ErrorCode::NoText
        | ErrorCode::BadMap => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Busy | ErrorCode::DatabaseUnavailable | ErrorCode::DatabaseReadOnly => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::Gw4xx
        | ErrorCode::Gw5xx
        | ErrorCode::GwTimeout
        | ErrorCode::IoError
        | ErrorCode::Unknown
        | ErrorCode::GatewayUnavailable
        | ErrorCode::TimedOut
        | ErrorCode::Poison
        | ErrorCode::OrderUnclear
        | ErrorCode::OrderFailed
        | ErrorCode::OrderRefused
        | ErrorCode::OrderMismatch
        | ErrorCode::OrderCancelled
        | ErrorCode::CostAboveCap
        | ErrorCode::FileRefused
        | ErrorCode::ProviderAway
        | ErrorCode::ScriptFailed
        | ErrorCode::ScriptMemory
        | ErrorCode::SecretsSealed
        | ErrorCode::SchemaMismatch => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The codes that an answer of this status comes with. What is wrong with a request itself is `INVALID`, whatever the status.
pub fn codes_of(of: StatusCode) -> Vec<&'static str> {
    const ALSO_INVALID: [StatusCode; 4] = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::RANGE_NOT_SATISFIABLE,
    ];
    let own = ErrorCode::ALL.iter().filter(|code| status(**code) == of);
    let also = ALSO_INVALID.contains(&of).then_some(&ErrorCode::Invalid);
    own.chain(also).map(|code| code.as_str()).collect()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.document()).expect("a problem document is always valid JSON");
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, headers, body).into_response();
        if let Some(seconds) = self.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // For whoever can tell it better, such as a page.
        response.extensions_mut().insert(self);
        response
    }
}
