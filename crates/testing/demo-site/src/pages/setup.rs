//! Profile, services, settings and API keys.

use super::{Page, draw};
use crate::fields::Fields;
use crate::site::token;
use crate::visitor::{At, Frame};
use crate::world::{ApiKey, Service, cents};
use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// A field of a form: its name and its label.
type Field = (&'static str, &'static str);

const PROFILE: [Field; 4] =
    [("address", "Address"), ("phone", "Phone"), ("cuisine", "Cuisine"), ("timezone", "Time zone")];
const SERVICES: [Field; 3] = [("delivery", "Delivery"), ("pickup", "Pickup"), ("dine-in", "Dine-in")];
const TABS: [(&str, &str, [Field; 2]); 3] = [
    ("tax", "Tax", [("rate_percent", "Tax rate in percent"), ("number", "Tax number")]),
    ("receipts", "Receipts", [("footer", "Receipt footer"), ("copy_to", "Send a copy to")]),
    ("notifications", "Notifications", [("orders_to", "Tell about orders"), ("sound", "Sound")]),
];
const PERMISSIONS: [&str; 5] = ["menu.read", "menu.write", "orders.read", "orders.write", "payments.read"];

#[derive(Template)]
#[template(path = "profile.html")]
struct Profile {
    frame: Frame,
    fields: Vec<(Field, String)>,
}

fn filled(fields: &[Field], values: &BTreeMap<String, String>) -> Vec<(Field, String)> {
    fields.iter().map(|field| (*field, values.get(field.0).cloned().unwrap_or_default())).collect()
}

fn taken(fields: &Fields, names: &[Field]) -> BTreeMap<String, String> {
    names.iter().map(|(name, _)| ((*name).to_owned(), fields.get(name).to_owned())).collect()
}

pub(crate) async fn profile_page(at: At) -> Page {
    let fields = at.read(|restaurant| filled(&PROFILE, &restaurant.profile))?;
    draw(&Profile { frame: at.frame()?, fields })
}

pub(crate) async fn save_profile(at: At, fields: Fields) -> Response {
    at.change(&fields, "profile", |restaurant| {
        restaurant.profile = taken(&fields, &PROFILE);
        Ok("The profile is saved.".into())
    })
}

#[derive(Template)]
#[template(path = "services.html")]
struct Services {
    frame: Frame,
    services: Vec<(Field, Service)>,
}

pub(crate) async fn services_page(at: At) -> Page {
    let services = at.read(|restaurant| {
        let service = |field: &Field| (*field, restaurant.services.get(field.0).cloned().unwrap_or_default());
        SERVICES.iter().map(service).collect()
    })?;
    draw(&Services { frame: at.frame()?, services })
}

pub(crate) async fn save_service(at: At, fields: Fields) -> Response {
    at.change(&fields, "services", |restaurant| {
        let known = SERVICES.iter().find(|(name, _)| *name == fields.get("service"));
        let (name, title) = known.ok_or("There is no such service")?;
        let money = |name: &str| cents(fields.get(name)).ok_or("A fee is written as in 2.50");
        let (opens, closes) = (fields.get("opens"), fields.get("closes"));
        if fields.has("enabled") && (opens.is_empty() || closes.is_empty() || opens >= closes) {
            return Err("It must open before it closes".into());
        }
        let service = Service {
            enabled: fields.has("enabled"),
            opens: opens.into(),
            closes: closes.into(),
            fee_cents: money("fee")?,
            minimum_cents: money("minimum")?,
        };
        restaurant.services.insert((*name).to_owned(), service);
        Ok(format!("{title} is saved."))
    })
}

/// A tab as it is shown.
struct Tab {
    name: &'static str,
    title: &'static str,
    fields: Vec<(Field, String)>,
}

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings {
    frame: Frame,
    tabs: Vec<Tab>,
}

pub(crate) async fn settings_page(at: At) -> Page {
    let tabs = at.read(|restaurant| {
        let none = BTreeMap::new();
        let tab = |(name, title, fields): &(&'static str, &'static str, [Field; 2])| Tab {
            name,
            title,
            fields: filled(fields, restaurant.settings.get(*name).unwrap_or(&none)),
        };
        TABS.iter().map(tab).collect()
    })?;
    draw(&Settings { frame: at.frame()?, tabs })
}

pub(crate) async fn save_settings(at: At, fields: Fields) -> Response {
    at.change(&fields, "settings", |restaurant| {
        let known = TABS.iter().find(|(name, ..)| *name == fields.get("tab"));
        let (name, title, names) = known.ok_or("There is no such tab")?;
        let rate = fields.get("rate_percent");
        if *name == "tax" && !rate.parse::<f64>().is_ok_and(|rate| (0.0..=100.0).contains(&rate)) {
            return Err("The tax rate is a number from 0 to 100".into());
        }
        restaurant.settings.insert((*name).to_owned(), taken(&fields, names));
        Ok(format!("{title} is saved."))
    })
}

#[derive(Template)]
#[template(path = "api_keys.html")]
struct ApiKeys {
    frame: Frame,
    keys: Vec<ApiKey>,
    permissions: [&'static str; 5],
    /// Just made, and shown this once.
    value: Option<String>,
}

pub(crate) async fn api_keys_page(at: At) -> Page {
    show_keys(&at, None)
}

fn show_keys(at: &At, value: Option<String>) -> Page {
    let keys = at.read(|restaurant| restaurant.api_keys.clone())?;
    draw(&ApiKeys { frame: at.frame()?, keys, permissions: PERMISSIONS, value })
}

/// A permission that the restaurant may not give is left out, and said so.
pub(crate) async fn create_api_key(at: At, fields: Fields) -> Page {
    let value = format!("tk_live_{}", token());
    let asked = fields.all("permissions");
    let (refused, given): (Vec<&str>, Vec<&str>) = asked.into_iter().partition(|name| at.refuses(name));
    let outcome = at.is_ours(&fields).and_then(|()| {
        at.carry_out(|restaurant| {
            let name = fields.get("name");
            if name.is_empty() || given.is_empty() {
                return Err("Give a name and at least one permission".into());
            }
            if restaurant.api_keys.iter().any(|key| key.name == name) {
                return Err("Already exists".into());
            }
            restaurant.api_keys.push(ApiKey {
                name: name.to_owned(),
                permissions: given.iter().map(|name| (*name).to_owned()).collect(),
                last_four: value[value.len() - 4..].to_owned(),
                sha256: hex::encode(Sha256::digest(&value)),
            });
            let left_out = refused.join(", ");
            let made = "The key is created.";
            Ok(if refused.is_empty() { made.into() } else { format!("{made} Not in your plan: {left_out}") })
        })
    });
    let is_made = outcome.is_ok();
    at.visitor.tell(outcome);
    if is_made { show_keys(&at, Some(value)) } else { Ok(to_keys(&at)) }
}

pub(crate) async fn revoke_api_key(at: At, fields: Fields) -> Response {
    at.change(&fields, "api-keys", |restaurant| {
        restaurant.api_keys.retain(|key| key.name != fields.get("name"));
        Ok("The key is revoked.".into())
    })
}

fn to_keys(at: &At) -> Response {
    Redirect::to(&format!("/r/{}/api-keys", at.slug)).into_response()
}
