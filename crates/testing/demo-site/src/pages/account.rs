//! Signing up, in and out, and choosing a restaurant.

use super::{Page, draw};
use crate::faults::FaultKind;
use crate::fields::Fields;
use crate::site::Shared;
use crate::visitor::{Visitor, session_token, welcome};
use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

/// What the two-factor page takes for the code, for those who want to look behind it.
const CODE: &str = "246810";
/// A shorter password is refused at sign-up.
const PASSWORD_LETTERS_MIN: usize = 8;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    trouble: String,
    email: String,
    next: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

pub(crate) async fn sign_in_page(Query(Next { next }): Query<Next>, headers: HeaderMap) -> Page {
    // Somebody who is here for the first time had no session that could have ended.
    let has_ended = !next.is_empty() && session_token(&headers).is_some();
    let trouble = if has_ended { "Your session has ended. Sign in again." } else { "" };
    draw(&SignIn { trouble: trouble.into(), email: String::new(), next })
}

pub(crate) async fn sign_in(State(site): State<Shared>, fields: Fields) -> Page {
    let (email, password) = (fields.get("email"), fields.exact("password"));
    let is_right = site.world().accounts.get(email).is_some_and(|account| account.password == password);
    if !is_right {
        let trouble = "The e-mail address or the password is not right.".into();
        let page = draw(&SignIn { trouble, email: email.into(), next: fields.get("next").into() })?;
        return Ok((StatusCode::UNAUTHORIZED, page).into_response());
    }
    let is_half = site.world().faults.strike(FaultKind::TwoFactor, email, "/sign-in").is_some();
    // Only to pages of this site: an address that begins with two slashes is another's.
    let next = fields.get("next");
    let is_ours = next.starts_with('/') && !next.starts_with("//");
    Ok(welcome(&site, email, is_half, if is_ours { next } else { "/" }))
}

#[derive(Template)]
#[template(path = "two_factor.html")]
struct TwoFactor {
    trouble: String,
}

pub(crate) async fn two_factor_page(_: Visitor) -> Page {
    draw(&TwoFactor { trouble: String::new() })
}

pub(crate) async fn two_factor(visitor: Visitor, fields: Fields) -> Page {
    if fields.get("code") != CODE {
        return draw(&TwoFactor { trouble: "That is not the code. Look at your phone again.".into() });
    }
    if let Some(session) = visitor.site.world().sessions.get_mut(&visitor.token) {
        session.is_half = false;
    }
    Ok(Redirect::to("/").into_response())
}

pub(crate) async fn sign_out(visitor: Visitor) -> Response {
    visitor.site.world().sessions.remove(&visitor.token);
    Redirect::to("/sign-in").into_response()
}

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUp {
    trouble: String,
    email: String,
    restaurant: String,
}

pub(crate) async fn sign_up_page() -> Page {
    draw(&SignUp { trouble: String::new(), email: String::new(), restaurant: String::new() })
}

pub(crate) async fn sign_up(State(site): State<Shared>, fields: Fields) -> Page {
    let (email, restaurant) = (fields.get("email"), fields.get("restaurant"));
    if let Err((status, trouble)) = check(&site, &fields) {
        let page = draw(&SignUp { trouble, email: email.into(), restaurant: restaurant.into() })?;
        return Ok((status, page).into_response());
    }
    site.world().sign_up(email, fields.exact("password"), restaurant);
    Ok(welcome(&site, email, false, "/"))
}

fn check(site: &Shared, fields: &Fields) -> Result<(), (StatusCode, String)> {
    let refused = |text: &str| Err((StatusCode::UNPROCESSABLE_ENTITY, text.to_owned()));
    let (email, restaurant) = (fields.get("email"), fields.get("restaurant"));
    if !email.contains('@') || restaurant.is_empty() {
        return refused("Give an e-mail address and the name of the restaurant.");
    }
    if fields.exact("password").chars().count() < PASSWORD_LETTERS_MIN {
        return refused("The password must have at least eight letters.");
    }
    let mut world = site.world();
    if world.accounts.contains_key(email) {
        let taken = "There is already an account with this e-mail address. Sign in instead.";
        return Err((StatusCode::CONFLICT, taken.into()));
    }
    if world.faults.refuses(email, "/sign-up", restaurant) {
        return refused("This name is refused.");
    }
    Ok(())
}

#[derive(Template)]
#[template(path = "restaurants.html")]
struct Restaurants {
    email: String,
    restaurants: Vec<(String, String)>,
}

pub(crate) async fn restaurants(visitor: Visitor) -> Page {
    let world = visitor.site.world();
    let account = world.accounts.get(&visitor.email);
    let all = account.map(|account| account.restaurants.as_slice()).unwrap_or_default();
    let restaurants = all.iter().map(|one| (one.slug.clone(), one.name.clone())).collect();
    draw(&Restaurants { email: visitor.email.clone(), restaurants })
}
