//! The menu and what belongs to it: the import of files, tags, and option sets.

use super::website::is_color;
use super::{NoPage, Page, draw};
use crate::csv;
use crate::fields::Fields;
use crate::imports::{self, Import, Stage};
use crate::site::token;
use crate::visitor::{At, Frame};
use crate::world::{Choice, Item, OptionSet, Tag, cents};
use askama::Template;
use axum::Json;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};

/// Items on a page of the menu.
const PAGE_ITEMS: usize = 50;
const NO_IMPORT: NoPage = NoPage::Missing("There is no such import.");

#[derive(Template)]
#[template(path = "menu.html")]
struct Menu {
    frame: Frame,
    items: Vec<Item>,
    page: usize,
    pages: usize,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Paging {
    page: Option<usize>,
}

pub(crate) async fn page(at: At, Query(paging): Query<Paging>) -> Page {
    let all = at.read(|restaurant| restaurant.menu.clone())?;
    let pages = all.len().div_ceil(PAGE_ITEMS).max(1);
    let page = paging.page.unwrap_or(1).clamp(1, pages);
    let items = all.into_iter().skip((page - 1) * PAGE_ITEMS).take(PAGE_ITEMS).collect();
    draw(&Menu { frame: at.frame()?, items, page, pages })
}

#[derive(Template)]
#[template(path = "import_new.html")]
struct NewImport {
    frame: Frame,
}

pub(crate) async fn import_page(at: At) -> Page {
    draw(&NewImport { frame: at.frame()? })
}

pub(crate) async fn upload(at: At, fields: Fields) -> Response {
    let id = token()[..12].to_owned();
    let rows = at.allow(&fields).and_then(|()| csv::menu(fields.exact("file")));
    let stored = rows.and_then(|rows| {
        at.carry_out(|restaurant| {
            restaurant.imports.insert(id.clone(), Import::new(rows));
            Ok(())
        })
    });
    let to = match stored {
        Ok(()) => format!("/r/{}/menu/import/{id}", at.slug),
        Err(refused) => {
            at.visitor.tell(Err(refused));
            format!("/r/{}/menu/import", at.slug)
        }
    };
    Redirect::to(&to).into_response()
}

/// A row as it is shown.
struct Line {
    number: usize,
    name: String,
    outcome: String,
}

#[derive(Template)]
#[template(path = "import.html")]
struct ShowImport {
    frame: Frame,
    id: String,
    stage: Stage,
    imported: usize,
    lines: Vec<Line>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Which {
    id: String,
}

pub(crate) async fn show_import(at: At, Path(Which { id }): Path<Which>) -> Page {
    let import = at.read(|restaurant| restaurant.imports.get(&id).cloned())?;
    let import = import.ok_or(NO_IMPORT)?;
    let line = |(at, row): (usize, &csv::Row)| Line {
        number: at + 1,
        name: row.name.clone(),
        outcome: match import.outcomes.get(at) {
            Some(None) => "Imported".into(),
            Some(Some(reason)) => reason.clone(),
            None => row.item.as_ref().err().cloned().unwrap_or_else(|| "Ready".into()),
        },
    };
    let lines = import.rows.iter().enumerate().map(line).collect();
    let (stage, imported) = (import.stage, import.imported());
    draw(&ShowImport { frame: at.frame()?, id, stage, imported, lines })
}

/// Begins to store the rows. To confirm twice changes nothing.
pub(crate) async fn confirm(at: At, Path(Which { id }): Path<Which>, fields: Fields) -> Response {
    let is_begun = at.allow(&fields).and_then(|()| {
        at.carry_out(|restaurant| {
            let import = restaurant.imports.get_mut(&id).ok_or("There is no such import")?;
            let is_first = import.stage == Stage::Ready;
            if is_first {
                import.stage = Stage::Running;
            }
            Ok(is_first)
        })
    });
    match is_begun {
        Ok(true) => {
            let (site, email) = (at.visitor.site.clone(), at.visitor.email.clone());
            tokio::spawn(imports::carry_out(site, email, at.slug.clone(), id.clone()));
        }
        Ok(false) => {}
        Err(refused) => at.visitor.tell(Err(refused)),
    }
    Redirect::to(&format!("/r/{}/menu/import/{id}", at.slug)).into_response()
}

/// How far it is, for the page that waits.
pub(crate) async fn status(at: At, Path(Which { id }): Path<Which>) -> Result<Json<Value>, NoPage> {
    let import = at.read(|restaurant| restaurant.imports.get(&id).cloned())?;
    let import = import.ok_or(NO_IMPORT)?;
    let (seen, total) = (import.outcomes.len(), import.rows.len());
    Ok(Json(json!({ "done": import.stage == Stage::Done, "seen": seen, "total": total })))
}

#[derive(Template)]
#[template(path = "tags.html")]
struct Tags {
    frame: Frame,
    tags: Vec<Tag>,
}

pub(crate) async fn tags_page(at: At) -> Page {
    let tags = at.read(|restaurant| restaurant.tags.clone())?;
    draw(&Tags { frame: at.frame()?, tags })
}

pub(crate) async fn add_tag(at: At, fields: Fields) -> Response {
    at.change(&fields, "tags", |restaurant| {
        let (name, color) = (fields.get("name"), fields.get("color"));
        if name.is_empty() {
            return Err("The name is missing".into());
        }
        if !is_color(color) {
            return Err("A colour is written as in #aa3322".into());
        }
        if restaurant.tags.iter().any(|tag| tag.name == name) {
            return Err("Already exists".into());
        }
        let (name, display_name) = (name.to_owned(), fields.get("display_name").to_owned());
        let told = format!("The tag {name} is added.");
        restaurant.tags.push(Tag { name, display_name, color: color.to_owned() });
        Ok(told)
    })
}

#[derive(Template)]
#[template(path = "option_sets.html")]
struct OptionSets {
    frame: Frame,
    sets: Vec<OptionSet>,
}

pub(crate) async fn option_sets_page(at: At) -> Page {
    let sets = at.read(|restaurant| restaurant.option_sets.clone())?;
    draw(&OptionSets { frame: at.frame()?, sets })
}

#[derive(Template)]
#[template(path = "option_set_new.html")]
struct NewOptionSet {
    frame: Frame,
}

pub(crate) async fn new_option_set_page(at: At) -> Page {
    draw(&NewOptionSet { frame: at.frame()? })
}

pub(crate) async fn add_option_set(at: At, fields: Fields) -> Response {
    at.change(&fields, "option-sets", |restaurant| {
        let set = option_set(&fields)?;
        if restaurant.option_sets.iter().any(|known| known.name == set.name) {
            return Err("Already exists".into());
        }
        let told = format!("The option set {} is added.", set.name);
        restaurant.option_sets.push(set);
        Ok(told)
    })
}

fn option_set(fields: &Fields) -> Result<OptionSet, String> {
    let number = |name: &str| {
        fields
            .get(name)
            .parse::<u32>()
            .map_err(|_| "The numbers of selections must be whole numbers".to_owned())
    };
    let choice = |(name, price): (&str, &str)| {
        let price_cents = cents(price).ok_or_else(|| format!("The price \"{price}\" is not an amount"))?;
        Ok(Choice { name: name.to_owned(), price_cents })
    };
    let rows = fields.all("item_name").into_iter().zip(fields.all("item_price"));
    let items: Result<Vec<Choice>, String> = rows.filter(|(name, _)| !name.is_empty()).map(choice).collect();
    let set = OptionSet {
        name: fields.get("name").to_owned(),
        display_name: fields.get("display_name").to_owned(),
        is_required: fields.has("is_required"),
        multiple_selections_allowed: fields.has("multiple_selections_allowed"),
        min_selections: number("min_selections")?,
        max_selections: number("max_selections")?,
        items: items?,
    };
    if set.name.is_empty() || set.items.is_empty() {
        return Err("Give a name and at least one option".into());
    }
    if set.min_selections > set.max_selections {
        return Err("The least number of selections is greater than the greatest".into());
    }
    Ok(set)
}
