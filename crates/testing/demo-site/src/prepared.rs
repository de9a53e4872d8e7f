//! Restaurants that are partly set up, for tests that begin there.

use crate::world::{ApiKey, Choice, Item, OptionSet, Restaurant, Service, Tag};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is set up already.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    Menu,
    Website,
    Services,
    Payments,
    Tags,
    OptionSets,
    Settings,
    ApiKey,
}

impl Part {
    pub(crate) const ALL: &[Part] = &[
        Part::Menu,
        Part::Website,
        Part::Services,
        Part::Payments,
        Part::Tags,
        Part::OptionSets,
        Part::Settings,
        Part::ApiKey,
    ];
}

/// Sets up these parts.
pub(crate) fn set_up(restaurant: &mut Restaurant, parts: &[Part]) {
    parts.iter().for_each(|part| set_up_one(restaurant, *part));
}

fn set_up_one(restaurant: &mut Restaurant, part: Part) {
    let text = |text: &str| text.to_owned();
    match part {
        Part::Menu => restaurant.menu.push(Item {
            name: text("Margherita"),
            category: text("Pizza"),
            description: String::new(),
            price_cents: 1250,
        }),
        Part::Website => {
            (restaurant.website.theme, restaurant.website.published) = ("light", true);
        }
        Part::Services => {
            let service =
                Service { enabled: true, opens: text("11:00"), closes: text("22:00"), ..Service::default() };
            restaurant.services.insert(text("pickup"), service);
        }
        Part::Payments => restaurant.payments.account = Some(text("acct_prepared")),
        Part::Tags => restaurant.tags.push(Tag {
            name: text("Spicy"),
            display_name: text("Spicy"),
            color: text("#ff0000"),
        }),
        Part::OptionSets => restaurant.option_sets.push(OptionSet {
            name: text("Size"),
            display_name: text("Choose a size"),
            is_required: true,
            multiple_selections_allowed: false,
            min_selections: 1,
            max_selections: 1,
            items: vec![Choice { name: text("Small"), price_cents: 0 }],
        }),
        Part::Settings => {
            let tax = BTreeMap::from([(text("rate_percent"), text("15")), (text("number"), String::new())]);
            restaurant.settings.insert(text("tax"), tax);
        }
        Part::ApiKey => restaurant.api_keys.push(ApiKey {
            name: text("Prepared"),
            permissions: vec![text("menu.read")],
            last_four: text("0000"),
            sha256: String::new(),
        }),
    }
}
