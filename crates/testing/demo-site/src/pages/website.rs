//! The restaurant's own website: its theme, its texts, and whether guests can see it.

use super::{Page, draw};
use crate::fields::Fields;
use crate::visitor::{At, Frame};
use crate::world::Website;
use askama::Template;
use axum::response::Response;

#[derive(Template)]
#[template(path = "website.html")]
struct WebsitePage {
    frame: Frame,
    website: Website,
}

pub(crate) async fn page(at: At) -> Page {
    let website = at.read(|restaurant| restaurant.website.clone())?;
    draw(&WebsitePage { frame: at.frame()?, website })
}

/// A colour as in `#aa3322`.
pub(super) fn is_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

pub(crate) async fn save_theme(at: At, fields: Fields) -> Response {
    at.change(&fields, "website", |restaurant| {
        let theme = match fields.get("theme") {
            "dark" => "dark",
            "light" => "light",
            _ => return Err("Choose a theme".into()),
        };
        let (primary, accent) = (fields.get("primary_color"), fields.get("accent_color"));
        if !is_color(primary) || !is_color(accent) {
            return Err("A colour is written as in #aa3322".into());
        }
        let website = &mut restaurant.website;
        (website.primary_color, website.accent_color) = (primary.into(), accent.into());
        (website.theme, website.published) = (theme, false);
        Ok(format!("The {theme} theme is saved."))
    })
}

pub(crate) async fn save_texts(at: At, fields: Fields) -> Response {
    at.change(&fields, "website", |restaurant| {
        let domain = fields.get("domain");
        if !domain.is_empty() && !domain.contains('.') {
            return Err("A web address is written as in www.example.com".into());
        }
        restaurant.website.headline = fields.get("headline").into();
        restaurant.website.domain = domain.into();
        Ok("The texts are saved.".into())
    })
}

pub(crate) async fn publish(at: At, fields: Fields) -> Response {
    at.change(&fields, "website", |restaurant| {
        restaurant.website.published = true;
        Ok("The website is published.".into())
    })
}
