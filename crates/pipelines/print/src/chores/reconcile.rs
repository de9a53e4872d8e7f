//! Compares both sides: what the provider was made to do that we know nothing of, and what we know that it does not.

use crate::order::provider::Provider;
use crate::order::{Outcome, PAGE, RemoteOrder, Status};
use crate::sql::following::look_within;
use crate::sql::{forget_events, orders_placed, owned_external_ids};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use ode_store::Store;
use ode_worker::{Chore, ChoreError, Turn};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

const DAY: Duration = Duration::from_hours(24);
/// Events are kept to be known again for this long: longer than any is repeated.
const EVENTS_KEPT: Duration = Duration::from_hours(24 * 90);
/// Orders older than this are not compared any more.
const RECONCILED_FOR: Duration = Duration::from_hours(24 * 60);
/// Pages of the provider's list that are read, at most.
const PAGES_MAX: usize = 100;
/// Orders of ours that are compared, at most.
const ORDERS_MAX: u16 = 10_000;

/// A comparison that was left this long ago is begun anew.
const LEFT_FOR: SignedDuration = SignedDuration::from_hours(1);

/// The chore of comparing both sides once a day.
#[derive(Debug)]
pub(crate) struct Reconcile {
    provider: Arc<Provider>,
    /// The comparison that was cut short.
    left: Mutex<Option<Comparison>>,
}

impl Reconcile {
    /// Compares with the orders of this provider.
    #[must_use]
    pub(crate) fn new(provider: Arc<Provider>) -> Self {
        Reconcile { provider, left: Mutex::default() }
    }
}

#[async_trait]
impl Chore for Reconcile {
    fn name(&self) -> &'static str {
        "reconcile"
    }

    fn every(&self) -> Duration {
        DAY
    }

    async fn run(&self, turn: &Turn<'_>) -> Result<(), ChoreError> {
        let mut left = self.left.lock().await;
        let now = Timestamp::now();
        let comparison = left.take().filter(|left| now.duration_since(left.begun_at) < LEFT_FOR);
        let comparison = left.insert(comparison.unwrap_or_else(|| Comparison::new(now)));
        comparison.go_on(turn.store(), &self.provider).await?;
        comparison.found.iter().for_each(|line| tracing::warn!("orders do not agree: {line}"));
        *left = None;
        Ok(())
    }
}

/// Compares both sides, and says in sentences where they differ. An order that is missing there is looked at by whoever
/// follows orders; nothing is confirmed here.
pub async fn reconcile(store: &Store, provider: &Provider) -> Result<Vec<String>, ChoreError> {
    let mut comparison = Comparison::new(Timestamp::now());
    comparison.go_on(store, provider).await?;
    Ok(comparison.found)
}

/// A comparison as far as it has come.
#[derive(Debug)]
struct Comparison {
    begun_at: Timestamp,
    /// Pages of the provider's list that were read.
    pages: usize,
    is_read: bool,
    /// Numbers of the orders that are placed there.
    known: HashSet<i64>,
    /// Differences, in sentences.
    found: Vec<String>,
}

impl Comparison {
    fn new(begun_at: Timestamp) -> Self {
        Comparison { begun_at, pages: 0, is_read: false, known: HashSet::new(), found: Vec::new() }
    }

    /// Goes on where it was cut short.
    async fn go_on(&mut self, store: &Store, provider: &Provider) -> Result<(), ChoreError> {
        forget_events(store.sql(), EVENTS_KEPT).await?;
        while !self.is_read && self.pages < PAGES_MAX {
            let orders = provider.call(store.sql(), provider.client.list(self.pages * PAGE)).await;
            let Ok(Outcome::Done(orders)) = orders else {
                return Err(ChoreError::new("The provider does not list its orders now. Try again later."));
            };
            self.add_page(store, &orders).await?;
            self.pages += 1;
            self.is_read = orders.len() < PAGE;
        }
        for order in orders_placed(store.sql(), RECONCILED_FOR, ORDERS_MAX).await? {
            let is_there = order.provider_order_id.is_some_and(|number| self.known.contains(&number));
            // One that was placed since may be on a page that was read before.
            if !is_there && order.placed_at.is_some_and(|at| at < self.begun_at) {
                self.found.push(format!("job {} is ordered here and not confirmed there", order.job_id));
                look_within(store.sql(), order.job_id, Duration::ZERO).await?;
            }
        }
        Ok(())
    }

    async fn add_page(&mut self, store: &Store, orders: &[RemoteOrder]) -> Result<(), ChoreError> {
        let placed = orders.iter().filter(|order| order.status == Status::Placed);
        let ids: Vec<String> = placed.clone().filter_map(|order| order.external_id.clone()).collect();
        let ours: HashSet<String> = owned_external_ids(store.sql(), &ids).await?.into_iter().collect();
        for order in placed {
            let name = order.external_id.clone().unwrap_or_default();
            if !ours.contains(&name) {
                let number = order.id;
                self.found
                    .push(format!("order {number} ({name}) is confirmed there and no job here owns it"));
            }
            self.known.insert(order.id);
        }
        Ok(())
    }
}
