//! Conversions at the addresses that all pipelines share.

use crate::machine::HTML;
use crate::request::{HtmlInput, KIND, published_at};
use crate::routes::send_archive;
use ode_http::App;
use ode_http::intake::Wanted;
use ode_http::kind::{Download, Intake, JobKind, Offer, Published};
use ode_http::view::Links;
use ode_job::{JobRecord, NewJob, Phase, SourceDocument};
use ode_store::{OwnedJob, Places};
use std::sync::Arc;

/// Describes how conversions are shown, and which documents become one. Their files may lie at these places, too.
pub(super) fn job_kind(places: Places) -> JobKind {
    let offer = Offer {
        name: KIND.into(),
        label: "A page to look at (HTML)".into(),
        about: "The document as a web page, with its fonts and pictures".into(),
    };
    JobKind {
        filename,
        links,
        download: Some(Download::new(async |app: Arc<App>, job: JobRecord| send_archive(&app, &job).await)),
        intake: Some(Intake { offers: vec![offer], ..Intake::new(&[KIND], job) }),
        published: Some(Published { address: |job| published_at(&job.input), places }),
        ..JobKind::new(HTML)
    }
}

fn job(document: SourceDocument, wanted: Wanted<'_>) -> NewJob {
    let input = HtmlInput { document: Some(document), ..HtmlInput::default() };
    NewJob::new(HTML, wanted.mapping, input.to_json())
}

fn filename(job: &JobRecord) -> Option<String> {
    let input = HtmlInput::of(&job.input);
    let address = input.address_name().map(str::to_owned);
    input.document.and_then(|document| document.name).or(address)
}

/// A conversion that is done is a page to look at, and has nothing to check or to correct.
fn links(job: &OwnedJob, links: Links) -> Links {
    if job.record.phase != Phase::Done {
        return links;
    }
    let id = job.record.id;
    let (download, view) = (Some(Links::to(id, "/download")), Some(format!("/jobs/{id}/view")));
    Links { checks: None, revisions: None, download, view, ..links }
}
