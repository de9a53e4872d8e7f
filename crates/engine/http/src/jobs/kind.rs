//! How a pipeline's jobs appear at the addresses that all pipelines share: the queue, the page of a job, and `/api/jobs`.

use crate::App;
use crate::jobs::intake::Wanted;
use crate::jobs::view::{JobView, Links};
use crate::server::problem::Problem;
use axum::response::Response;
use futures_util::future::BoxFuture;
use ode_job::estimate::TimeLeft;
use ode_job::{JobId, JobRecord, NewJob, Phase, Pipeline, SourceDocument, WorkerRecord, machines};
use ode_store::{OwnedJob, Places, Store};
use std::collections::HashMap;
use std::sync::Arc;

/// A pipeline's jobs at the shared addresses. A small pipeline keeps what [`JobKind::new`] gives.
#[derive(Clone)]
pub struct JobKind {
    pub pipeline: Pipeline,
    /// Returns what a page calls the state of a job.
    pub label: fn(&JobRecord) -> &'static str,
    /// Returns the name that people know the job's file by.
    pub filename: fn(&JobRecord) -> Option<String>,
    /// Whether its jobs are in the list that an owner's jobs share. Those that are not have a list of their own.
    pub is_listed: bool,
    /// Whether a job keeps the document that it was sent as its source, and what it made of it as its result. Whether these are
    /// still there, how long they are kept, and how often the result was fetched then show.
    pub keeps_document: bool,
    /// Reads how long these jobs will still take; one of which nothing can be said is left out.
    pub times_left: Option<Arc<TimesLeft>>,
    /// Returns what keeps its jobs from being worked on, by what the workers say of themselves.
    pub notice: fn(&[WorkerRecord]) -> Option<&'static str>,
    /// Changes the links that every job has into those of this pipeline's.
    pub links: fn(&OwnedJob, Links) -> Links,
    /// Writes the sections that it adds to the page of a job, as HTML.
    pub sections: Option<Sections>,
    /// Sends the result of a job; the file with the role `result` unless given.
    pub download: Option<Download>,
    /// Documents that people send to become jobs of this pipeline.
    pub intake: Option<Intake>,
    /// Files of jobs beside our own storage, removed with the job.
    pub published: Option<Published>,
}

impl JobKind {
    /// A pipeline whose jobs are shown like most: in the words of their phases, with at most one file as their result.
    #[must_use]
    pub fn new(pipeline: Pipeline) -> Self {
        JobKind {
            pipeline,
            label: |job| label(job.phase),
            filename: |job| job.document()?.name,
            is_listed: true,
            keeps_document: false,
            times_left: None,
            notice: |_| None,
            links: |_, links| links,
            sections: None,
            download: None,
            intake: None,
            published: None,
        }
    }

    /// Whether there is a file with a job's result.
    #[must_use]
    pub fn has_result(&self, job: &OwnedJob) -> bool {
        self.keeps_document && job.files.result_path.is_some()
    }

    /// Whether what a job is to work on is still there.
    #[must_use]
    pub fn has_source(&self, job: &OwnedJob) -> bool {
        !self.keeps_document || job.files.source_path.is_some()
    }
}

/// What most pipelines call a phase.
#[must_use]
pub fn label(phase: Phase) -> &'static str {
    match phase {
        Phase::Held | Phase::Ready => "Waiting",
        Phase::Running => "Converting...",
        Phase::Done => "Ready",
        Phase::Failed => "Failed",
        Phase::Cancelled => "Cancelled",
    }
}

/// Reads how long jobs will still take.
pub type TimesLeft = dyn for<'a> Fn(&'a Store, &'a [JobId]) -> BoxFuture<'a, Result<HashMap<JobId, TimeLeft>, ode_store::Error>>
    + Send
    + Sync;

/// Writes sections for the page of a job.
pub type Sections = for<'a> fn(&'a App, &'a JobRecord, &'a JobView) -> BoxFuture<'a, Result<String, Problem>>;

type SendResult = dyn Fn(Arc<App>, JobRecord) -> BoxFuture<'static, Result<Response, Problem>> + Send + Sync;

/// Sends the result of a job. Cheap to clone.
#[derive(Clone)]
pub struct Download(Arc<SendResult>);

impl Download {
    /// Sends what this function returns.
    pub fn new<F>(send: impl Fn(Arc<App>, JobRecord) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Download(Arc::new(move |app, job| Box::pin(send(app, job))))
    }

    /// Sends the result of this job.
    pub async fn send(&self, app: Arc<App>, job: JobRecord) -> Result<Response, Problem> {
        (self.0)(app, job).await
    }
}

/// Documents that people send to become jobs of a pipeline.
#[derive(Debug, Clone)]
pub struct Intake {
    /// Types of jobs that go to this pipeline; every type that no other pipeline names, where it names none.
    pub types: &'static [&'static str],
    /// Types that pages offer.
    pub offers: Vec<Offer>,
    /// Forms of the result, the first of them without being asked for; none where there is but one.
    pub outputs: &'static [Output],
    /// Whether a result may be copied from a job that another owner has for the same document.
    pub copies_results: bool,
    /// Makes the job of a document.
    pub job: fn(SourceDocument, Wanted<'_>) -> NewJob,
}

impl Intake {
    /// Makes jobs of these types, with nothing but the document as their input.
    #[must_use]
    pub fn new(types: &'static [&'static str], job: fn(SourceDocument, Wanted<'_>) -> NewJob) -> Self {
        Intake { types, offers: Vec::new(), outputs: &[], copies_results: false, job }
    }
}

/// A type of job that pages offer for documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub name: String,
    /// The same as people read it.
    pub label: String,
    /// A line about it.
    pub about: String,
}

/// A form of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    pub name: &'static str,
    /// The same as people read it.
    pub label: &'static str,
}

/// Files of jobs beside our own storage.
#[derive(Debug, Clone)]
pub struct Published {
    /// The address below which a job publishes its files, if it does.
    pub address: fn(&JobRecord) -> Option<&str>,
    /// The places that are open for it.
    pub places: Places,
}

/// All pipelines of a site.
#[derive(Default)]
pub struct Kinds(Vec<JobKind>);

impl Kinds {
    /// Those that were given, and plain ones for the pipelines of which nothing was said.
    #[must_use]
    pub fn new(given: impl IntoIterator<Item = JobKind>) -> Self {
        let mut kinds: Vec<JobKind> = given.into_iter().collect();
        for pipeline in machines::pipelines() {
            if kinds.iter().all(|kind| kind.pipeline != *pipeline) {
                kinds.push(JobKind::new(*pipeline));
            }
        }
        Kinds(kinds)
    }

    /// The kind of a pipeline's jobs.
    pub fn of(&self, pipeline: Pipeline) -> &JobKind {
        self.0.iter().find(|kind| kind.pipeline == pipeline).expect("there is one for every pipeline")
    }

    /// The pipelines whose jobs have a list of their own.
    pub fn unlisted(&self) -> Vec<Pipeline> {
        self.0.iter().filter(|kind| !kind.is_listed).map(|kind| kind.pipeline).collect()
    }

    /// How long these jobs will still take, as far as their pipelines can say so.
    pub async fn times_left(
        &self,
        store: &Store,
        jobs: &[JobId],
    ) -> Result<HashMap<JobId, TimeLeft>, ode_store::Error> {
        let mut left = HashMap::new();
        for read in self.0.iter().filter_map(|kind| kind.times_left.as_ref()) {
            left.extend(read(store, jobs).await?);
        }
        Ok(left)
    }

    /// What keeps jobs from being worked on, by what the workers say of themselves.
    pub fn notice(&self, workers: &[WorkerRecord]) -> Option<&'static str> {
        self.0.iter().find_map(|kind| (kind.notice)(workers))
    }

    /// Every intake, in the order given.
    pub fn intakes(&self) -> impl Iterator<Item = &Intake> {
        self.0.iter().filter_map(|kind| kind.intake.as_ref())
    }

    /// The intake for documents that are to become jobs of this type.
    pub fn intake(&self, name: &str) -> Option<&Intake> {
        let named = self.intakes().find(|intake| intake.types.contains(&name));
        named.or_else(|| self.intakes().find(|intake| intake.types.is_empty()))
    }

    /// A type of job as people read it; its name where no page offers it.
    pub fn label<'a>(&'a self, name: &'a str) -> &'a str {
        let mut offers = self.intakes().flat_map(|intake| &intake.offers);
        offers.find(|offer| offer.name == name).map_or(name, |offer| &offer.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_go_to_the_pipeline_that_names_their_type_and_else_to_the_one_that_names_none() {
        let take = |pipeline, types| {
            let job = |document: SourceDocument, wanted: Wanted<'_>| {
                NewJob::new(ode_xml::machine::XML, wanted.mapping, document.into_input())
            };
            JobKind { intake: Some(Intake::new(types, job)), ..JobKind::new(pipeline) }
        };
        let kinds = Kinds::new([take(ode_xml::machine::XML, &[]), take(ode_html::machine::HTML, &["page"])]);
        assert_eq!(kinds.intake("page").unwrap().types, ["page"]);
        assert!(kinds.intake("anything").unwrap().types.is_empty());
        let named_only = Kinds::new([take(ode_html::machine::HTML, &["page"])]);
        assert!(named_only.intake("anything").is_none());
    }
}
