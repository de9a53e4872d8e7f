//! Places the order of a print job: the protocol, step by step.
//!
//! Two rules carry it. Nothing is sent before the record says that it may have been, and nothing but the order's one
//! external id is ever sent. So whoever takes the job over, and whenever, finds what there is by looking it up.

use super::money::Money;
use super::printful::{Outcome, Refusal};
use super::product::{PrintArea, check_area};
use super::provider::{NoTurn, Provider};
use super::record::{Attention, Order, OrderPhase, OrderStep};
use super::remote::{FileStanding, RemoteOrder, Status};
use crate::request::PlacedOrder;
use crate::sql::{held_order, record_step};
use async_trait::async_trait;
use jiff::Timestamp;
use ode_job::breaker::Standing;
use ode_job::{Claimed, ErrorCode, Failure, Progress, RetryPolicy};
use ode_worker::{Context, Handler, Limits, Readiness};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// When to look again, and when to call for a person.
#[derive(Debug, Clone, Copy)]
pub struct OrderPolicy {
    /// After the first doubt; each later one in a row waits twice as long.
    pub doubt_base: Duration,
    /// But never longer than this.
    pub doubt_max: Duration,
    /// While the provider still fetches the file or adds up the cost.
    pub provider_pause: Duration,
    /// A doubt that lasts this long is shown to people.
    pub attention_after: Duration,
    /// Tries after the provider gave an order up.
    pub retry: RetryPolicy,
}

impl Default for OrderPolicy {
    fn default() -> Self {
        OrderPolicy {
            doubt_base: Duration::from_secs(5),
            doubt_max: Duration::from_mins(10),
            provider_pause: Duration::from_secs(10),
            attention_after: Duration::from_hours(1),
            retry: RetryPolicy::default(),
        }
    }
}

impl OrderPolicy {
    /// When to look again after a doubt, when there were so many before it.
    pub(crate) fn doubt_wait(&self, doubts: u32) -> Duration {
        let wait = self.doubt_base.saturating_mul(2_u32.saturating_pow(doubts.min(DOUBLINGS_MAX)));
        wait.min(self.doubt_max)
    }
}

/// What people are told about a doubt that lasts.
pub(crate) const UNCLEAR: &str = "For long it has not been clear whether this order exists. Look for its external id in the provider's dashboard";

/// Orders at a time in one process; the rate limit allows no more to be useful.
const AT_ONCE: usize = 4;
/// More than all calls of an attempt together may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(10);
/// How often one attempt confirms an order that comes back as a draft.
const CONFIRMS_MAX: usize = 2;

/// Makes the address of an export from its digest: content-addressed, and good for as long as a provider may need.
pub type ExportUrl = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The handler of the lane in which prints are ordered.
#[derive(Clone)]
pub struct OrderHandler {
    provider: Arc<Provider>,
    export_url: ExportUrl,
    policy: OrderPolicy,
}

impl OrderHandler {
    /// Orders at this provider, of files at these addresses.
    #[must_use]
    pub fn new(provider: Arc<Provider>, export_url: ExportUrl, policy: OrderPolicy) -> Self {
        OrderHandler { provider, export_url, policy }
    }
}

#[async_trait]
impl Handler for OrderHandler {
    fn limits(&self) -> Limits {
        Limits { concurrency: AT_ONCE, attempt_timeout: ATTEMPT_TIMEOUT, retry: self.policy.retry }
    }

    fn readiness(&self, now: Timestamp) -> Readiness {
        self.provider.readiness(now)
    }

    fn breakers(&self, now: Timestamp) -> Vec<Standing> {
        vec![self.provider.standing(now)]
    }

    async fn run(&self, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
        // Not a try like others: what was sent before must be looked up, however often it cannot be read.
        let order = held_order(context.held()).await.map_err(|error| unrecorded(&error))?;
        // A lease that is lost looks the same; whatever is said then reaches nobody.
        let none = "No order was asked for with this print. Ask for one with `ode print order`";
        let order = order.ok_or_else(|| Failure::rejected(ErrorCode::Invalid, none))?;
        let is_last_try = job.retries >= job.retries_max.unwrap_or(self.policy.retry.retries_max);
        let placing = Placing { handler: self, context, order, is_last_try };
        placing.place().await
    }
}

/// One attempt at placing one order.
struct Placing<'a> {
    handler: &'a OrderHandler,
    context: &'a Context<'a>,
    /// The record as it was when the attempt began.
    order: Order,
    is_last_try: bool,
}

impl Placing<'_> {
    async fn place(&self) -> Result<Value, Failure> {
        if self.order.phase == OrderPhase::None {
            self.check_product().await?;
        }
        let request = self.frozen_request().await?;
        let known = match self.order.phase {
            // Nothing was ever sent, so there is nothing to find.
            OrderPhase::None => None,
            _ => self.look_up().await?,
        };
        let mut found = match known {
            Some(found) => found,
            None if self.order.provider_order_id.is_some() => {
                return Err(self.doubt("The provider has had this order and does not find it").await);
            }
            None => self.create(&request).await?,
        };
        for _ in 0..CONFIRMS_MAX {
            self.check(&request, &found).await?;
            found = match found.status {
                Status::Placed => return self.placed(&found).await,
                Status::Draft | Status::Failed => self.confirm(&found).await?,
                Status::Cancelled => return Err(self.cancelled(&found).await?),
                Status::Other => {
                    let word = &found.status_word;
                    return Err(self.doubt(&format!("The provider's word {word:?} is not known")).await);
                }
            };
        }
        match found.status {
            Status::Placed => {
                self.check(&request, &found).await?;
                self.placed(&found).await
            }
            Status::Failed => Err(self.gave_up(&found).await?),
            _ => Err(self.wait("The provider took the order back to a draft. It is confirmed again")),
        }
    }

    /// Whether the map is made for what the provider prints the product from: what does not fit would be cropped.
    async fn check_product(&self) -> Result<(), Failure> {
        let Some(page) = &self.order.page else { return Ok(()) };
        let variant_id = self.order.ask.variant_id;
        let message = match self.area(variant_id).await? {
            Some(area) => match check_area(variant_id, page, &area) {
                Ok(()) => return Ok(()),
                Err(message) => message,
            },
            None => format!(
                "Variant {variant_id} is not printed from one picture, so a map cannot be ordered as it. Reprint the map and \
                 order a poster."
            ),
        };
        let message = message.trim_end_matches('.');
        Err(self.call_for_help(Attention::FileRefused, ErrorCode::FileRefused, message).await?)
    }

    /// What a variant is printed from.
    async fn area(&self, variant_id: i64) -> Result<Option<PrintArea>, Failure> {
        let provider = &self.handler.provider;
        if let Some(area) = provider.known_area(variant_id, Timestamp::now()) {
            return Ok(Some(area));
        }
        self.tell(5, "Asking what the product is printed from");
        self.turn().await?;
        let product = self.told(provider.client.product_of(variant_id).await).await?;
        self.turn().await?;
        let area = self.told(provider.client.print_area(product, variant_id).await).await?;
        if let Some(area) = area {
            provider.keep_area(variant_id, area, Timestamp::now());
        }
        Ok(area)
    }

    /// What the catalogue answers. Nothing was sent for the order yet, so what is neither told nor refused is asked again
    /// later.
    async fn told<T>(&self, outcome: Outcome<T>) -> Result<T, Failure> {
        self.handler.provider.learn(&outcome);
        match outcome {
            Outcome::Done(told) => Ok(told),
            Outcome::Refused(refusal) if refusal.is_missing() => {
                let message = format!(
                    "The provider has no variant {}. Look its number up in the provider's catalogue, and order that with a \
                     reprint of the map",
                    self.order.ask.variant_id
                );
                Err(self.call_for_help(Attention::Refused, ErrorCode::OrderRefused, message).await?)
            }
            Outcome::Refused(refusal) => Err(self.refused(&refusal).await?),
            Outcome::NotExecuted { after, why } => Err(self.away(after, &why)),
            Outcome::Unknown { why } => Err(self.away(None, &why)),
        }
    }

    /// What is sent for the order, fixed for good the first time.
    async fn frozen_request(&self) -> Result<Value, Failure> {
        if let Some(request) = &self.order.request {
            return Ok(request.clone());
        }
        let Some(sha256) = &self.order.export_sha256 else {
            return Err(Failure::rejected(
                ErrorCode::FileRefused,
                "The exported map is gone. Reprint the map",
            ));
        };
        let (ask, external_id) = (&self.order.ask, &self.order.external_id);
        let url = (self.handler.export_url)(sha256);
        let request = json!({
            "external_id": external_id, "shipping": ask.shipping, "recipient": ask.recipient,
            "items": [{
                "external_id": external_id, "variant_id": ask.variant_id, "quantity": ask.quantity,
                "files": [{ "type": "default", "url": url, "filename": format!("{sha256}.png") }],
            }],
        });
        self.record(OrderStep::Freeze { request: request.clone() }).await?;
        self.context.crash_point("order-frozen");
        Ok(request)
    }

    /// The order as the provider has it, if it does. That it does not have it now is no proof that it never will: a
    /// request may still be on its way, and only the provider's uniqueness of external ids stands against that.
    async fn look_up(&self) -> Result<Option<RemoteOrder>, Failure> {
        self.tell(20, "Looking the order up");
        self.turn().await?;
        let outcome = self.handler.provider.client.find(&self.order.external_id).await;
        self.handler.provider.learn(&outcome);
        match outcome {
            Outcome::Done(found) => Ok(Some(found)),
            Outcome::Refused(refusal) if refusal.is_missing() => Ok(None),
            Outcome::Refused(refusal) if refusal.is_unauthorised() => Err(self.refused(&refusal).await?),
            // A look that is refused says nothing about the order.
            Outcome::Refused(refusal) => Err(self.doubt(&refusal.to_string()).await),
            Outcome::NotExecuted { after, why } => Err(self.away(after, &why)),
            Outcome::Unknown { why } => Err(self.doubt(&why).await),
        }
    }

    async fn create(&self, request: &Value) -> Result<RemoteOrder, Failure> {
        self.tell(40, "Asking for a draft");
        self.turn().await?;
        self.context.crash_point("order-before-intent");
        self.record(OrderStep::CreateSent).await?;
        self.context.crash_point("order-intent");
        let outcome = self.handler.provider.client.create(request).await;
        self.context.crash_point("order-answered");
        self.handler.provider.learn(&outcome);
        match outcome {
            Outcome::Done(made) => Ok(made),
            Outcome::Refused(refusal) if refusal.is_id_taken() => match self.look_up().await? {
                Some(found) => Ok(found),
                None => Err(self.doubt("The provider has the order and does not show it yet").await),
            },
            Outcome::Refused(refusal) => Err(self.refused(&refusal).await?),
            Outcome::NotExecuted { after, why } => Err(self.away(after, &why)),
            Outcome::Unknown { why } => Err(self.doubt(&why).await),
        }
    }

    /// Whether the provider's order is the one that was asked for; one that is not is never confirmed.
    async fn check(&self, request: &Value, found: &RemoteOrder) -> Result<(), Failure> {
        let Some(difference) = found.difference(request, self.order.provider_order_id) else { return Ok(()) };
        let message = format!(
            "The provider's order {} differs from what was asked for in its {difference}, so it was not confirmed",
            found.id
        );
        Err(self.call_for_help(Attention::Mismatch, ErrorCode::OrderMismatch, message).await?)
    }

    /// Confirms a draft that may be confirmed; answers the order as it is after that.
    async fn confirm(&self, found: &RemoteOrder) -> Result<RemoteOrder, Failure> {
        self.record_draft(found).await?;
        self.context.crash_point("order-recorded");
        match found.file {
            FileStanding::Fine => {}
            FileStanding::Waiting => return Err(self.wait("The provider has not fetched the file yet")),
            FileStanding::Failed => {
                let message =
                    "The provider could not use the file. Check that it can be reached, and reprint the map";
                return Err(self
                    .call_for_help(Attention::FileRefused, ErrorCode::FileRefused, message)
                    .await?);
            }
        }
        let Some(cost) = found.cost else {
            return Err(self.wait("The provider has not added up the cost yet"));
        };
        if cost.0 > self.order.cost_max_cents {
            let message = format!(
                "The order costs {cost} and may cost {}, so it was not confirmed",
                Money(self.order.cost_max_cents)
            );
            return Err(self
                .call_for_help(Attention::CostAboveCap, ErrorCode::CostAboveCap, message)
                .await?);
        }
        self.tell(70, "Confirming");
        self.turn().await?;
        self.record(OrderStep::ConfirmSent).await?;
        self.context.crash_point("order-confirm-intent");
        let outcome = self.handler.provider.client.confirm(&self.order.external_id).await;
        self.context.crash_point("order-confirmed");
        self.handler.provider.learn(&outcome);
        match outcome {
            Outcome::Done(after) => Ok(after),
            Outcome::Refused(refusal) if refusal.is_unauthorised() => {
                self.record(OrderStep::NotExecuted { why: refusal.to_string() }).await?;
                Err(self.refused(&refusal).await?)
            }
            Outcome::NotExecuted { after, why } => {
                self.record(OrderStep::NotExecuted { why: why.clone() }).await?;
                Err(self.away(after, &why))
            }
            // That it cannot be confirmed may mean that it is: only a look says.
            Outcome::Refused(_) => match self.look_up().await? {
                Some(after) => Ok(after),
                None => {
                    Err(self.doubt("The provider refuses to confirm the order and does not find it").await)
                }
            },
            Outcome::Unknown { why } => Err(self.doubt(&why).await),
        }
    }

    async fn record_draft(&self, found: &RemoteOrder) -> Result<(), Failure> {
        let cost_cents = found.cost.map(|cost| cost.0);
        self.record(OrderStep::Draft { provider_order_id: found.id, cost_cents }).await
    }

    async fn placed(&self, found: &RemoteOrder) -> Result<Value, Failure> {
        let Some(cost) = found.cost.filter(|cost| cost.0 <= self.order.cost_max_cents) else {
            let message = format!(
                "Order {} is confirmed at a cost that was not allowed. Look at it in the provider's dashboard",
                found.id
            );
            return Err(self
                .call_for_help(Attention::CostAboveCap, ErrorCode::CostAboveCap, message)
                .await?);
        };
        self.record_draft(found).await?;
        self.record(OrderStep::Confirmed { status: found.status_word.clone() }).await?;
        self.context.crash_point("order-placed");
        self.context.note("provider_order_id", found.id.into());
        self.context.note("cost", cost.to_string().into());
        let result = PlacedOrder { provider_order_id: found.id, status: found.status_word.clone(), cost };
        Ok(json!(result))
    }

    async fn cancelled(&self, found: &RemoteOrder) -> Result<Failure, Failure> {
        let message =
            format!("Order {} was cancelled at the provider. Reprint the map if you still want it", found.id);
        self.call_for_help(Attention::Cancelled, ErrorCode::OrderCancelled, message).await
    }

    /// The provider gave the order up after it was confirmed. Nothing is lost: the same order is confirmed again.
    async fn gave_up(&self, found: &RemoteOrder) -> Result<Failure, Failure> {
        let message = format!("The provider gave order {} up", found.id);
        if self.is_last_try {
            let message = format!("{message}. Read why in its dashboard, then retry");
            self.record(OrderStep::Attention { reason: Attention::Failed, message }).await?;
        }
        Ok(Failure::retryable(ErrorCode::OrderFailed, message))
    }

    async fn refused(&self, refusal: &Refusal) -> Result<Failure, Failure> {
        if refusal.is_unauthorised() {
            return Ok(self.away(None, &format!("the provider refuses our token: {refusal}")));
        }
        let message = format!("The provider refuses the order: {}", refusal.message);
        let failure = self.call_for_help(Attention::Refused, ErrorCode::OrderRefused, message).await?;
        Ok(failure.with_detail(refusal.to_string()))
    }

    /// Records what a person should look at, and ends the job with it.
    async fn call_for_help(
        &self,
        reason: Attention,
        code: ErrorCode,
        message: impl Into<String>,
    ) -> Result<Failure, Failure> {
        let message = message.into();
        self.record(OrderStep::Attention { reason, message: message.clone() }).await?;
        Ok(Failure::rejected(code, message))
    }

    /// Nobody can say what became of a call: the order is looked up after a while, and never given up.
    async fn doubt(&self, why: &str) -> Failure {
        let policy = self.handler.policy;
        if let Err(failure) = self.record(OrderStep::Unclear { why: None }).await {
            return failure;
        }
        let is_long = self.order.unclear_for.is_some_and(|long| long > policy.attention_after);
        if is_long {
            let message = UNCLEAR.to_owned();
            let told = self.record(OrderStep::Attention { reason: Attention::Unclear, message }).await;
            if let Err(failure) = told {
                return failure;
            }
        }
        let message = ErrorCode::OrderUnclear.sentence();
        Failure::away(ErrorCode::OrderUnclear, message, policy.doubt_wait(self.order.doubts)).with_detail(why)
    }

    /// The provider did not take the call.
    fn away(&self, after: Option<Duration>, why: &str) -> Failure {
        let wait = after.unwrap_or(self.handler.policy.provider_pause);
        Failure::away(ErrorCode::ProviderAway, ErrorCode::ProviderAway.sentence(), wait).with_detail(why)
    }

    /// The provider is not ready for the next step.
    fn wait(&self, message: &str) -> Failure {
        Failure::away(ErrorCode::OrderUnclear, message, self.handler.policy.provider_pause)
    }

    /// Records a step. It is durable when this returns well; on any failure it may be or not, and nothing may be sent on its
    /// account.
    async fn record(&self, step: OrderStep) -> Result<(), Failure> {
        record_step(self.context.held(), &step).await.map_err(|error| unrecorded(&error))
    }

    /// Waits for a turn to call.
    async fn turn(&self) -> Result<(), Failure> {
        match self.handler.provider.turn(self.context.held().sql()).await {
            Ok(()) => Ok(()),
            Err(NoTurn::NotNow { after, why }) => Err(self.away(Some(after), why)),
            Err(NoTurn::Store(error)) => Err(unrecorded(&error)),
        }
    }

    fn tell(&self, percent: u8, message: &str) {
        self.context.progress(Progress { percent, message: Some(message.to_owned()), step: 0, steps: 0 });
    }
}

/// How long an order waits for the database before its record is read again.
const RECORD_PAUSE: Duration = Duration::from_secs(5);

/// The record cannot be read, or a step was not recorded, or perhaps was: the order goes on from what the record says the next time.
fn unrecorded(error: &ode_store::Error) -> Failure {
    Failure::away(ErrorCode::IoError, ErrorCode::IoError.sentence(), RECORD_PAUSE)
        .with_detail(error.to_string())
}

/// Doublings of a wait, beyond which any wait is the longest.
const DOUBLINGS_MAX: u32 = 16;
