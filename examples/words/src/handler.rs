//! What a worker does with a job.

use crate::child::Counter;
use async_trait::async_trait;
use ode_job::{Claimed, ErrorCode, Failure, File, Progress, RetryPolicy};
use ode_worker::{Context, Handler, Limits};
use serde_json::Value;
use std::time::Duration;

/// A child is ended long before.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct WordsHandler {
    counter: Counter,
    at_once: usize,
    retry: RetryPolicy,
}

impl WordsHandler {
    pub(crate) fn new(counter: Counter, at_once: usize, retry: RetryPolicy) -> Self {
        WordsHandler { counter, at_once, retry }
    }
}

#[async_trait]
impl Handler for WordsHandler {
    fn limits(&self) -> Limits {
        Limits { concurrency: self.at_once, attempt_timeout: ATTEMPT_TIMEOUT, retry: self.retry }
    }

    async fn run(&self, _job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
        let document = context.source().await?.content;
        context.progress(Progress::at(20, "Counting"));
        let count = self.counter.count(document).await?;
        let value = serde_json::to_value(&count)
            .map_err(|error| Failure::rejected(ErrorCode::Unknown, error.to_string()))?;
        // The file that people download. Until the attempt succeeds, nobody sees it.
        let file = File {
            role: "result".into(),
            name: "words.json".into(),
            content_type: "application/json".into(),
            content: value.to_string().into(),
        };
        context.keep(vec![file]).await?;
        Ok(value)
    }
}
