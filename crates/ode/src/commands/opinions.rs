//! Has a language model look at results, beside everything else: off unless an endpoint is named, after the job has
//! ended, by one process at a time. Nothing waits for it, and what goes wrong with it stays with it.

use super::gateway;
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use jiff::Timestamp;
use ode_job::{JobId, WorkerId};
use ode_store::{Blobs, Store};
use ode_xml::{Ask, LiveConverter, Model, ModelSettings, To};
use std::collections::HashMap;
use std::time::Duration;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Whether and how a language model is asked about results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checks by a language model")]
pub(crate) struct Opinions {
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
const CHORE: &str = "opinions";
/// How often it is looked for new results.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Results asked about in one go; then another process may take over.
const BATCH: usize = 10;
/// How long one question may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// A result is asked about this often before it is left alone.
const TRIES_MAX: u32 = 3;
/// Results older than this are not asked about.
const AGE_MAX: Duration = Duration::from_hours(24);

impl Opinions {
    /// Starts asking, if that is wanted.
    pub(super) async fn start(
        &self,
        store: Store,
        blobs: Blobs,
        conversions: &gateway::Conversions,
    ) -> anyhow::Result<Option<Asking>> {
        let (Some(url), Some(model)) = (&self.model_url, &self.model) else { return Ok(None) };
        let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
        let settings = ModelSettings { url: url.clone(), model: model.clone(), key, timeout: TIMEOUT };
        let model = Model::new(settings).context("--model-url cannot be used")?;
        let converter = gateway::converter(conversions, 1).await?;
        let me = WorkerId(Uuid::new_v4());
        let asker = Asker { store: store.clone(), blobs, model, converter, me, tries: HashMap::new() };
        Ok(Some(Asking { task: tokio::spawn(asker.run()), store, me }))
    }
}

/// Questions that are being asked.
pub(super) struct Asking {
    task: JoinHandle<()>,
    store: Store,
    me: WorkerId,
}

impl Asking {
    /// Stops at once; what was being asked is asked again by whoever comes next, who need not wait for us.
    pub(super) async fn stop(self) {
        self.task.abort();
        // Aborted on purpose; there is nothing to learn from how it ended.
        let _ = self.task.await;
        if let Err(error) = self.store.end_chore(CHORE, self.me).await {
            tracing::debug!(%error, "could not say that nobody asks any more; that runs out by itself");
        }
    }
}

struct Asker {
    store: Store,
    blobs: Blobs,
    model: Model,
    converter: LiveConverter,
    me: WorkerId,
    /// How often each result that gave trouble was tried.
    tries: HashMap<JobId, u32>,
}

impl Asker {
    async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!("results could not be shown to the model: {error:#}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&mut self) -> anyhow::Result<()> {
        let since = Timestamp::now().checked_sub(AGE_MAX).unwrap_or(Timestamp::UNIX_EPOCH);
        let from = JobId(Uuid::from_u128(u128::from(since.as_millisecond().unsigned_abs()) << 80));
        let count = BATCH + self.tries.len();
        let waiting = self.store.without_opinion(from, count).await?;
        let is_due = |id: &JobId| self.tries.get(id).is_none_or(|tries| *tries < TRIES_MAX);
        let due: Vec<JobId> = waiting.iter().copied().filter(is_due).take(BATCH).collect();
        self.tries.retain(|id, _| waiting.contains(id));
        if due.is_empty() || !self.store.take_chore(CHORE, self.me, Duration::ZERO).await? {
            return Ok(());
        }
        for id in due {
            if let Err(error) = self.ask(id).await {
                *self.tries.entry(id).or_default() += 1;
                tracing::warn!(job.id = %id, "the model gave no opinion on job {id}: {error:#}");
            }
            self.store.keep_chore(CHORE, self.me).await?;
        }
        self.store.end_chore(CHORE, self.me).await?;
        Ok(())
    }

    async fn ask(&self, id: JobId) -> anyhow::Result<()> {
        let files = self.store.artifacts(id).await?;
        let of = |role: &str| files.iter().find(|file| file.role == role);
        let Some(result) = of("result") else { return Ok(()) };
        let xml = self.blobs.get(&result.path, &result.sha256).await?;
        let text = match of("source") {
            Some(source) => self.text(self.blobs.get(&source.path, &source.sha256).await?).await?,
            None => String::new(),
        };
        let checks = self.model.check(&text, &String::from_utf8_lossy(&xml)).await?;
        Ok(self.store.add_checks(id, &checks).await?)
    }

    /// The document's own text, read in a child like everything else of it.
    async fn text(&self, document: Bytes) -> anyhow::Result<String> {
        let ask = Ask { to: To::Text, ..Ask::default() };
        let converted = self.converter.convert(&ask, document).await?;
        Ok(String::from_utf8_lossy(&converted.document).into_owned())
    }
}
