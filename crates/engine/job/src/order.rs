//! An order at a provider as an *effect*: a call to the outside world that must happen once, with its intent recorded
//! before it is made.
//!
//! What is asked for, what was recorded, and which record may follow which. The record only ever goes forward: a worker
//! that finds `create_sent` knows that an order may exist, whoever sent the request and whatever became of them.

use crate::state::{UnknownName, named};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
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
        /// Its number there.
        provider_order_id: i64,
        /// Its cost in hundredths.
        cost_cents: Option<i64>,
    },
    /// About to confirm it.
    ConfirmSent,
    /// It is confirmed.
    Confirmed {
        /// In the provider's words.
        status: String,
    },
    /// It is not known what became of the last call.
    Unclear,
    /// A person should look at it.
    Attention {
        /// Why.
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
            OrderStep::Draft { .. } => "draft",
            OrderStep::ConfirmSent => "confirm_sent",
            OrderStep::Confirmed { .. } => "confirmed",
            OrderStep::Unclear => "unclear",
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
            OrderStep::Freeze { .. } | OrderStep::Unclear | OrderStep::Attention { .. } => None,
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

/// What somebody asks to be ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderAsk {
    /// Where it goes.
    pub recipient: Recipient,
    /// The provider's number for the product and its size.
    pub variant_id: i64,
    /// How many.
    #[serde(default = "one")]
    pub quantity: u32,
    /// How it is sent, in the provider's words.
    #[serde(default = "standard")]
    pub shipping: String,
    /// What it may cost at most, less than the organisation's own limit if that is wanted.
    #[serde(default)]
    pub cost_max: Option<Money>,
}

fn one() -> u32 {
    1
}

fn standard() -> String {
    "STANDARD".into()
}

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipient {
    /// Who gets it.
    pub name: String,
    /// Their company.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company: Option<String>,
    /// Street and number.
    pub address1: String,
    /// More of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address2: Option<String>,
    /// Town.
    pub city: String,
    /// State, where there are states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_code: Option<String>,
    /// Country, in two letters.
    pub country_code: String,
    /// Postal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zip: Option<String>,
    /// For the carrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// For the carrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// Prints in one order, at most: more is a mistake, or a matter for people to talk about.
const QUANTITY_MAX: u32 = 100;
/// Letters of one line of an address.
const LINE_CHARS_MAX: usize = 200;

impl OrderAsk {
    /// Refuses what no provider would take, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=QUANTITY_MAX).contains(&self.quantity) {
            return Err(format!("quantity is {}. Order 1 to {QUANTITY_MAX} at a time.", self.quantity));
        }
        if self.variant_id < 1 {
            return Err("variant_id is the provider's number for a product, such as 1 for 18x24 in.".into());
        }
        let to = &self.recipient;
        let needed = [("name", &to.name), ("address1", &to.address1), ("city", &to.city)];
        for (field, text) in needed {
            if text.trim().is_empty() {
                return Err(format!("recipient.{field} is empty. A parcel needs a whole address."));
            }
        }
        if to.country_code.len() != 2 || !to.country_code.bytes().all(|letter| letter.is_ascii_uppercase()) {
            return Err("recipient.country_code is two capital letters, such as DE.".into());
        }
        let optional = [&to.company, &to.address2, &to.state_code, &to.zip, &to.phone, &to.email];
        let lines = needed.iter().map(|(_, text)| *text).chain(optional.into_iter().flatten());
        for text in lines.chain([&self.shipping]) {
            if text.chars().count() > LINE_CHARS_MAX || text.contains(char::is_control) {
                return Err(format!(
                    "A line of the order has more than {LINE_CHARS_MAX} letters, or a letter that cannot be printed."
                ));
            }
        }
        Ok(())
    }
}

/// An amount in hundredths of a currency. Written as `12.50`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(pub i64);

/// A text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount. Write it like 12.50.")]
pub struct NotMoney(String);

/// Amounts with more digits are none that a poster costs.
const DIGITS_MAX: usize = 12;

impl FromStr for Money {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let not_money = || NotMoney(text.chars().take(DIGITS_MAX * 2).collect());
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        if whole.is_empty() || whole.len() > DIGITS_MAX || !is_number(whole) || !is_number(part) {
            return Err(not_money());
        }
        // Providers write more decimals than a currency has, all of them zero.
        if part.len() > 2 && part[2..].bytes().any(|digit| digit != b'0') {
            return Err(not_money());
        }
        let cents: i64 = format!("{part:0<2}")[..2].parse().map_err(|_| not_money())?;
        let whole: i64 = whole.parse().map_err(|_| not_money())?;
        Ok(Money(whole * 100 + cents))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl Serialize for Money {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_amount_is_read_exactly_or_not_at_all() {
        fn check(text: &str, cents: Option<i64>) {
            assert_eq!(text.parse::<Money>().ok(), cents.map(Money), "{text}");
        }
        check("12.50", Some(1250));
        check("12.5", Some(1250));
        check("12", Some(1200));
        check("0.01", Some(1));
        check("12.5000", Some(1250));
        check("12.505", None);
        check("-1", None);
        check("", None);
        check(".5", None);
        check("1e3", None);
        check("99999999999999", None);
        assert_eq!(Money(1205).to_string(), "12.05");
    }

    #[test]
    fn the_record_never_goes_back() {
        let create = OrderStep::CreateSent;
        let draft = OrderStep::Draft { provider_order_id: 1, cost_cents: None };
        for &phase in OrderPhase::ALL {
            for step in [&create, &draft, &OrderStep::ConfirmSent, &OrderStep::Unclear] {
                assert!(phase.after(step) >= phase, "{phase} after {}", step.name());
            }
        }
        assert_eq!(OrderPhase::None.after(&create), OrderPhase::CreateSent);
        assert_eq!(OrderPhase::ConfirmSent.after(&draft), OrderPhase::ConfirmSent);
    }

    #[test]
    fn an_order_that_cannot_be_delivered_is_refused_in_words() {
        let good = json!({
            "recipient": { "name": "A", "address1": "B 1", "city": "C", "country_code": "DE", "zip": "1" },
            "variant_id": 1,
        });
        let ask = |change: fn(&mut Value)| {
            let mut json = good.clone();
            change(&mut json);
            serde_json::from_value::<OrderAsk>(json).map_err(|error| error.to_string())?.check()
        };
        assert_eq!(ask(|_| ()), Ok(()));
        assert!(ask(|json| json["quantity"] = 0.into()).is_err());
        assert!(ask(|json| json["recipient"]["city"] = " ".into()).is_err());
        assert!(ask(|json| json["recipient"]["country_code"] = "de".into()).is_err());
        assert!(ask(|json| json["recipient"]["name"] = "a\nb".into()).is_err());
        assert!(ask(|json| json["variant"] = 1.into()).unwrap_err().contains("variant"));
    }
}
