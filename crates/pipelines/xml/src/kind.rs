//! The pipeline's jobs at the addresses that all pipelines share.

use crate::machine::XML;
use crate::notice::notice;
use crate::pages;
use crate::request::{AUTO, new_job};
use crate::sql::{self, Speeds};
use ode_http::kind::TimesLeft;
use ode_http::view::Links;
use ode_http::{Intake, JobKind, Offer, Output, kind};
use ode_invoice::Registry;
use ode_invoice::mapping::file::Status;
use ode_job::Phase;
use ode_store::OwnedJob;
use std::sync::Arc;

/// Forms of the result. The first is what one gets without asking.
const OUTPUTS: &[Output] = &[
    Output { name: "own", label: "ODE XML, all that was read" },
    Output { name: "ubl", label: "UBL 2.1 invoice" },
    Output { name: "cii", label: "CII invoice (Factur-X, ZUGFeRD)" },
];

/// Describes how jobs that become XML are shown, and which documents become such jobs.
#[must_use]
pub fn job_kind() -> JobKind {
    let intake =
        Intake { offers: offers(), outputs: OUTPUTS, copies_results: true, ..Intake::new(&[], new_job) };
    JobKind {
        label: |job| label(job.phase),
        keeps_document: true,
        times_left: Some(times_left()),
        notice,
        links: |job, links| {
            let convert = may_convert(job, &links).then(|| Links::to(job.record.id, "/convert"));
            Links { convert, ..links }
        },
        sections: Some(pages::review),
        intake: Some(intake),
        ..JobKind::new(XML)
    }
}

/// Reads how long jobs will still take, from how long others took lately.
fn times_left() -> Arc<TimesLeft> {
    let speeds = Arc::new(Speeds::default());
    Arc::new(move |store, jobs| {
        let speeds = speeds.clone();
        Box::pin(async move { sql::times_left(store, &speeds, jobs).await })
    })
}

fn label(phase: Phase) -> &'static str {
    match phase {
        Phase::Held => "Queued",
        phase => kind::label(phase),
    }
}

/// Whether another mapping may make something of a document: it is there, and can be read at all.
fn may_convert(job: &OwnedJob, links: &Links) -> bool {
    match job.record.phase {
        Phase::Held | Phase::Ready | Phase::Running => false,
        Phase::Failed => links.retry.is_some(),
        Phase::Done | Phase::Cancelled => job.files.source_path.is_some(),
    }
}

/// The mappings that come with ODE, the one that chooses first. Which others there are is for the conversion to say.
fn offers() -> Vec<Offer> {
    let shipped = Registry::shipped().current();
    let live = shipped.list().filter(|mapping| mapping.status == Status::Live);
    let mut offers: Vec<_> = live.map(|mapping| offer(&mapping.id, &mapping.about)).collect();
    offers.sort_by(|one, other| one.name.cmp(&other.name));
    let auto = Offer {
        name: AUTO.into(),
        label: "Whichever fits (auto)".into(),
        about: "The mapping that fits the document best".into(),
    };
    offers.insert(0, auto);
    offers
}

/// A mapping as people call it, with its name beside it. What one is about begins with what it is for, up to a colon.
fn offer(name: &str, about: &str) -> Offer {
    let title = about.split([':', ';', ',']).next().map(str::trim).filter(|title| !title.is_empty());
    let label = title.map_or_else(|| name.to_owned(), |title| format!("{title} ({name})"));
    Offer { name: name.into(), label, about: about.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_are_word_for_word_those_that_were_promised() {
        let promised = [
            (Phase::Held, "Queued"),
            (Phase::Ready, "Waiting"),
            (Phase::Running, "Converting..."),
            (Phase::Done, "Ready"),
            (Phase::Failed, "Failed"),
        ];
        for (phase, expected) in promised {
            assert_eq!(label(phase), expected, "{phase}");
        }
    }

    #[test]
    fn mappings_are_offered_by_what_they_are_for() {
        let offer = offer("some_v1", "Invoices of somebody: all of them");
        assert_eq!(
            (offer.label.as_str(), offer.name.as_str()),
            ("Invoices of somebody (some_v1)", "some_v1")
        );
        assert_eq!(super::offer("some_v1", " ").label, "some_v1");
    }
}
