//! The jobs at the addresses that all pipelines share: documents uploaded for `words` become such jobs.

use crate::machine::WORDS;
use ode_http::intake::Wanted;
use ode_http::kind::label;
use ode_http::view::Links;
use ode_http::{Intake, JobKind, Offer};
use ode_job::{NewJob, Phase, SourceDocument};

/// The type of job that is named with an upload.
const KIND: &str = "words";

pub(crate) fn job_kind() -> JobKind {
    let offer = Offer {
        name: KIND.into(),
        label: "How many words it has".into(),
        about: "The words of the document, counted".into(),
    };
    JobKind {
        label: |job| if job.phase == Phase::Running { "Counting..." } else { label(job.phase) },
        links: |job, links| {
            let view = (job.record.phase == Phase::Done).then(|| format!("/words/{}", job.record.id));
            Links { view, ..links }
        },
        keeps_document: true,
        intake: Some(Intake { offers: vec![offer], ..Intake::new(&[KIND], new_job) }),
        ..JobKind::new(WORDS)
    }
}

fn new_job(document: SourceDocument, _: Wanted<'_>) -> NewJob {
    NewJob::new(WORDS, KIND, document.into_input())
}
