//! Telling the shop: signed events, delivered again until they are taken, and everything that can go wrong with them.

use crate::book::News;
use crate::faults::{FaultKind, On};
use crate::sim::Inner;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::json;
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;

/// How long a shop may take to say that it has an event.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Deliveries that fail are repeated after so many minutes each.
const MINUTES: [u32; 6] = [1, 4, 16, 64, 256, 1024];

/// Where events go, and under which key they are signed.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) url: String,
    pub(crate) public_key: String,
    pub(crate) secret: Vec<u8>,
}

impl Hook {
    pub(crate) fn secret_hex(&self) -> String {
        hex::encode(&self.secret)
    }

    fn signature(&self, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes keys of any length");
        mac.update(body);
        hex::encode(mac.finalize().into_bytes())
    }
}

/// Delivers one event, or does with it what the fault that waits for it says.
pub(crate) async fn deliver(sim: Arc<Inner>, news: News) {
    let Some(hook) = sim.hook() else { return };
    let occurred_at = Timestamp::now();
    let fault = sim.faults().strike(On::Hook, news.external_id.as_deref());
    let body = |retries: usize| {
        let told = json!({
            "type": news.kind, "occurred_at": occurred_at, "retries": retries, "store_id": 1, "data": news.data,
        });
        told.to_string().into_bytes()
    };
    let first = body(0);
    let signature = hook.signature(&first);
    match fault.as_ref().map(|fault| (fault.kind, fault.wait())) {
        Some((FaultKind::HookLost, _)) => return,
        Some((FaultKind::HookForged, _)) => {
            send(&sim, &hook, first, hook.signature(b"something else")).await;
            return;
        }
        Some((FaultKind::HookTwice, _)) => {
            send(&sim, &hook, first.clone(), signature.clone()).await;
        }
        // It overtakes: what is told after it arrives before it.
        Some((FaultKind::HookReordered, wait)) => tokio::time::sleep(wait).await,
        Some((FaultKind::HookReplayed, wait)) => {
            send(&sim, &hook, first.clone(), signature.clone()).await;
            tokio::time::sleep(wait).await;
        }
        Some(_) | None => {}
    }
    if send(&sim, &hook, first, signature).await {
        return;
    }
    for (tries, minutes) in MINUTES.iter().enumerate() {
        tokio::time::sleep(sim.options.hook_minute * *minutes).await;
        let again = body(tries + 1);
        let signature = hook.signature(&again);
        if send(&sim, &hook, again, signature).await {
            return;
        }
    }
    tracing::warn!("{} was never taken by {}", news.kind, hook.url);
}

/// Whether it was taken.
async fn send(sim: &Inner, hook: &Hook, body: Vec<u8>, signature: String) -> bool {
    let request = sim
        .http
        .post(&hook.url)
        .timeout(ANSWER_TIMEOUT)
        .header("content-type", "application/json")
        .header("x-pf-webhook-public-key", &hook.public_key)
        .header("x-pf-webhook-signature", signature)
        .body(body);
    request.send().await.is_ok_and(|response| response.status().is_success())
}
