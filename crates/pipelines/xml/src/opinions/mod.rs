//! The chore of asking a language model about results: off unless an endpoint is named, and after the job has ended. Nothing
//! waits for it, and its failures affect nothing else.

mod model;

pub use model::{Model, ModelError, ModelSettings};

use crate::sql::without_opinion;
use crate::{Ask, LiveConverter, To};
use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use clap::Args;
use jiff::Timestamp;
use ode_job::JobId;
use ode_store::{Blobs, Error, Store};
use ode_worker::{Chore, ChoreError, Turn};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Options about the language model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checks by a language model")]
#[group(skip)]
pub(crate) struct OpinionArgs {
    /// Ask the model at this OpenAI-compatible endpoint about each result, such as http://127.0.0.1:11434/v1. Documents
    /// are sent there. A key, where one is needed, is read from ODE_MODEL_KEY
    #[arg(
        long,
        env = "ODE_MODEL_URL",
        value_name = "URL",
        hide_env_values = true,
        requires = "model",
        hide_short_help = true
    )]
    model_url: Option<String>,
    /// The model's name there
    #[arg(long, env = "ODE_MODEL", value_name = "NAME", hide_short_help = true)]
    model: Option<String>,
}

/// The key is never an argument: other users of the machine could read it.
const KEY: &str = "ODE_MODEL_KEY";
/// How often it is looked for new results.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Results asked about in one go; then another process may take over.
const BATCH: usize = 10;
/// How long one question may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Each process asks about a result this often before it leaves it alone.
const TRIES_MAX: u32 = 3;
/// Results older than this are not asked about.
const AGE_MAX: Duration = Duration::from_hours(24);

impl OpinionArgs {
    /// The model, if one is named.
    pub(crate) fn model(&self) -> anyhow::Result<Option<Model>> {
        let (Some(url), Some(model)) = (&self.model_url, &self.model) else { return Ok(None) };
        let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
        let settings = ModelSettings { url: url.clone(), model: model.clone(), key, timeout: TIMEOUT };
        Model::new(settings).context("--model-url cannot be used").map(Some)
    }
}

/// Asks the model about each result.
pub(crate) struct Opinions {
    blobs: Blobs,
    model: Model,
    converter: LiveConverter,
    /// Failed tries for each result that still lacks an opinion.
    tries: Mutex<HashMap<JobId, u32>>,
}

#[async_trait]
impl Chore for Opinions {
    fn name(&self) -> &'static str {
        "opinions"
    }

    fn every(&self) -> Duration {
        LOOK_EVERY
    }

    async fn has_work(&self, store: &Store) -> Result<bool, Error> {
        Ok(!self.due(store).await?.is_empty())
    }

    async fn run(&self, turn: &Turn<'_>) -> Result<(), ChoreError> {
        for id in self.due(turn.store()).await? {
            if !turn.is_held().await? {
                break;
            }
            let asked = tokio::select! {
                asked = self.ask(turn, id) => asked,
                // It is asked again by whoever comes next, who need not wait for this answer.
                () = turn.asked_to_end() => break,
            };
            if let Err(error) = asked {
                if matches!(error.downcast_ref(), Some(ModelError::Away(_))) {
                    // It says nothing about the result, which keeps its tries.
                    return Err(ChoreError::new(format!("{error:#}")));
                }
                *self.tries().entry(id).or_default() += 1;
                tracing::warn!(job.id = %id, "the model gave no opinion on job {id}: {error:#}");
            }
        }
        Ok(())
    }
}

impl Opinions {
    pub(crate) fn new(blobs: Blobs, model: Model, converter: LiveConverter) -> Self {
        Opinions { blobs, model, converter, tries: Mutex::default() }
    }

    fn tries(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, u32>> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The results to ask about next.
    async fn due(&self, store: &Store) -> Result<Vec<JobId>, Error> {
        let since = Timestamp::now().checked_sub(AGE_MAX).unwrap_or(Timestamp::UNIX_EPOCH);
        let from = JobId(Uuid::from_u128(u128::from(since.as_millisecond().unsigned_abs()) << 80));
        let count = BATCH + self.tries().len();
        let waiting = without_opinion(store.sql(), from, count).await?;
        let mut tries = self.tries();
        tries.retain(|id, _| waiting.contains(id));
        let is_due = |id: &JobId| tries.get(id).is_none_or(|tries| *tries < TRIES_MAX);
        Ok(waiting.iter().copied().filter(is_due).take(BATCH).collect())
    }

    async fn ask(&self, turn: &Turn<'_>, id: JobId) -> anyhow::Result<()> {
        let files = turn.store().artifacts(id).await?;
        let of = |role: &str| files.iter().find(|file| file.role == role);
        let Some(result) = of("result") else { return Ok(()) };
        let xml = self.blobs.get(&result.path, &result.sha256).await?;
        let text = match of("source") {
            Some(source) => self.text(self.blobs.get(&source.path, &source.sha256).await?).await?,
            None => String::new(),
        };
        let checks = self.model.check(&text, &String::from_utf8_lossy(&xml)).await?;
        // Answers take long: meanwhile the chore may have gone to another process, which asks again.
        if turn.is_held().await? {
            turn.store().add_checks(id, &checks).await?;
        }
        Ok(())
    }

    /// The document's own text, read in a child like everything else of it.
    async fn text(&self, document: Bytes) -> anyhow::Result<String> {
        let ask = Ask { to: To::Text, ..Ask::default() };
        let converted = self.converter.convert(&ask, document).await?;
        Ok(String::from_utf8_lossy(&converted.document).into_owned())
    }
}
