//! Who asks: their session, the restaurant whose pages they are on, and what these pages share.

use crate::faults::FaultKind;
use crate::fields::Fields;
use crate::pages::NoPage;
use crate::site::{Shared, token};
use crate::world::{Notice, Restaurant, Session};
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use std::time::Instant;

const COOKIE: &str = "trattoria";
const NO_RESTAURANT: NoPage = NoPage::Missing("You have no such restaurant.");

/// The session that a request names.
pub(crate) fn session_token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

/// Begins a session and goes to this page.
pub(crate) fn welcome(site: &Shared, email: &str, is_half: bool, to: &str) -> Response {
    let (name, csrf) = (token(), token());
    let session = Session { email: email.to_owned(), csrf, seen: Instant::now(), is_half, notice: None };
    site.world().sessions.insert(name.clone(), session);
    let cookie = format!("{COOKIE}={name}; Path=/; HttpOnly; SameSite=Lax");
    ([(header::SET_COOKIE, cookie)], Redirect::to(to)).into_response()
}

/// Somebody who has signed in.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) site: Shared,
    pub(crate) token: String,
    pub(crate) email: String,
    csrf: String,
}

impl Visitor {
    /// What is told once.
    fn take_notice(&self) -> Option<Notice> {
        self.site.world().sessions.get_mut(&self.token)?.notice.take()
    }

    pub(crate) fn tell(&self, outcome: Result<String, String>) {
        let notice = match outcome {
            Ok(text) => Notice { is_trouble: false, text },
            Err(text) => Notice { is_trouble: true, text },
        };
        if let Some(session) = self.site.world().sessions.get_mut(&self.token) {
            session.notice = Some(notice);
        }
    }
}

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, site: &Shared) -> Result<Self, Response> {
        let sign_in = || Redirect::to(&format!("/sign-in?next={}", parts.uri.path())).into_response();
        let token = session_token(&parts.headers).ok_or_else(sign_in)?.to_owned();
        let mut world = site.world();
        let session = world.sessions.get_mut(&token).ok_or_else(sign_in)?;
        if session.seen.elapsed() > site.session_ttl() {
            world.sessions.remove(&token);
            return Err(sign_in());
        }
        if session.is_half && parts.uri.path() != "/two-factor" {
            return Err(Redirect::to("/two-factor").into_response());
        }
        session.seen = Instant::now();
        let (email, csrf) = (session.email.clone(), session.csrf.clone());
        Ok(Visitor { site: site.clone(), token, email, csrf })
    }
}

/// Somebody on the pages of one of their restaurants.
#[derive(Debug)]
pub(crate) struct At {
    pub(crate) visitor: Visitor,
    pub(crate) slug: String,
    path: String,
}

impl FromRequestParts<Shared> for At {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, site: &Shared) -> Result<Self, Response> {
        let visitor = Visitor::from_request_parts(parts, site).await?;
        let params =
            RawPathParams::from_request_parts(parts, site).await.map_err(|error| error.into_response())?;
        let slug = params.iter().find(|(name, _)| *name == "slug").map(|(_, slug)| slug.to_owned());
        let slug = slug.filter(|slug| site.world().restaurant(&visitor.email, slug).is_some());
        let slug = slug.ok_or_else(|| NO_RESTAURANT.into_response())?;
        Ok(At { visitor, slug, path: parts.uri.path().to_owned() })
    }
}

impl At {
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Restaurant) -> T) -> Result<T, NoPage> {
        let mut world = self.visitor.site.world();
        let restaurant = world.restaurant(&self.visitor.email, &self.slug);
        restaurant.map(|restaurant| read(restaurant)).ok_or(NO_RESTAURANT)
    }

    /// Carries out what a form asks for, and goes to this page of the restaurant, which says what became of it.
    pub(crate) fn change(
        &self,
        fields: &Fields,
        back: &str,
        act: impl FnOnce(&mut Restaurant) -> Result<String, String>,
    ) -> Response {
        let outcome = self.allow(fields).and_then(|()| self.carry_out(act));
        self.visitor.tell(outcome);
        Redirect::to(&format!("/r/{}/{back}", self.slug)).into_response()
    }

    /// Whether the form is from a page of this session.
    pub(crate) fn is_ours(&self, fields: &Fields) -> Result<(), String> {
        if fields.get("csrf") == self.visitor.csrf {
            Ok(())
        } else {
            Err("This page was open for too long. Send it once more.".into())
        }
    }

    /// Whether the form is one of ours, and nothing in it is refused.
    pub(crate) fn allow(&self, fields: &Fields) -> Result<(), String> {
        self.is_ours(fields)?;
        let mut world = self.visitor.site.world();
        let refused =
            fields.values().find(|value| world.faults.refuses(&self.visitor.email, &self.path, value));
        refused.map_or(Ok(()), |value| Err(format!("\"{value}\" is refused")))
    }

    pub(crate) fn carry_out<T>(
        &self,
        act: impl FnOnce(&mut Restaurant) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut world = self.visitor.site.world();
        let restaurant = world.restaurant(&self.visitor.email, &self.slug);
        let restaurant = restaurant.ok_or("The restaurant is no longer there")?;
        let done = act(restaurant)?;
        restaurant.changes += 1;
        Ok(done)
    }

    /// Whether a value is refused by itself, where the rest of the form is taken.
    pub(crate) fn refuses(&self, value: &str) -> bool {
        self.visitor.site.world().faults.refuses(&self.visitor.email, &self.path, value)
    }

    /// What every page of the restaurant has around it.
    pub(crate) fn frame(&self) -> Result<Frame, NoPage> {
        let name = self.read(|restaurant| restaurant.name.clone())?;
        let notice = self.visitor.take_notice();
        let mut world = self.visitor.site.world();
        let is_renamed = world.faults.strike(FaultKind::Rename, &self.visitor.email, &self.path).is_some();
        Ok(Frame { name, slug: self.slug.clone(), csrf: self.visitor.csrf.clone(), notice, is_renamed })
    }
}

/// What a page has around it.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) csrf: String,
    pub(crate) notice: Option<Notice>,
    is_renamed: bool,
}

impl Frame {
    /// What is written on a button.
    pub(crate) fn button(&self, usual: &str) -> String {
        if self.is_renamed { format!("Proceed ({})", usual.len()) } else { usual.to_owned() }
    }
}
