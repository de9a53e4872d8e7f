//! Sends what is due, and tells the store how that went.

use crate::Error;
use crate::guard::Guard;
use crate::signature::{message_name, sign};
use futures_util::future::join_all;
use jiff::Timestamp;
use ode_job::Pipeline;
use ode_metrics::{Counter, Family};
use ode_store::{Delivery, Sent, Store};
use reqwest::{StatusCode, redirect};
use serde_json::json;
use std::time::Duration;

static DELIVERIES: Counter<1> = Counter::new(
    "ode_webhook_deliveries_total",
    "Messages to owners that were sent, by what came of it: delivered, again or given_up.",
    ["outcome"],
);

/// What sending counts.
pub static METRICS: [&dyn Family; 1] = [&DELIVERIES];

/// Messages that are under way at a time.
const AT_ONCE: usize = 16;
/// Who has not answered by then is asked again later.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than a message can take: who took it and was lost has it no longer.
const HOLD: Duration = Duration::from_secs(60);
/// How often it is looked whether something is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Tries in all. With the default pauses the last comes about a day after the first.
const TRIES_MAX: u32 = 9;
/// Each pause is so many times the one before.
const GROWTH: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_hours(24);

/// How messages are sent.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where they may go.
    pub guard: Guard,
    /// The pause after the first try; each later one is four times as long.
    pub pause: Duration,
    /// Where the jobs that messages are about are found; the first also stands for jobs that were removed.
    pub addresses: Vec<JobAddress>,
}

/// Where the jobs of a pipeline are found.
#[derive(Debug, Clone, Copy)]
pub struct JobAddress {
    pub pipeline: Pipeline,
    /// What comes before the slash and the id of a job.
    pub path: &'static str,
}

impl Default for Options {
    /// To the public network, five seconds at first, without links to jobs.
    fn default() -> Self {
        Options { guard: Guard::default(), pause: Duration::from_secs(5), addresses: Vec::new() }
    }
}

/// Sends messages.
#[derive(Debug, Clone)]
pub struct Sender {
    store: Store,
    http: reqwest::Client,
    options: Options,
}

impl Sender {
    pub fn new(store: Store, options: Options) -> Result<Self, Error> {
        let http = reqwest::Client::builder()
            // Where an answer leads is not where the owner said.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(options.guard.clone())
            .timeout(ANSWER_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("ode/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error(error.to_string()))?;
        Ok(Sender { store, http, options })
    }

    /// Sends what is due, until it is aborted. Being aborted anywhere is fine: what was under way is sent again.
    pub async fn run(self) {
        loop {
            match self.send_due().await {
                Ok(count) if count == AT_ONCE => {}
                Ok(_) => tokio::time::sleep(LOOK_EVERY).await,
                Err(error) => {
                    tracing::warn!(%error, "messages could not be sent; they wait");
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
    }

    /// Sends messages that are due; answers how many there were.
    pub async fn send_due(&self) -> Result<usize, ode_store::Error> {
        let due = self.store.take_deliveries(AT_ONCE, HOLD).await?;
        let sends: Vec<_> = due.iter().map(|delivery| self.send(delivery)).collect();
        let sent = join_all(sends).await;
        for (delivery, sent) in due.iter().zip(sent) {
            let sent = sent?;
            let (id, job) = (message_name(delivery.id), delivery.job_id);
            let outcome = match &sent {
                Sent::Delivered { .. } => "delivered",
                Sent::Failed { again: Some(_), .. } => "again",
                Sent::Failed { again: None, .. } | Sent::Gone { .. } => "given_up",
            };
            DELIVERIES.add([outcome.into()], 1);
            let problem = match &sent {
                Sent::Delivered { .. } => None,
                Sent::Failed { problem, .. } => Some(problem.as_str()),
                Sent::Gone { .. } => Some("nobody is there any more, and the address is told nothing more"),
            };
            if let Some(problem) = problem {
                tracing::warn!(job.id = %job, "message {id} about job {job} did not arrive: {problem}");
            }
            self.store.settle_delivery(delivery, &sent).await?;
        }
        Ok(due.len())
    }

    async fn send(&self, delivery: &Delivery) -> Result<Sent, ode_store::Error> {
        let url = match self.options.guard.open(&delivery.url) {
            Ok(url) => url,
            Err(problem) => return Ok(Sent::Failed { answer: None, problem, again: None }),
        };
        let (secret, earlier) = self.store.webhook_secrets(delivery.owner).await?;
        let (id, body, now) = (message_name(delivery.id), self.body(delivery), Timestamp::now().as_second());
        // While a secret is being replaced, a receiver may know either.
        let signed = std::iter::once(secret).chain(earlier).map(|secret| sign(&secret, &id, now, &body));
        let signatures = signed.collect::<Vec<_>>().join(" ");
        let request = self
            .http
            .post(url)
            .header("content-type", "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", signatures)
            .body(body);
        Ok(match request.send().await {
            Ok(answer) if answer.status().is_success() => {
                Sent::Delivered { answer: answer.status().as_u16() }
            }
            Ok(answer) if answer.status() == StatusCode::GONE => {
                Sent::Gone { answer: answer.status().as_u16() }
            }
            Ok(answer) => Sent::Failed {
                answer: Some(answer.status().as_u16()),
                problem: format!("it was answered {}", answer.status()),
                again: self.pause(delivery.attempts),
            },
            Err(error) => {
                let problem = reason(&error);
                Sent::Failed { answer: None, problem, again: self.pause(delivery.attempts) }
            }
        })
    }

    /// How long to wait after so many tries; none after the last.
    fn pause(&self, tries: u32) -> Option<Duration> {
        let growth = GROWTH.checked_pow(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        let pause = self.options.pause.checked_mul(growth).unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        (tries < TRIES_MAX).then_some(pause)
    }

    /// The text of a message, the same however often it is sent.
    fn body(&self, delivery: &Delivery) -> String {
        let mut data = json!({
            "job_id": delivery.job_id, "external_id": delivery.external_id, "status": delivery.state,
            "error_code": delivery.error_code,
        });
        if let Some(address) = self.address(delivery.pipeline) {
            data["links"] = json!({ "self": format!("{}/{}", address.path, delivery.job_id) });
        }
        json!({
            "type": format!("job.{}", delivery.state),
            "timestamp": format!("{:.3}", delivery.created_at),
            "data": data,
        })
        .to_string()
    }

    fn address(&self, pipeline: Option<Pipeline>) -> Option<&JobAddress> {
        let mut addresses = self.options.addresses.iter();
        let of_pipeline = addresses.find(|address| Some(address.pipeline) == pipeline);
        of_pipeline.or(self.options.addresses.first())
    }
}

/// What went wrong, down to its cause, without the address.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if error.is_timeout() { "it was not answered in time".to_owned() } else { cause.to_string() }
}

#[cfg(test)]
mod tests;
