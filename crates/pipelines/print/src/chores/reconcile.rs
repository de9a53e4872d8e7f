//! Compares both sides: what the provider was made to do that we know nothing of, and what we know that it does not.

use crate::order::provider::Provider;
use crate::order::{Outcome, PAGE, Status};
use crate::sql::following::look_within;
use crate::sql::{forget_events, orders_placed, owned_external_ids};
use async_trait::async_trait;
use ode_store::Store;
use ode_worker::{Chore, ChoreError, Turn};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);
/// Events are kept to be known again for this long: longer than any is repeated.
const EVENTS_KEPT: Duration = Duration::from_hours(24 * 90);
/// Orders older than this are not compared any more.
const RECONCILED_FOR: Duration = Duration::from_hours(24 * 60);
/// Pages of the provider's list that are read, at most.
const PAGES_MAX: usize = 100;
/// Orders of ours that are compared, at most.
const ORDERS_MAX: u16 = 10_000;

/// The chore of comparing both sides once a day.
#[derive(Debug, Clone)]
pub(crate) struct Reconcile {
    provider: Arc<Provider>,
}

impl Reconcile {
    /// Compares with the orders of this provider.
    #[must_use]
    pub(crate) fn new(provider: Arc<Provider>) -> Self {
        Reconcile { provider }
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
        let found = reconcile(turn.store(), &self.provider).await?;
        found.iter().for_each(|line| tracing::warn!("orders do not agree: {line}"));
        Ok(())
    }
}

/// Compares both sides, and says in sentences where they differ. An order that is missing there is looked at by whoever
/// follows orders; nothing is confirmed here.
pub async fn reconcile(store: &Store, provider: &Provider) -> Result<Vec<String>, ChoreError> {
    forget_events(store.sql(), EVENTS_KEPT).await?;
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    for page in 0..PAGES_MAX {
        let orders = provider.call(store.sql(), provider.client.list(page * PAGE)).await;
        let Ok(Outcome::Done(orders)) = orders else {
            return Err(ChoreError::new("The provider does not list its orders now. Try again later."));
        };
        let placed = orders.iter().filter(|order| order.status == Status::Placed);
        let ids: Vec<String> = placed.clone().filter_map(|order| order.external_id.clone()).collect();
        let ours: HashSet<String> = owned_external_ids(store.sql(), &ids).await?.into_iter().collect();
        for order in placed {
            let name = order.external_id.clone().unwrap_or_default();
            if !ours.contains(&name) {
                let number = order.id;
                found.push(format!("order {number} ({name}) is confirmed there and no job here owns it"));
            }
            known.insert(order.id);
        }
        if orders.len() < PAGE {
            break;
        }
    }
    for order in orders_placed(store.sql(), RECONCILED_FOR, ORDERS_MAX).await? {
        let is_there = order.provider_order_id.is_some_and(|number| known.contains(&number));
        if !is_there {
            found.push(format!("job {} is ordered here and not confirmed there", order.job_id));
            look_within(store.sql(), order.job_id, Duration::ZERO).await?;
        }
    }
    Ok(found)
}
