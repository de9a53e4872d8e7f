//! The store's orders and what calls do to them. No sockets and no faults: what a call does is decided here, once.

use crate::answer::Answer;
use crate::catalog::{self, Poster};
use crate::faults::On;
use crate::ledger::{Entry, Ledger};
use crate::sim::Switches;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Letters and digits of an external id, at most.
const EXTERNAL_ID_MAX: usize = 32;
/// Orders in one page of a list.
const PAGE_MAX: usize = 100;
/// What shipping costs, in hundredths.
const SHIPPING_CENTS: i64 = 499;

/// Which order a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Id(i64),
    External(String),
}

impl Key {
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text.strip_prefix('@') {
            Some(external) => Some(Key::External(external.to_owned())),
            None => text.parse().ok().map(Key::Id),
        }
    }
}

/// A call, parsed.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Create { body: Value, confirm: bool, update_existing: bool },
    Read(Key),
    List { status: Option<String>, offset: usize, limit: usize },
    Edit { key: Key, body: Value, confirm: bool },
    Confirm(Key),
    Cancel(Key),
    Estimate(Value),
    Shipments(Key),
    Variant(i64),
    PrintFiles(i64),
}

impl Call {
    pub(crate) fn on(&self) -> On {
        match self {
            Call::Create { .. } => On::Create,
            Call::Read(_) => On::Read,
            Call::List { .. } => On::List,
            Call::Edit { .. } => On::Edit,
            Call::Confirm(_) => On::Confirm,
            Call::Cancel(_) => On::Cancel,
            Call::Estimate(_) => On::Estimate,
            Call::Shipments(_) => On::Shipments,
            Call::Variant(_) | Call::PrintFiles(_) => On::Catalog,
        }
    }
}

/// What becomes of an order's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStatus {
    Waiting,
    Fetched,
    Failed,
}

impl FileStatus {
    fn as_str(self) -> &'static str {
        match self {
            FileStatus::Waiting => "waiting",
            FileStatus::Fetched => "ok",
            FileStatus::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone)]
struct Order {
    id: i64,
    external_id: Option<String>,
    status: &'static str,
    body: Value,
    file: FileStatus,
    created: Timestamp,
    updated: Timestamp,
    cost_known_at: Instant,
    cents: i64,
    /// Before then, looking it up finds nothing.
    visible_at: Instant,
    shipments: Vec<Shipment>,
}

impl Order {
    /// Whether it can be confirmed.
    fn is_open(&self) -> bool {
        matches!(self.status, "draft" | "failed")
    }
}

#[derive(Debug, Clone)]
struct Shipment {
    id: i64,
    status: &'static str,
    delivery: &'static str,
    shipped_at: Timestamp,
    delivered_at: Option<Timestamp>,
}

/// Something the shop is told.
#[derive(Debug, Clone)]
pub(crate) struct News {
    pub(crate) kind: &'static str,
    pub(crate) external_id: Option<String>,
    pub(crate) data: Value,
}

/// A file that is to be fetched.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) order: i64,
    pub(crate) url: String,
}

/// The orders of the one store there is.
#[derive(Debug)]
pub(crate) struct Book {
    orders: Vec<Order>,
    pub(crate) ledger: Ledger,
    pub(crate) switches: Switches,
    pub(crate) news: Vec<News>,
    pub(crate) wanted: Vec<Wanted>,
    cost_delay: Duration,
    first_id: i64,
}

impl Book {
    pub(crate) fn new(ledger: Ledger, switches: Switches, cost_delay: Duration, first_id: i64) -> Self {
        let (orders, news, wanted) = (Vec::new(), Vec::new(), Vec::new());
        Book { orders, ledger, switches, news, wanted, cost_delay, first_id }
    }

    /// The external id of the order that a call is about.
    pub(crate) fn external_id(&self, call: &Call) -> Option<String> {
        let of = |key: &Key| match key {
            Key::External(external) => Some(external.clone()),
            Key::Id(id) => self.orders.iter().find(|order| order.id == *id)?.external_id.clone(),
        };
        match call {
            Call::Create { body, .. } => body["external_id"].as_str().map(str::to_owned),
            Call::Read(key) | Call::Confirm(key) | Call::Cancel(key) | Call::Shipments(key) => of(key),
            Call::Edit { key, .. } => of(key),
            Call::List { .. } | Call::Estimate(_) | Call::Variant(_) | Call::PrintFiles(_) => None,
        }
    }

    pub(crate) fn apply(&mut self, call: &Call, now: Instant) -> Answer {
        match call {
            Call::Create { body, confirm, update_existing } => {
                self.create(body, *confirm, *update_existing, now)
            }
            Call::Read(key) => self.read(key, now),
            Call::List { status, offset, limit } => self.list(status.as_deref(), *offset, *limit, now),
            Call::Edit { key, body, confirm } => self.edit(key, body, *confirm, now),
            Call::Confirm(key) => self.confirm(key, now),
            Call::Cancel(key) => self.cancel(key, now),
            Call::Estimate(body) => estimate(body),
            Call::Shipments(key) => self.shipments(key),
            Call::Variant(id) => catalog::variant(*id),
            Call::PrintFiles(product) => catalog::print_files(*product),
        }
    }

    fn create(&mut self, body: &Value, confirm: bool, update_existing: bool, now: Instant) -> Answer {
        if let Err(answer) = check(body) {
            return answer;
        }
        let external_id = body["external_id"].as_str().map(str::to_owned);
        let taken = external_id.as_deref().and_then(|id| self.find(&Key::External(id.to_owned())));
        if let Some(at) = taken {
            if update_existing {
                let key = Key::Id(self.orders[at].id);
                return self.edit(&key, body, confirm, now);
            }
            if self.switches.unique {
                let id = self.orders[at].id;
                self.ledger.write(Entry::Refuse, id, external_id.as_deref(), None);
                return Answer::refused(400, Some("OR-13"), "Order with such external ID already exists");
            }
        }
        let at = self.insert(external_id, body.clone(), now);
        if confirm { self.confirm_at(at, now) } else { Answer::v1(self.show(at, now)) }
    }

    /// Adds an order, which is a draft.
    fn insert(&mut self, external_id: Option<String>, body: Value, now: Instant) -> usize {
        let id = self.first_id + i64::try_from(self.orders.len()).unwrap_or_default();
        let wall = Timestamp::now();
        self.ledger.write(Entry::Create, id, external_id.as_deref(), None);
        if let Some(url) = file_url(&body) {
            self.wanted.push(Wanted { order: id, url: url.to_owned() });
        }
        self.orders.push(Order {
            id,
            external_id,
            status: "draft",
            cents: price(&body),
            body,
            file: FileStatus::Waiting,
            created: wall,
            updated: wall,
            cost_known_at: now + self.cost_delay,
            visible_at: now,
            shipments: Vec::new(),
        });
        let at = self.orders.len() - 1;
        self.tell("order_created", at);
        at
    }

    fn find(&self, key: &Key) -> Option<usize> {
        // The newest first: without uniqueness, that is the one a shop would be shown.
        self.orders.iter().rposition(|order| match key {
            Key::Id(id) => order.id == *id,
            Key::External(external) => order.external_id.as_deref() == Some(external),
        })
    }

    fn read(&self, key: &Key, now: Instant) -> Answer {
        match self.find(key).filter(|at| self.orders[*at].visible_at <= now) {
            Some(at) => Answer::v1(self.show(at, now)),
            None => Answer::not_found(),
        }
    }

    fn list(&self, status: Option<&str>, offset: usize, limit: usize, now: Instant) -> Answer {
        let fits = |at: &usize| status.is_none_or(|status| self.orders[*at].status == status);
        let found: Vec<usize> = (0..self.orders.len()).rev().filter(fits).collect();
        let limit = limit.clamp(1, PAGE_MAX);
        let page = found.iter().skip(offset).take(limit).map(|at| self.show(*at, now)).collect();
        Answer::v1_page(page, found.len(), offset, limit)
    }

    fn edit(&mut self, key: &Key, body: &Value, confirm: bool, now: Instant) -> Answer {
        let Some(at) = self.find(key) else { return Answer::not_found() };
        if !matches!(self.orders[at].status, "draft" | "failed") {
            return Answer::refused(400, Some("OR-1"), "Order can no longer be edited");
        }
        if let Err(answer) = check(body) {
            return answer;
        }
        self.orders[at].cents = price(body);
        self.orders[at].body = body.clone();
        self.tell("order_updated", at);
        if confirm { self.confirm_at(at, now) } else { Answer::v1(self.show(at, now)) }
    }

    fn confirm(&mut self, key: &Key, now: Instant) -> Answer {
        match self.find(key) {
            Some(at) => self.confirm_at(at, now),
            None => Answer::not_found(),
        }
    }

    /// Whether an order is there and can still be confirmed.
    pub(crate) fn is_open(&self, key: &Key) -> bool {
        self.find(key).is_some_and(|at| self.orders[at].is_open())
    }

    fn confirm_at(&mut self, at: usize, now: Instant) -> Answer {
        let order = &self.orders[at];
        if !order.is_open() && (self.switches.confirm_once || order.status == "canceled") {
            return Answer::refused(400, Some("OR-1"), "Order is already confirmed or cancelled");
        }
        let (id, external_id, cents) = (order.id, order.external_id.clone(), order.cents);
        self.ledger.write(Entry::Confirm, id, external_id.as_deref(), None);
        if now < order.cost_known_at {
            // Put on hold until its cost is known, and a draft again after that.
            let mut shown = self.show(at, now);
            shown["status"] = "onhold".into();
            return Answer::v1(shown);
        }
        if order.file != FileStatus::Fetched {
            self.turn(at, "failed", "order_failed");
            return Answer::v1(self.show(at, now));
        }
        self.ledger.write(Entry::Charge, id, external_id.as_deref(), Some(cents));
        self.turn(at, "pending", "order_updated");
        Answer::v1(self.show(at, now))
    }

    fn cancel(&mut self, key: &Key, now: Instant) -> Answer {
        let Some(at) = self.find(key) else { return Answer::not_found() };
        if !matches!(self.orders[at].status, "draft" | "failed" | "pending") {
            return Answer::refused(400, Some("OR-1"), "Order can no longer be cancelled");
        }
        self.call_off(at);
        Answer::v1(self.show(at, now))
    }

    fn call_off(&mut self, at: usize) {
        let order = &self.orders[at];
        let (id, external_id) = (order.id, order.external_id.clone());
        self.ledger.write(Entry::Cancel, id, external_id.as_deref(), None);
        self.turn(at, "canceled", "order_canceled");
    }

    fn shipments(&self, key: &Key) -> Answer {
        let Some(at) = self.find(key) else {
            return Answer::problem(404, "Not Found", "The requested resource could not be found.");
        };
        Answer::v2(self.orders[at].shipments.iter().map(shipment).collect())
    }

    fn turn(&mut self, at: usize, status: &'static str, kind: &'static str) {
        let order = &mut self.orders[at];
        (order.status, order.updated) = (status, Timestamp::now());
        self.tell(kind, at);
    }

    fn tell(&mut self, kind: &'static str, at: usize) {
        let order = &self.orders[at];
        let about = json!({ "id": order.id, "external_id": order.external_id, "status": order.status });
        let mut data = json!({ "order": about });
        if let Some(last) = order.shipments.last() {
            data["shipment"] = shipment(last);
        }
        let external_id = order.external_id.clone();
        self.news.push(News { kind, external_id, data });
    }

    /// Something the provider, or somebody in its dashboard, does to an order. False if there is no such order or it
    /// cannot be done.
    pub(crate) fn act(&mut self, key: &Key, what: &str) -> bool {
        let Some(at) = self.find(key) else { return false };
        let wall = Timestamp::now();
        match what {
            "hold" => self.turn(at, "onhold", "order_put_hold"),
            "release" => self.turn(at, "inprocess", "order_remove_hold"),
            "draft" => self.turn(at, "draft", "order_remove_hold"),
            "fail" => self.turn(at, "failed", "order_failed"),
            "cancel" => self.call_off(at),
            "ship" => {
                let id =
                    self.orders[at].id * 10 + i64::try_from(self.orders[at].shipments.len()).unwrap_or(0);
                let (status, delivery) = ("shipped", "in_transit");
                self.orders[at].shipments.push(Shipment {
                    id,
                    status,
                    delivery,
                    shipped_at: wall,
                    delivered_at: None,
                });
                self.turn(at, "fulfilled", "shipment_sent");
            }
            "deliver" if !self.orders[at].shipments.is_empty() => {
                for shipment in &mut self.orders[at].shipments {
                    (shipment.delivery, shipment.delivered_at) = ("delivered", Some(wall));
                }
                self.tell("shipment_delivered", at);
            }
            "return" if !self.orders[at].shipments.is_empty() => {
                for shipment in &mut self.orders[at].shipments {
                    (shipment.status, shipment.delivery) = ("returned", "return_to_sender");
                }
                self.tell("shipment_returned", at);
            }
            _ => return false,
        }
        true
    }

    /// Puts an order of somebody else under this external id.
    pub(crate) fn add_foreign(&mut self, external_id: &str, now: Instant) {
        let body = json!({
            "external_id": external_id, "shipping": "STANDARD",
            "recipient": { "name": "Somebody Else", "address1": "1 Other St", "city": "Elsewhere",
                "country_code": "US", "zip": "00001" },
            "items": [{ "variant_id": 2, "quantity": 7, "files": [{ "url": "https://example.com/other.png" }] }],
        });
        self.insert(Some(external_id.to_owned()), body, now);
    }

    /// Hides an order from those who look it up.
    pub(crate) fn hide(&mut self, external_id: &str, until: Instant) {
        if let Some(at) = self.find(&Key::External(external_id.to_owned())) {
            self.orders[at].visible_at = until;
        }
    }

    pub(crate) fn make_dear(&mut self, external_id: &str) {
        if let Some(at) = self.find(&Key::External(external_id.to_owned())) {
            self.orders[at].cents *= 100;
        }
    }

    /// The number of the order under this external id.
    pub(crate) fn id_of(&self, external_id: &str) -> Option<i64> {
        self.find(&Key::External(external_id.to_owned())).map(|at| self.orders[at].id)
    }

    /// Says what became of an order's file.
    pub(crate) fn file_is(&mut self, order: i64, status: FileStatus) {
        if let Some(at) = self.find(&Key::Id(order)) {
            self.orders[at].file = status;
        }
    }

    fn show(&self, at: usize, now: Instant) -> Value {
        let order = &self.orders[at];
        let mut shown = order.body.clone();
        let file = json!({
            "id": order.id, "type": "default", "url": file_url(&order.body), "status": order.file.as_str(),
        });
        for item in shown["items"].as_array_mut().into_iter().flatten() {
            item["files"] = json!([file]);
        }
        shown["id"] = order.id.into();
        shown["external_id"] = json!(order.external_id);
        shown["store"] = 1.into();
        shown["status"] = order.status.into();
        shown["created"] = order.created.as_second().into();
        shown["updated"] = order.updated.as_second().into();
        shown["costs"] = costs(order.cents, now >= order.cost_known_at);
        shown["shipments"] = order.shipments.iter().map(shipment).collect();
        shown
    }
}

fn shipment(shipment: &Shipment) -> Value {
    json!({
        "id": shipment.id, "shipment_status": shipment.status, "delivery_status": shipment.delivery,
        "shipped_at": shipment.shipped_at, "delivered_at": shipment.delivered_at, "is_reshipment": false,
        "tracking_url": format!("https://tracking.example/{}", shipment.id), "tracking_events": [],
    })
}

/// Costs as Printful tells them: as texts, and not before they are known.
fn costs(cents: i64, is_known: bool) -> Value {
    let amount = |cents: i64| is_known.then(|| format!("{}.{:02}", cents / 100, cents % 100));
    json!({
        "currency": "USD", "subtotal": amount(cents - SHIPPING_CENTS), "discount": amount(0),
        "shipping": amount(SHIPPING_CENTS), "digitization": amount(0), "tax": amount(0), "vat": amount(0),
        "total": amount(cents), "calculation_status": if is_known { "done" } else { "calculating" },
    })
}

fn price(body: &Value) -> i64 {
    let one = |item: &Value| {
        let poster = item["variant_id"].as_i64().and_then(Poster::find);
        poster.map_or(0, |poster| poster.cents) * item["quantity"].as_i64().unwrap_or(1)
    };
    body["items"].as_array().into_iter().flatten().map(one).sum::<i64>() + SHIPPING_CENTS
}

fn file_url(body: &Value) -> Option<&str> {
    body["items"][0]["files"][0]["url"].as_str()
}

fn estimate(body: &Value) -> Answer {
    match check(body) {
        Ok(()) => Answer::v1(json!({ "costs": costs(price(body), true) })),
        Err(answer) => answer,
    }
}

/// Refuses what Printful would refuse of an order.
fn check(body: &Value) -> Result<(), Answer> {
    let refuse = |code: Option<&str>, message: &str| Err(Answer::refused(400, code, message));
    let given = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    if !body.is_object() {
        return Err(Answer::refused(430, None, "Invalid JSON"));
    }
    if let Some(id) = body["external_id"].as_str() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if id.is_empty() || id.len() > EXTERNAL_ID_MAX || !id.chars().all(is_plain) {
            return Err(Answer::refused(431, None, "external_id: Invalid value"));
        }
    }
    for field in ["name", "address1", "city", "country_code"] {
        if !given(&body["recipient"][field]) {
            return refuse(None, &format!("recipient: {field} field is required"));
        }
    }
    if !matches!(body["shipping"].as_str(), None | Some("STANDARD" | "PRINTFUL_FAST" | "EXPRESS")) {
        return refuse(Some("OR-4"), "Invalid shipping method");
    }
    let items = body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return refuse(None, "items: at least one item is required");
    }
    for item in items {
        if item["variant_id"].as_i64().is_none_or(|id| id < 1)
            || item["quantity"].as_i64().is_none_or(|n| n < 1)
        {
            return refuse(None, "items: variant_id and quantity are required");
        }
        if item["variant_id"].as_i64().and_then(Poster::find).is_none() {
            return refuse(None, &format!("Variant with ID: {} does not exist.", item["variant_id"]));
        }
        let Some(url) = item["files"][0]["url"].as_str() else {
            return refuse(None, "items: files: at least one file is required");
        };
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return refuse(Some("FL-2"), "The file URL is not valid");
        }
    }
    Ok(())
}
