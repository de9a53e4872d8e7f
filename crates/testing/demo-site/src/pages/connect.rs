//! The payments company, on an origin of its own: the restaurant's owner tells it who is paid, and is sent back.

use super::{NoPage, Page, draw};
use crate::fields::Fields;
use crate::site::{Shared, token};
use crate::world::PaymentAccount;
use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};

#[derive(Template)]
#[template(path = "connect.html")]
struct Connect {
    state: String,
    trouble: String,
    known: Option<PaymentAccount>,
}

const UNKNOWN: NoPage =
    NoPage::Missing("This request to connect is not known. Begin again at the restaurant.");

pub(crate) async fn page(State(site): State<Shared>, Path(state): Path<String>) -> Page {
    let world = site.world();
    let begun = world.connecting.get(&state).ok_or(UNKNOWN)?;
    let known = world.payment_accounts.get(&begun.email).cloned();
    draw(&Connect { state, trouble: String::new(), known })
}

pub(crate) async fn authorise(State(site): State<Shared>, Path(state): Path<String>, fields: Fields) -> Page {
    let mut world = site.world();
    let begun = world.connecting.get_mut(&state).ok_or(UNKNOWN)?;
    let (email, return_to) = (begun.email.clone(), begun.return_to.clone());
    let known = world.payment_accounts.get(&email).cloned();
    if known.is_none() {
        let (holder, number) = (fields.get("account_holder"), fields.get("bank_account"));
        let is_refused = world.faults.refuses(&email, "/connect", holder);
        if holder.is_empty() || number.len() < 8 || is_refused {
            let trouble = "The account holder or the bank account is not accepted.".into();
            return draw(&Connect { state, trouble, known });
        }
        let account = PaymentAccount { id: format!("acct_{}", &token()[..12]), holder: holder.into() };
        world.payment_accounts.insert(email, account);
    }
    if let Some(begun) = world.connecting.get_mut(&state) {
        begun.is_authorised = true;
    }
    Ok(Redirect::to(&format!("{return_to}?state={state}")).into_response())
}
