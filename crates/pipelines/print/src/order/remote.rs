//! An order as Printful tells it, and what it says about the one that was asked for.

use super::money::Money;
use super::product::PrintArea;
use super::record::Attention;
use serde_json::Value;

/// Where an order stands at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It can still be changed and costs nothing.
    Draft,
    /// It was confirmed, and is on its way in some stage.
    Placed,
    /// The provider gave it up; it can be confirmed again.
    Failed,
    /// It was called off for good.
    Cancelled,
    /// A word that is not known: not taken for any of the others.
    Other,
}

/// What becomes of the file of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStanding {
    /// It is not fetched yet.
    Waiting,
    /// It is there, or nothing is said about it.
    Fine,
    /// It cannot be used.
    Failed,
}

/// An order at the provider.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteOrder {
    pub id: i64,
    /// The name that its maker gave it.
    pub external_id: Option<String>,
    /// In the provider's word.
    pub status_word: String,
    pub status: Status,
    /// What it costs, once that is known.
    pub cost: Option<Money>,
    pub file: FileStanding,
    /// All that was told.
    body: Value,
}

impl RemoteOrder {
    /// Reads an order; nothing if it is none.
    pub(super) fn read(body: &Value) -> Option<Self> {
        let status_word = body["status"].as_str()?;
        let status = match status_word {
            "draft" => Status::Draft,
            "pending" | "inprocess" | "partial" | "fulfilled" | "onhold" | "inreview" | "archived" => {
                Status::Placed
            }
            "failed" => Status::Failed,
            "canceled" | "cancelled" => Status::Cancelled,
            _ => Status::Other,
        };
        let is_known = body["costs"]["calculation_status"].as_str().is_none_or(|word| word == "done");
        Some(RemoteOrder {
            id: body["id"].as_i64().filter(|id| *id > 0)?,
            external_id: body["external_id"].as_str().map(str::to_owned),
            status,
            status_word: status_word.to_owned(),
            cost: amount(&body["costs"]["total"]).filter(|_| is_known),
            file: file(body),
            body: body.clone(),
        })
    }

    /// The first thing in which it is not what was asked for, or not the order that was recorded under this number.
    #[must_use]
    pub fn difference(&self, request: &Value, recorded_id: Option<i64>) -> Option<&'static str> {
        if recorded_id.is_some_and(|id| id != self.id) {
            return Some("number");
        }
        if self.external_id.as_deref() != request["external_id"].as_str() {
            return Some("external id");
        }
        let (ours, theirs) = (&request["recipient"], &self.body["recipient"]);
        let lines = ["name", "address1", "address2", "city", "state_code", "country_code", "zip"];
        if lines.iter().any(|line| words(&ours[line]) != words(&theirs[line])) {
            return Some("address");
        }
        let (ours, theirs) = (items(request), items(&self.body));
        if ours.len() != theirs.len() {
            return Some("number of items");
        }
        for (our, their) in ours.iter().zip(theirs) {
            if our["variant_id"] != their["variant_id"] {
                return Some("product");
            }
            if our["quantity"] != their["quantity"] {
                return Some("quantity");
            }
            if our["files"][0]["url"] != their["files"][0]["url"] {
                return Some("file");
            }
        }
        None
    }

    /// What a placed order's standing and its shipments mean to its job.
    #[must_use]
    pub fn fate(&self, shipments: &[Shipment]) -> Fate {
        let wanted: Vec<&Shipment> = shipments.iter().filter(|shipment| !shipment.is_cancelled).collect();
        let is_all = |what: fn(&Shipment) -> bool| !wanted.is_empty() && wanted.iter().all(|one| what(one));
        let is_whole = self.status_word == "fulfilled" || self.status_word == "archived";
        let number = self.id;
        let attention = match self.status {
            Status::Cancelled => Some((
                Attention::Cancelled,
                format!(
                    "Order {number} was cancelled at the provider. Reprint the map if it is still wanted."
                ),
            )),
            Status::Failed => Some((
                Attention::Failed,
                format!(
                    "The provider gave order {number} up. Read why in its dashboard and confirm it there."
                ),
            )),
            Status::Draft | Status::Placed | Status::Other => {
                wanted.iter().any(|one| one.is_returned).then(|| {
                    (
                        Attention::Returned,
                        format!(
                            "A shipment of order {number} came back or was lost. Ask the provider about it."
                        ),
                    )
                })
            }
        };
        Fate {
            is_shipped: is_whole && is_all(|one| one.is_sent),
            is_delivered: is_whole && is_all(|one| one.is_delivered),
            attention,
        }
    }
}

/// What becomes of a placed order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// All of it is on its way.
    pub is_shipped: bool,
    /// All of it arrived.
    pub is_delivered: bool,
    /// What a person should look at.
    pub attention: Option<(Attention, String)>,
}

/// A parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipment {
    is_sent: bool,
    is_delivered: bool,
    is_cancelled: bool,
    is_returned: bool,
}

impl Shipment {
    pub(super) fn read(body: &Value) -> Self {
        let status = body["shipment_status"].as_str().unwrap_or_default();
        let delivery = body["delivery_status"].as_str().unwrap_or_default();
        let is_returned = status == "returned" || matches!(delivery, "return_to_sender" | "failure");
        Shipment {
            is_sent: status == "shipped",
            is_delivered: delivery == "delivered" && !is_returned,
            is_cancelled: status == "canceled" || delivery == "canceled",
            is_returned,
        }
    }
}

/// What a variant is printed from, among the print files of its product.
pub(super) fn print_area(answer: &Value, variant_id: i64) -> Result<Option<PrintArea>, &'static str> {
    let list = |name: &str| answer[name].as_array().map(Vec::as_slice).ok_or("the print files are no list");
    let (files, variants) = (list("printfiles")?, list("variant_printfiles")?);
    let variant = variants.iter().find(|variant| variant["variant_id"].as_i64() == Some(variant_id));
    let Some(number) = variant.and_then(|variant| variant["placements"]["default"].as_i64()) else {
        return Ok(None);
    };
    let file = files.iter().find(|file| file["printfile_id"].as_i64() == Some(number));
    let file = file.ok_or("a print file is missing")?;
    let sides = ["width", "height", "dpi"].map(|side| file[side].as_f64().filter(|side| *side >= 1.0));
    let [Some(width), Some(height), Some(dpi)] = sides else { return Err("a print file has no size") };
    let can_rotate = file["can_rotate"].as_bool().unwrap_or_default();
    Ok(Some(PrintArea::of_pixels([width, height], dpi, can_rotate)))
}

/// An amount, which is told as a text or as a number.
pub(super) fn amount(value: &Value) -> Option<Money> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn file(body: &Value) -> FileStanding {
    let files = items(body).iter().flat_map(|item| item["files"].as_array().into_iter().flatten());
    // Previews are the provider's own.
    let words = files.filter(|file| file["type"] != "preview").filter_map(|file| file["status"].as_str());
    words.fold(FileStanding::Fine, |worst, word| match (word, worst) {
        ("failed", _) | (_, FileStanding::Failed) => FileStanding::Failed,
        ("waiting", _) => FileStanding::Waiting,
        _ => worst,
    })
}

fn items(order: &Value) -> &[Value] {
    order["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A line of an address as one reads it: a provider may trim it, and write it in capitals.
fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> Value {
        json!({
            "external_id": "a", "recipient": { "name": "A B", "address1": "C 1", "city": "D", "country_code": "DE" },
            "items": [{ "variant_id": 1, "quantity": 2, "files": [{ "url": "https://a/b.png" }] }],
        })
    }

    fn remote(change: impl FnOnce(&mut Value)) -> RemoteOrder {
        let mut body = request();
        body["id"] = 7.into();
        body["status"] = "draft".into();
        body["costs"] = json!({ "total": "12.50" });
        change(&mut body);
        RemoteOrder::read(&body).unwrap()
    }

    #[test]
    fn an_order_is_compared_with_what_was_asked_for() {
        fn check(change: fn(&mut Value), expected: Option<&str>) {
            assert_eq!(remote(change).difference(&request(), None), expected);
        }
        check(|_| (), None);
        check(|body| body["recipient"]["name"] = " a  b ".into(), None);
        check(|body| body["external_id"] = "b".into(), Some("external id"));
        check(|body| body["recipient"]["city"] = "E".into(), Some("address"));
        check(|body| body["items"][0]["variant_id"] = 2.into(), Some("product"));
        check(|body| body["items"][0]["quantity"] = 3.into(), Some("quantity"));
        check(|body| body["items"][0]["files"][0]["url"] = "https://a/c.png".into(), Some("file"));
        check(|body| body["items"] = json!([]), Some("number of items"));
    }

    #[test]
    fn a_variant_is_printed_from_its_products_file() {
        let file =
            json!({ "printfile_id": 3, "width": 7200, "height": 6000, "dpi": 300, "can_rotate": true });
        let answer = json!({
            "printfiles": [{ "printfile_id": 1, "width": 1, "height": 1, "dpi": 1 }, file],
            "variant_printfiles": [
                { "variant_id": 8, "placements": { "default": 3 } }, { "variant_id": 9, "placements": { "front": 1 } },
                { "variant_id": 10, "placements": { "default": 4 } },
            ],
        });
        let area = PrintArea { inches: [24.0, 20.0], can_rotate: true };
        assert_eq!(print_area(&answer, 8), Ok(Some(area)));
        assert_eq!(print_area(&answer, 9), Ok(None), "printed elsewhere than by default");
        assert_eq!(print_area(&answer, 11), Ok(None), "not of this product");
        assert!(print_area(&answer, 10).is_err() && print_area(&json!({}), 8).is_err());
    }

    #[test]
    fn a_cost_counts_once_it_is_known() {
        assert_eq!(remote(|_| ()).cost, Some(Money(1250)));
        assert_eq!(remote(|body| body["costs"]["total"] = 12.5.into()).cost, Some(Money(1250)));
        assert_eq!(remote(|body| body["costs"]["total"] = Value::Null).cost, None);
        assert_eq!(remote(|body| body["costs"]["calculation_status"] = "calculating".into()).cost, None);
    }

    #[test]
    fn delivered_means_that_every_parcel_arrived() {
        let parcel = |status: &str, delivery: &str| {
            Shipment::read(&json!({ "shipment_status": status, "delivery_status": delivery }))
        };
        let order = remote(|body| body["status"] = "fulfilled".into());
        let fate = |shipments: &[Shipment]| {
            let fate = order.fate(shipments);
            (fate.is_shipped, fate.is_delivered, fate.attention.is_some())
        };
        let (sent, there) = (parcel("shipped", "in_transit"), parcel("shipped", "delivered"));
        assert_eq!(fate(&[]), (false, false, false));
        assert_eq!(fate(&[sent]), (true, false, false));
        assert_eq!(fate(&[there, sent]), (true, false, false));
        assert_eq!(fate(&[there, parcel("canceled", "unknown")]), (true, true, false));
        assert_eq!(fate(&[parcel("returned", "return_to_sender")]), (false, false, true));
        let partial = remote(|body| body["status"] = "partial".into());
        assert!(!partial.fate(&[there]).is_delivered, "the rest is still to come");
    }
}
