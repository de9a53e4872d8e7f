//! What the site has stored, as the oracle tells it. Passwords and keys are kept out of what is told.

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// A dish or a drink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) category: String,
    pub(crate) description: String,
    pub(crate) price_cents: i64,
}

impl Item {
    /// As it is printed.
    pub(crate) fn price(&self) -> String {
        amount(self.price_cents)
    }
}

/// A mark for items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) display_name: String,
    pub(crate) color: String,
}

/// What a guest may choose with an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct OptionSet {
    pub(crate) name: String,
    pub(crate) display_name: String,
    pub(crate) is_required: bool,
    pub(crate) multiple_selections_allowed: bool,
    pub(crate) min_selections: u32,
    pub(crate) max_selections: u32,
    pub(crate) items: Vec<Choice>,
}

/// One of the things to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Choice {
    pub(crate) name: String,
    pub(crate) price_cents: i64,
}

impl Choice {
    /// As it is printed.
    pub(crate) fn price(&self) -> String {
        amount(self.price_cents)
    }
}

/// How the restaurant's own website looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Website {
    pub(crate) theme: &'static str,
    pub(crate) primary_color: String,
    pub(crate) accent_color: String,
    pub(crate) headline: String,
    pub(crate) domain: String,
    pub(crate) published: bool,
}

impl Default for Website {
    fn default() -> Self {
        Website {
            theme: "unset",
            primary_color: "#aa3322".into(),
            accent_color: "#22aa88".into(),
            headline: String::new(),
            domain: String::new(),
            published: false,
        }
    }
}

/// A way to be served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Service {
    pub(crate) enabled: bool,
    pub(crate) opens: String,
    pub(crate) closes: String,
    pub(crate) fee_cents: i64,
    pub(crate) minimum_cents: i64,
}

impl Service {
    /// As it is printed.
    pub(crate) fn fee(&self) -> String {
        amount(self.fee_cents)
    }

    /// As it is printed.
    pub(crate) fn minimum(&self) -> String {
        amount(self.minimum_cents)
    }
}

/// A key to the site's own API. The value itself is shown once and not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ApiKey {
    pub(crate) name: String,
    pub(crate) permissions: Vec<String>,
    pub(crate) last_four: String,
    pub(crate) sha256: String,
}

/// How guests pay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Payments {
    pub(crate) currency: String,
    pub(crate) statement: String,
    pub(crate) account: Option<String>,
    pub(crate) account_holder: String,
    pub(crate) linked: bool,
}

/// A restaurant and everything its owner has set up.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Restaurant {
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) profile: BTreeMap<String, String>,
    pub(crate) menu: Vec<Item>,
    pub(crate) tags: Vec<Tag>,
    pub(crate) option_sets: Vec<OptionSet>,
    pub(crate) website: Website,
    pub(crate) services: BTreeMap<String, Service>,
    pub(crate) settings: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) api_keys: Vec<ApiKey>,
    pub(crate) payments: Payments,
    pub(crate) live: bool,
    /// How often something of it was changed.
    pub(crate) changes: u32,
    #[serde(skip)]
    pub(crate) imports: BTreeMap<String, crate::imports::Import>,
}

impl Restaurant {
    pub(crate) fn new(name: &str, slug: String) -> Self {
        Restaurant { name: name.to_owned(), slug, ..Restaurant::default() }
    }
}

/// Somebody who can sign in.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Account {
    #[serde(skip)]
    pub(crate) password: String,
    pub(crate) restaurants: Vec<Restaurant>,
}

/// Somebody who has signed in.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) email: String,
    pub(crate) csrf: String,
    pub(crate) seen: Instant,
    /// A code is asked for before anything else.
    pub(crate) is_half: bool,
    /// Told on the next page, once.
    pub(crate) notice: Option<Notice>,
}

/// What became of something that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) is_trouble: bool,
    pub(crate) text: String,
}

/// A connection to the payments company that was begun and not yet come back from.
#[derive(Debug, Clone)]
pub(crate) struct Connecting {
    pub(crate) email: String,
    pub(crate) slug: String,
    pub(crate) return_to: String,
    pub(crate) is_authorised: bool,
}

/// An account at the payments company, which has one for each owner.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PaymentAccount {
    pub(crate) id: String,
    pub(crate) holder: String,
}

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) accounts: BTreeMap<String, Account>,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) connecting: BTreeMap<String, Connecting>,
    pub(crate) payment_accounts: BTreeMap<String, PaymentAccount>,
    pub(crate) faults: crate::faults::Faults,
}

impl World {
    pub(crate) fn restaurant(&mut self, email: &str, slug: &str) -> Option<&mut Restaurant> {
        self.accounts.get_mut(email)?.restaurants.iter_mut().find(|restaurant| restaurant.slug == slug)
    }

    /// Opens an account with one restaurant.
    pub(crate) fn sign_up(&mut self, email: &str, password: &str, restaurant: &str) -> &mut Restaurant {
        let taken = |slug: &str| {
            let all = self.accounts.values().flat_map(|account| &account.restaurants);
            all.into_iter().any(|restaurant| restaurant.slug == slug)
        };
        let slug = free_slug(restaurant, taken);
        let restaurants = vec![Restaurant::new(restaurant, slug)];
        let account = Account { password: password.to_owned(), restaurants };
        let stored = self.accounts.entry(email.to_owned()).insert_entry(account).into_mut();
        &mut stored.restaurants[0]
    }
}

/// The name as an address, with a number after it where it is taken.
fn free_slug(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let letters =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let plain: String = name.chars().map(letters).collect();
    let base = plain.trim_matches('-');
    let base = if base.is_empty() { "restaurant" } else { base };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    std::iter::once(base.to_owned()).chain(numbered).find(|slug| !taken(slug)).unwrap_or_default()
}

/// An amount of money as it is written, such as 12.5, in hundredths.
pub(crate) fn cents(text: &str) -> Option<i64> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || part.len() > 2 || !is_number(whole) || !is_number(part) {
        return None;
    }
    Some(whole.parse::<i64>().ok()? * 100 + format!("{part:0<2}").parse::<i64>().ok()?)
}

/// Hundredths as they are written.
pub(crate) fn amount(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (text, expected) in
            [("2", Some(200)), ("2.5", Some(250)), ("0.05", Some(5)), (" 12.50 ", Some(1250))]
        {
            assert_eq!(cents(text), expected, "{text}");
        }
        for text in ["", ".5", "-1", "1.234", "free", "1,50", "12345678901"] {
            assert_eq!(cents(text), None, "{text}");
        }
        assert_eq!(amount(1205), "12.05");
    }

    #[test]
    fn two_restaurants_of_one_name_have_two_addresses() {
        let mut world = World::default();
        world.sign_up("a@b.c", "x", "Luigi's");
        world.sign_up("d@e.f", "x", "Luigi's");
        assert_eq!(world.accounts["a@b.c"].restaurants[0].slug, "luigi-s");
        assert_eq!(world.accounts["d@e.f"].restaurants[0].slug, "luigi-s-2");
    }
}
