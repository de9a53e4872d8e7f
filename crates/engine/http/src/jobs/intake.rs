//! From a file that is stored to its job, or to the job of a twin that was there before.

use crate::App;
use crate::callers::caller::Caller;
use crate::server::problem::Problem;
use crate::site::Dedupe;
use ode_job::{Artifact, NewJob, SourceDocument};
use ode_store::{Accepted, Blobs, Enqueued, Stored, Twin};

/// A file that is stored and has no job yet. Dropped like that, it is removed.
pub struct Received {
    blobs: Blobs,
    stored: Option<Stored>,
}

impl Received {
    pub fn new(blobs: &Blobs, stored: Stored) -> Self {
        Received { blobs: blobs.clone(), stored: Some(stored) }
    }

    /// The file as one of a job's.
    pub fn artifact(&self, role: &str, name: &str, content_type: &str) -> Artifact {
        let stored = self.stored.as_ref().expect("it is there until it is lent, which takes this away");
        stored.artifact(role, name, content_type)
    }

    /// From here on a job may own it, also if whoever asked for that goes away meanwhile.
    pub fn lend(mut self) -> Lent {
        Lent { blobs: self.blobs.clone(), stored: self.stored.take() }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        let Some(stored) = self.stored.take() else { return };
        let blobs = self.blobs.clone();
        tokio::spawn(async move {
            if let Err(error) = blobs.delete(&stored.path).await {
                tracing::warn!(%error, "a file that was not taken could not be removed");
            }
        });
    }
}

/// A file of which it is not known yet whether a job owns it. Dropped like that, it stays: what no job owns is found by
/// cleanup.
pub struct Lent {
    blobs: Blobs,
    stored: Option<Stored>,
}

impl Lent {
    /// Removes the file if it is certain that no job owns it.
    pub fn settle(self, enqueued: Result<Enqueued, &ode_store::Error>) {
        let is_free = match enqueued {
            Ok(Enqueued::New(_)) => false,
            Ok(Enqueued::Existing(_)) => true,
            // Whether a commit went through that was cut off is not known.
            Err(error) => !error.is_passing(),
        };
        if is_free {
            drop(Received { blobs: self.blobs, stored: self.stored });
        }
    }
}

/// What is to be made of a document.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub mapping: &'a str,
    pub output: Option<&'a str>,
}

/// Makes the job of a file, or finds the one that stands for the same content.
pub async fn accept(
    app: &App,
    caller: &Caller,
    filename: &str,
    received: Received,
    wanted: Wanted<'_>,
) -> Result<Accepted, Problem> {
    let source = received.artifact("source", filename, "application/pdf");
    let (bytes, mapping) = (source.bytes, wanted.mapping);
    let intake = app
        .kinds
        .intake(mapping)
        .ok_or_else(|| Problem::invalid(format!("No document becomes a job of the type {mapping} here.")))?;
    let wanted = Wanted { output: wanted.output.filter(|_| !intake.outputs.is_empty()), ..wanted };
    let key = dedupe_key(&source, wanted);
    let twin = match app.settings.dedupe {
        Dedupe::Everyone if intake.copies_results => app.store.twin_of_anyone(&key).await?,
        Dedupe::Everyone | Dedupe::Owner => None,
    };
    let document = SourceDocument { duplicate_of: twin.as_ref().map(|twin| twin.id), ..document(&source) };
    let mut job = (intake.job)(document, wanted).owned_by(caller.owner);
    job.dedupe_key = Some(key);
    let pipeline = job.pipeline;
    let lent = received.lend();
    let accepted = match twin {
        Some(twin) => accept_done(app, job, source, &twin).await,
        None => app.store.enqueue_file(job, source).await,
    };
    lent.settle(accepted.as_ref().map(|accepted| accepted.enqueued));
    let accepted = accepted?;
    let id = accepted.enqueued.id();
    match accepted.enqueued {
        Enqueued::New(_) => {
            app.lists.forget(caller.owner);
            tracing::info!(
                job.id = %id, job.pipeline = %pipeline, job.kind = mapping, bytes,
                "accepted job {id} ({bytes} bytes, {mapping})"
            );
        }
        Enqueued::Existing(_) => tracing::info!(
            job.id = %id, job.pipeline = %pipeline, job.kind = wanted.mapping,
            "a document was sent again; its job is {id}"
        ),
    }
    Ok(accepted)
}

fn document(source: &Artifact) -> SourceDocument {
    let Artifact { name, sha256, bytes, path, storage, .. } = source;
    SourceDocument {
        name: Some(name.clone()),
        sha256: Some(sha256.clone()),
        bytes: Some(*bytes),
        path: Some(path.clone()),
        storage: Some(storage.clone()),
        ..SourceDocument::default()
    }
}

/// What jobs with the same result have in common. Another output is another result.
fn dedupe_key(Artifact { sha256, bytes, .. }: &Artifact, Wanted { mapping, output }: Wanted<'_>) -> String {
    let form = output.map(|output| format!(":{output}")).unwrap_or_default();
    format!("{sha256}:{mapping}:{bytes}{form}")
}

/// Makes a job that is done, with a copy of what its twin has.
async fn accept_done(
    app: &App,
    job: NewJob,
    source: Artifact,
    twin: &Twin,
) -> Result<Accepted, ode_store::Error> {
    let content = app.blobs.get(&twin.file.path, &twin.file.sha256).await?;
    let mut incoming = app.blobs.receive();
    incoming.write(&content).await?;
    let copy = Received::new(&app.blobs, incoming.finish().await?);
    let result = copy.artifact("result", &twin.file.name, &twin.file.content_type);
    let lent = copy.lend();
    let enqueued = app.store.enqueue_done(job, twin, &[source, result]).await;
    lent.settle(enqueued.as_ref().copied());
    Ok(enqueued?.into())
}
