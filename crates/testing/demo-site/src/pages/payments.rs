//! How guests pay: the currency, the connection to the payments company, and its link on the checkout page.

use super::{Page, draw};
use crate::fields::Fields;
use crate::site::token;
use crate::visitor::{At, Frame};
use crate::world::{Connecting, Payments};
use askama::Template;
use axum::extract::Query;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

const CURRENCIES: [&str; 4] = ["EUR", "GBP", "NZD", "USD"];
/// What fits on a card's statement.
const STATEMENT_LETTERS_MAX: usize = 22;

#[derive(Template)]
#[template(path = "payments.html")]
struct PaymentsPage {
    frame: Frame,
    payments: Payments,
    currencies: [&'static str; 4],
}

pub(crate) async fn page(at: At) -> Page {
    let payments = at.read(|restaurant| restaurant.payments.clone())?;
    draw(&PaymentsPage { frame: at.frame()?, payments, currencies: CURRENCIES })
}

pub(crate) async fn save(at: At, fields: Fields) -> Response {
    at.change(&fields, "payments", |restaurant| {
        let (currency, statement) = (fields.get("currency"), fields.get("statement"));
        if !CURRENCIES.contains(&currency) {
            return Err("Choose a currency of the list".into());
        }
        if statement.chars().count() > STATEMENT_LETTERS_MAX {
            return Err(format!("The statement text has more than {STATEMENT_LETTERS_MAX} letters"));
        }
        restaurant.payments.currency = currency.into();
        restaurant.payments.statement = statement.into();
        Ok("The payment settings are saved.".into())
    })
}

/// Goes to the company, and remembers where it shall send the owner back to.
pub(crate) async fn connect(at: At, headers: HeaderMap, fields: Fields) -> Response {
    if let Err(refused) = at.allow(&fields) {
        at.visitor.tell(Err(refused));
        return Redirect::to(&format!("/r/{}/payments", at.slug)).into_response();
    }
    let ours = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1");
    let host = ours.rsplit_once(':').map_or(ours, |(host, _)| host);
    let theirs = format!("http://{host}:{}", at.visitor.site.payments_port());
    let state = token();
    let begun = Connecting {
        email: at.visitor.email.clone(),
        slug: at.slug.clone(),
        return_to: format!("http://{ours}/r/{}/payments/return", at.slug),
        is_authorised: false,
    };
    at.visitor.site.world().connecting.insert(state.clone(), begun);
    Redirect::to(&format!("{theirs}/connect/{state}")).into_response()
}

#[derive(Debug, Deserialize)]
pub(crate) struct Back {
    state: String,
}

/// Back from the company. What it was begun with is good for one return.
pub(crate) async fn come_back(at: At, Query(Back { state }): Query<Back>) -> Response {
    let begun = at.visitor.site.world().connecting.remove(&state);
    let is_good = begun
        .is_some_and(|begun| begun.is_authorised && begun.email == at.visitor.email && begun.slug == at.slug);
    let account = at.visitor.site.world().payment_accounts.get(&at.visitor.email).cloned();
    let outcome = at.carry_out(|restaurant| {
        let account =
            account.filter(|_| is_good).ok_or("The payments company did not agree. Connect again.")?;
        restaurant.payments.account = Some(account.id);
        restaurant.payments.account_holder = account.holder;
        Ok("The payments account is connected.".into())
    });
    at.visitor.tell(outcome);
    Redirect::to(&format!("/r/{}/payments", at.slug)).into_response()
}

pub(crate) async fn link(at: At, fields: Fields) -> Response {
    at.change(&fields, "payments", |restaurant| {
        if restaurant.payments.account.is_none() {
            return Err("Connect a payments account first".into());
        }
        restaurant.payments.linked = true;
        Ok("Card payments are linked to the checkout.".into())
    })
}
