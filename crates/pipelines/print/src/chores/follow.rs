//! Asks the provider how placed orders stand, and confirms those again that fell back to drafts.
//!
//! Confirming costs money, so it follows the rules of the handler that placed the order: the same comparison with what was
//! asked for, an intent recorded before the call and what became of it after. Both, and how an order was found, are written
//! under the right to this chore: a process that lost it, and does not know yet, sends and records nothing.

use crate::machine::ORDERED;
use crate::order::provider::{NoTurn, Provider};
use crate::order::{Attention, FileStanding, OrderPolicy, OrderStep, Outcome, RemoteOrder, Status, UNCLEAR};
use crate::sql::following::{self, Standing};
use crate::sql::{OrderRecord, Seen, saw_order, take_order_due};
use async_trait::async_trait;
use jiff::Timestamp;
use ode_store::Store;
use ode_worker::{Chore, ChoreError, Turn};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked which orders are due.
const EVERY: Duration = Duration::from_secs(2);
/// How often an order is asked about where nothing else is said.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_hours(1);
/// An order at which something was just done, or is about to be.
pub(super) const SOON: Duration = Duration::from_secs(2);
/// Between two looks at a draft that is not ready, at most.
const NOT_READY_MAX: Duration = Duration::from_mins(10);
/// After a look that told nothing.
const NOTHING_TOLD: Duration = Duration::from_mins(1);
/// Orders asked about in one turn; the rest is for the next one.
const BATCH: usize = 20;
/// Confirmations of one order, the first included. A provider that takes it back so often means something by it.
const CONFIRMS_MAX: u32 = 10;
/// An order that was placed so lately may only not be shown yet.
const FRESH: Duration = Duration::from_mins(10);

/// The chore of following placed orders.
#[derive(Debug, Clone)]
pub(crate) struct FollowOrders {
    provider: Arc<Provider>,
    policy: OrderPolicy,
    look_again: Duration,
}

impl FollowOrders {
    /// Asks this provider about each order this often; events only make it sooner.
    #[must_use]
    pub(crate) fn new(provider: Arc<Provider>, policy: OrderPolicy, look_again: Duration) -> Self {
        FollowOrders { provider, policy, look_again }
    }
}

#[async_trait]
impl Chore for FollowOrders {
    fn name(&self) -> &'static str {
        "orders"
    }

    fn every(&self) -> Duration {
        EVERY
    }

    async fn has_work(&self, store: &Store) -> Result<bool, ode_store::Error> {
        following::is_due(store.sql()).await
    }

    async fn run(&self, turn: &Turn<'_>) -> Result<(), ChoreError> {
        let turn_at = Following { chore: self, turn };
        for _ in 0..BATCH {
            // It is due again after a while, or as soon as an event says so, also while it is being asked about.
            let due = take_order_due(turn.sql(), self.look_again).await?;
            let Some(order) = due else { break };
            match turn_at.look(&order).await {
                Ok(()) => {}
                // None of the others may be asked about, either.
                Err(Stopped::NotNow(after)) => {
                    following::look_within(turn.sql(), order.job_id, after).await?;
                    break;
                }
                Err(Stopped::Lost) => return Err(ChoreError::new("another process follows orders now")),
                Err(Stopped::Failed(error)) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What ends a turn early.
enum Stopped {
    /// The provider may not be called before then.
    NotNow(Duration),
    /// The chore is another process's.
    Lost,
    Failed(ChoreError),
}

impl From<NoTurn> for Stopped {
    fn from(none: NoTurn) -> Self {
        match none {
            NoTurn::NotNow { after, .. } => Stopped::NotNow(after),
            NoTurn::Store(error) => Stopped::Failed(error.into()),
        }
    }
}

impl From<ode_store::Error> for Stopped {
    fn from(error: ode_store::Error) -> Self {
        Stopped::Failed(error.into())
    }
}

/// One turn at following orders.
struct Following<'a> {
    chore: &'a FollowOrders,
    turn: &'a Turn<'a>,
}

impl Following<'_> {
    /// Asks how one order stands, and records it.
    async fn look(&self, order: &OrderRecord) -> Result<(), Stopped> {
        let provider = &self.chore.provider;
        let found = provider.call(self.turn.sql(), provider.client.find(&order.external_id)).await?;
        match found {
            Outcome::Done(found) if found.status == Status::Draft => self.fell_back(order, &found).await,
            Outcome::Done(found) => self.stands(order, &found).await,
            Outcome::Refused(refusal) if refusal.is_missing() => self.missing(order).await,
            Outcome::Refused(_) | Outcome::Unknown { .. } => self.look_within(order, NOTHING_TOLD).await,
            Outcome::NotExecuted { after, .. } => {
                Err(Stopped::NotNow(after.unwrap_or(self.chore.policy.provider_pause)))
            }
        }
    }

    async fn look_within(&self, order: &OrderRecord, within: Duration) -> Result<(), Stopped> {
        Ok(following::look_within(self.turn.sql(), order.job_id, within).await?)
    }

    /// An order that is no draft.
    async fn stands(&self, order: &OrderRecord, found: &RemoteOrder) -> Result<(), Stopped> {
        if found.status == Status::Placed && following::standing(self.turn.sql(), order.job_id).await?.is_open
        {
            let confirmed = OrderStep::Confirmed { status: found.status_word.clone() };
            self.record(order, &confirmed).await?;
        }
        let provider = &self.chore.provider;
        let shipments = provider.call(self.turn.sql(), provider.client.shipments(found.id)).await?;
        let Outcome::Done(shipments) = shipments else { return self.look_within(order, NOTHING_TOLD).await };
        let fate = found.fate(&shipments);
        let seen = Seen {
            is_shipped: fate.is_shipped,
            is_delivered: fate.is_delivered,
            ..self.seen(found.status_word.clone(), fate.attention)
        };
        self.saw(order, &seen).await
    }

    /// An order that was placed and is not found: right after it was placed, it may only not be shown.
    async fn missing(&self, order: &OrderRecord) -> Result<(), Stopped> {
        let age = order.placed_at.map(|at| Timestamp::now().duration_since(at));
        let is_fresh = age.and_then(|age| Duration::try_from(age).ok()).is_some_and(|age| age < FRESH);
        let message = "The provider does not find this order any more. Look for it in its dashboard.";
        let attention = (!is_fresh).then(|| (Attention::Missing, message.to_owned()));
        let seen = self.seen(order.provider_status.clone().unwrap_or_default(), attention);
        self.saw(order, &seen).await
    }

    async fn saw(&self, order: &OrderRecord, seen: &Seen) -> Result<(), Stopped> {
        let Some(tx) = self.turn.begin().await? else { return Err(Stopped::Lost) };
        Ok(saw_order(self.turn.store(), tx, order.job_id, seen).await?)
    }

    fn seen(&self, status: String, attention: Option<(Attention, String)>) -> Seen {
        let look_again = self.chore.look_again;
        Seen { status, is_shipped: false, is_delivered: false, attention, look_again }
    }

    /// An order that was confirmed is a draft again, as happens after a hold. One that is still as it was asked for is
    /// confirmed again.
    async fn fell_back(&self, order: &OrderRecord, found: &RemoteOrder) -> Result<(), Stopped> {
        let standing = following::standing(self.turn.sql(), order.job_id).await?;
        // The process that recorded the intent may have lost the chore and still wait for the answer.
        let answer_max = self.chore.provider.client.answer_max();
        if let Some(left) = standing.unanswered_for.and_then(|age| answer_max.checked_sub(age)) {
            return self.look_within(order, left).await;
        }
        match self.obstacle(order, found, &standing) {
            None => self.confirm(order, found, &standing).await,
            Some(Obstacle::NotReady) => self.wait(order, found, &standing).await,
            Some(Obstacle::NeedsAttention(reason, message)) => {
                let seen = self.seen(found.status_word.clone(), Some((reason, message)));
                self.saw(order, &seen).await
            }
        }
    }

    /// Has a draft that is not ready looked at again after as long as it has not been: soon at first, later less often.
    async fn wait(
        &self,
        order: &OrderRecord,
        found: &RemoteOrder,
        standing: &Standing,
    ) -> Result<(), Stopped> {
        if order.provider_status.as_ref() == Some(&found.status_word) {
            return self.look_within(order, standing.unchanged_for.clamp(SOON, NOT_READY_MAX)).await;
        }
        let attention = order.attention.zip(order.attention_message.clone());
        let seen = Seen { look_again: SOON, ..self.seen(found.status_word.clone(), attention) };
        self.saw(order, &seen).await
    }

    /// What speaks against confirming an order again.
    fn obstacle(&self, order: &OrderRecord, found: &RemoteOrder, standing: &Standing) -> Option<Obstacle> {
        let id = found.id;
        let attention = |reason, message: String| Some(Obstacle::NeedsAttention(reason, message));
        let request = order.request.as_ref();
        // The address of an order that retention has been at is not known any more; such an order is long over.
        let difference = match request {
            Some(request) => found.difference(request, order.provider_order_id),
            None => Some("request"),
        };
        if let Some(difference) = difference {
            let message = format!("Order {id} is a draft again and its {difference} was changed.");
            return attention(Attention::Mismatch, message);
        }
        if found.cost.is_some_and(|cost| cost > order.cost_max) {
            let message = format!("Order {id} is a draft again and costs more than it may.");
            return attention(Attention::CostAboveCap, message);
        }
        if found.file == FileStanding::Failed {
            let message = format!("Order {id} is a draft again and its file cannot be used.");
            return attention(Attention::FileRefused, message);
        }
        // What was refused is not tried again: a person is to look at it, and may confirm it elsewhere.
        if let (Some(Attention::Refused), Some(message)) = (order.attention, &order.attention_message) {
            return attention(Attention::Refused, message.clone());
        }
        if standing.confirms >= CONFIRMS_MAX {
            let message = format!(
                "The provider took order {id} back to a draft, again and again. Read why in its dashboard and confirm it there."
            );
            return attention(Attention::Failed, message);
        }
        // Whoever places it is still at it, or the provider is.
        let is_ready = order.state == ORDERED && found.cost.is_some() && found.file == FileStanding::Fine;
        if is_ready { None } else { Some(Obstacle::NotReady) }
    }

    /// Confirms an order again: recorded before, and again after.
    async fn confirm(
        &self,
        order: &OrderRecord,
        found: &RemoteOrder,
        standing: &Standing,
    ) -> Result<(), Stopped> {
        let (job, provider) = (order.job_id, &self.chore.provider);
        provider.turn(self.turn.sql()).await?;
        self.turn.crash_point("follow-before-intent", job);
        let Some(planned) = following::record_intent(self.turn, job, SOON).await? else {
            return self.not_allowed(order).await;
        };
        self.turn.crash_point("follow-intent", job);
        let outcome = provider.client.confirm(&order.external_id).await;
        self.turn.crash_point("follow-confirmed", job);
        provider.learn(&outcome);
        let (confirmation, again) = self.understand(order, found, outcome).await?;
        self.record(order, &confirmation).await?;
        self.turn.crash_point("follow-recorded", job);
        let again = match &confirmation {
            OrderStep::Unclear { .. } => self.doubt(order, standing).await?,
            _ => again,
        };
        Ok(following::look_after(self.turn.sql(), job, again, planned).await?)
    }

    /// The intent was not recorded: the chore was lost, or the order is not for it to confirm.
    async fn not_allowed(&self, order: &OrderRecord) -> Result<(), Stopped> {
        if self.turn.is_held().await? { self.look_within(order, SOON).await } else { Err(Stopped::Lost) }
    }

    /// What an answer means, and when the order is looked at again.
    async fn understand(
        &self,
        order: &OrderRecord,
        found: &RemoteOrder,
        outcome: Outcome<RemoteOrder>,
    ) -> Result<(OrderStep, Duration), Stopped> {
        let pause = self.chore.policy.provider_pause;
        Ok(match outcome {
            Outcome::Done(after) => (confirmed(&after), SOON),
            Outcome::Refused(refusal) if refusal.is_unauthorised() => {
                (OrderStep::NotExecuted { why: refusal.to_string() }, self.chore.provider.pace.refused_pause)
            }
            Outcome::NotExecuted { after, why } => (OrderStep::NotExecuted { why }, after.unwrap_or(pause)),
            Outcome::Unknown { why } => (OrderStep::Unclear { why: Some(why) }, pause),
            // That it cannot be confirmed may mean that it is: only a look says.
            Outcome::Refused(refusal) => {
                let look = self.chore.provider.client.find(&order.external_id);
                match self.chore.provider.call(self.turn.sql(), look).await {
                    Ok(Outcome::Done(after)) if after.status == Status::Draft => {
                        let message = format!(
                            "Order {} is a draft again, and the provider refuses to confirm it: {}. Confirm it in its dashboard.",
                            found.id,
                            refusal.message.trim_end_matches('.')
                        );
                        (OrderStep::Attention { reason: Attention::Refused, message }, self.chore.look_again)
                    }
                    Ok(Outcome::Done(after)) => (confirmed(&after), SOON),
                    _ => (OrderStep::Unclear { why: Some(refusal.to_string()) }, pause),
                }
            }
        })
    }

    async fn record(&self, order: &OrderRecord, step: &OrderStep) -> Result<(), Stopped> {
        let job = order.job_id;
        if !following::record_outcome(self.turn, job, step).await? {
            return Err(Stopped::Lost);
        }
        tracing::info!(
            job.id = %job, outcome = step.name(),
            "order {} fell back to a draft and was confirmed again: {}", order.external_id, step.name()
        );
        Ok(())
    }

    /// Nobody can say what became of the call: the order is looked at after a pause that grows, and for long also by people.
    async fn doubt(&self, order: &OrderRecord, standing: &Standing) -> Result<Duration, Stopped> {
        let policy = self.chore.policy;
        if standing.unclear_for.is_some_and(|long| long > policy.attention_after) {
            let message = format!("{UNCLEAR}.");
            let attention = OrderStep::Attention { reason: Attention::Unclear, message };
            self.record(order, &attention).await?;
        }
        Ok(policy.doubt_wait(standing.doubts))
    }
}

/// Why an order is not confirmed again.
enum Obstacle {
    /// It may be in a moment.
    NotReady,
    /// A person should look at it first.
    NeedsAttention(Attention, String),
}

/// What an order says that was confirmed.
fn confirmed(after: &RemoteOrder) -> OrderStep {
    let id = after.id;
    match after.status {
        Status::Placed => OrderStep::Confirmed { status: after.status_word.clone() },
        Status::Draft => OrderStep::StillDraft,
        Status::Cancelled => OrderStep::Attention {
            reason: Attention::Cancelled,
            message: format!(
                "Order {id} was cancelled at the provider. Reprint the map if it is still wanted."
            ),
        },
        Status::Failed => OrderStep::Attention {
            reason: Attention::Failed,
            message: format!(
                "The provider gave order {id} up. Read why in its dashboard and confirm it there."
            ),
        },
        Status::Other => {
            let why = format!("the provider's word {:?} is not known", after.status_word);
            OrderStep::Unclear { why: Some(why) }
        }
    }
}
