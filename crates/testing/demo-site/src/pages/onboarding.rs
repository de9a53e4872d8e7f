//! The first page of a restaurant, and what is still to be done before guests may order.

use super::{Page, draw};
use crate::fields::Fields;
use crate::visitor::{At, Frame};
use crate::world::Restaurant;
use askama::Template;
use axum::response::Response;

/// Something to be done.
struct Check {
    title: &'static str,
    is_done: bool,
    is_required: bool,
}

fn checklist(restaurant: &Restaurant) -> Vec<Check> {
    let required = |title, is_done| Check { title, is_done, is_required: true };
    let advised = |title, is_done| Check { title, is_done, is_required: false };
    vec![
        required("Menu", !restaurant.menu.is_empty()),
        required("Website", restaurant.website.published),
        required("Services", restaurant.services.values().any(|service| service.enabled)),
        required("Payments", restaurant.payments.account.is_some()),
        advised("Item tags", !restaurant.tags.is_empty()),
        advised("Option sets", !restaurant.option_sets.is_empty()),
        advised("System settings", !restaurant.settings.is_empty()),
        advised("API key", !restaurant.api_keys.is_empty()),
    ]
}

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Dashboard {
    frame: Frame,
    items: usize,
    is_live: bool,
}

pub(crate) async fn dashboard(at: At) -> Page {
    let (items, is_live) = at.read(|restaurant| (restaurant.menu.len(), restaurant.live))?;
    draw(&Dashboard { frame: at.frame()?, items, is_live })
}

#[derive(Template)]
#[template(path = "onboarding.html")]
struct Onboarding {
    frame: Frame,
    checks: Vec<Check>,
    is_live: bool,
}

pub(crate) async fn page(at: At) -> Page {
    let (checks, is_live) = at.read(|restaurant| (checklist(restaurant), restaurant.live))?;
    draw(&Onboarding { frame: at.frame()?, checks, is_live })
}

pub(crate) async fn go_live(at: At, fields: Fields) -> Response {
    at.change(&fields, "onboarding", |restaurant| {
        if let Some(missing) = checklist(restaurant).iter().find(|check| check.is_required && !check.is_done)
        {
            return Err(format!("{} must be set up first", missing.title));
        }
        restaurant.live = true;
        Ok("The restaurant is live.".into())
    })
}
