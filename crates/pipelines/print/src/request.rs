//! The input of print jobs, what they tell of their exports and orders, and orders as they are asked for. No other file knows
//! the keys of their JSON.

pub use crate::order::money::{Money, NotMoney};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The kind of print job, of which there is one.
pub(crate) const KIND: &str = "map";

/// The frozen map that a job prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrintInput {
    /// Its id; a job without prints nothing.
    pub printable_map_id: Option<Uuid>,
}

impl PrintInput {
    /// Reads the input of a job. One that was not made by this crate and does not fit reads as empty.
    #[must_use]
    pub fn of(input: &Value) -> Self {
        PrintInput::deserialize(input).unwrap_or_default()
    }

    /// The input of a job that prints this map.
    pub(crate) fn of_map(map: Uuid) -> Self {
        PrintInput { printable_map_id: Some(map) }
    }

    /// The input as a job stores it.
    pub(crate) fn to_json(self) -> Value {
        serde_json::to_value(self).expect("an id is always valid JSON")
    }
}

/// An exported picture, as the history of its job tells of it.
#[derive(Debug, Serialize)]
pub(crate) struct ExportNote {
    pub(crate) sha256: String,
    pub(crate) bytes: i64,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dpi: f64,
    pub(crate) warnings: Vec<String>,
}

/// The result of an order that was placed.
#[derive(Debug, Serialize)]
pub(crate) struct PlacedOrder {
    pub(crate) provider_order_id: i64,
    pub(crate) status: String,
    pub(crate) cost: Money,
}

/// What somebody asks to be ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderAsk {
    pub recipient: Recipient,
    /// The provider's number for the product and its size.
    pub variant_id: i64,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipient {
    pub name: String,
    /// Their company.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company: Option<String>,
    /// Street and number.
    pub address1: String,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
