//! The record of an order as an *effect*: a call to the outside world that must happen once, with its intent recorded
//! before it is made.
//!
//! What was recorded, and which record may follow which. The record only ever goes forward: a worker that finds `create_sent`
//! knows that an order may exist, whoever sent the request and whatever became of them.

use crate::request::OrderAsk;
use ode_job::named;
use serde_json::Value;
use std::time::Duration;

named! {
    /// How far the placing of an order is known to have come.
    OrderPhase, "order phase" {
        /// Nothing was sent.
        None = "none",
        /// The request for a draft may have been sent.
        CreateSent = "create_sent",
        /// The provider has a draft, under a recorded number.
        Draft = "draft",
        /// The confirmation, which costs money, may have been sent.
        ConfirmSent = "confirm_sent",
        /// The provider was seen to have the order confirmed.
        Confirmed = "confirmed",
    }
}

named! {
    /// Why a person should look at an order.
    Attention, "reason for attention" {
        /// The provider's order is not the one that was asked for.
        Mismatch = "mismatch",
        /// It costs more than was allowed.
        CostAboveCap = "cost_above_cap",
        /// Somebody called it off elsewhere.
        Cancelled = "cancelled",
        /// The provider gave it up.
        Failed = "failed",
        /// The provider refuses it.
        Refused = "refused",
        /// The provider could not use the file.
        FileRefused = "file_refused",
        /// For long it has not been clear whether it exists.
        Unclear = "unclear",
        /// It was placed, and the provider does not know it any more.
        Missing = "missing",
        /// A shipment came back or was lost.
        Returned = "returned",
    }
}

/// A step of the record.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderStep {
    /// The request, from now on the same whatever happens.
    Freeze {
        /// What will be sent.
        request: Value,
    },
    /// About to ask for a draft.
    CreateSent,
    /// The provider has a draft, and this is what it costs, once that is known.
    Draft {
        provider_order_id: i64,
        /// Its cost in hundredths.
        cost_cents: Option<i64>,
    },
    /// About to confirm it.
    ConfirmSent,
    Confirmed {
        /// In the provider's words.
        status: String,
    },
    /// The last call was not carried out.
    NotExecuted {
        /// For the operator.
        why: String,
    },
    /// A confirmation was taken, and the order is a draft all the same.
    StillDraft,
    /// It is not known what became of the last call.
    Unclear {
        /// For the operator.
        why: Option<String>,
    },
    /// A person should look at it.
    Attention {
        reason: Attention,
        /// What to do, in a sentence.
        message: String,
    },
}

impl OrderStep {
    /// Its name in the history of the order.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            OrderStep::Freeze { .. } => "freeze",
            OrderStep::CreateSent => "create_sent",
            OrderStep::Draft { .. } | OrderStep::StillDraft => "draft",
            OrderStep::ConfirmSent => "confirm_sent",
            OrderStep::Confirmed { .. } => "confirmed",
            OrderStep::NotExecuted { .. } => "not_executed",
            OrderStep::Unclear { .. } => "unclear",
            OrderStep::Attention { .. } => "attention",
        }
    }

    /// The phase that it leads to, if it leads to one.
    #[must_use]
    pub const fn phase(&self) -> Option<OrderPhase> {
        match self {
            OrderStep::CreateSent => Some(OrderPhase::CreateSent),
            OrderStep::Draft { .. } => Some(OrderPhase::Draft),
            OrderStep::ConfirmSent => Some(OrderPhase::ConfirmSent),
            OrderStep::Confirmed { .. } => Some(OrderPhase::Confirmed),
            OrderStep::Freeze { .. }
            | OrderStep::NotExecuted { .. }
            | OrderStep::StillDraft
            | OrderStep::Unclear { .. }
            | OrderStep::Attention { .. } => None,
        }
    }
}

impl OrderPhase {
    /// The phase after a step. It never goes back: asking for a draft again, or seeing one that was confirmed before,
    /// takes nothing away from what is known.
    #[must_use]
    pub fn after(self, step: &OrderStep) -> Self {
        step.phase().map_or(self, |phase| phase.max(self))
    }
}

/// What is recorded of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The one name under which the provider may ever know it: the job's id without dashes.
    pub external_id: String,
    /// How far it is.
    pub phase: OrderPhase,
    /// What was asked for.
    pub ask: OrderAsk,
    /// What is sent for it, once that is fixed.
    pub request: Option<Value>,
    /// Its number at the provider.
    pub provider_order_id: Option<i64>,
    /// What it may cost, in hundredths.
    pub cost_max_cents: i64,
    /// How often in a row an answer was not clear.
    pub doubts: u32,
    /// For how long it has not been clear.
    pub unclear_for: Option<Duration>,
    /// The digest of the file to print.
    pub export_sha256: Option<String>,
    /// The paper of the map that is printed.
    pub page: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_never_goes_back() {
        let create = OrderStep::CreateSent;
        let draft = OrderStep::Draft { provider_order_id: 1, cost_cents: None };
        for &phase in OrderPhase::ALL {
            for step in [&create, &draft, &OrderStep::ConfirmSent, &OrderStep::Unclear { why: None }] {
                assert!(phase.after(step) >= phase, "{phase} after {}", step.name());
            }
        }
        assert_eq!(OrderPhase::None.after(&create), OrderPhase::CreateSent);
        assert_eq!(OrderPhase::ConfirmSent.after(&draft), OrderPhase::ConfirmSent);
    }
}
