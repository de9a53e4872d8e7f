//! Ordering a print: where it goes, and as which product.

use crate::order::money::NotMoney;
use crate::order::product::{Poster, fitting};
use crate::request::{OrderAsk, PrintInput, Recipient};
use crate::routes::{ask, find_print, no_map, payer};
use crate::sql;
use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Extension, Path, State};
use axum::response::{Html, Redirect};
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::pages::draw;
use ode_http::problem::Problem;
use ode_job::JobId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "order.html")]
struct Page {
    job: JobId,
    name: String,
    /// What the map fits, as far as that is known.
    posters: Vec<&'static Poster>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Html<String>, Problem> {
    let job = find_print(&app, &caller, &id).await?;
    payer(&caller)?;
    let map = PrintInput::of(&job.input).printable_map_id.ok_or_else(no_map)?;
    let map = sql::printable_map(app.store.sql(), caller.owner, map).await?;
    // A size is a name, or JSON.
    let size = map.page_size.unwrap_or_default();
    let size: Value = serde_json::from_str(&size).unwrap_or(Value::String(size));
    draw(&Page {
        job: job.id,
        name: map.title.unwrap_or_else(|| "Untitled map".into()),
        posters: fitting(&json!({ "size": size })).collect(),
    })
}

/// An order as a form sends it: all of it text.
#[derive(Debug, Deserialize)]
pub(super) struct Filled {
    name: String,
    #[serde(default)]
    company: String,
    address1: String,
    #[serde(default)]
    address2: String,
    city: String,
    #[serde(default)]
    state_code: String,
    country_code: String,
    #[serde(default)]
    zip: String,
    variant_id: i64,
    quantity: u32,
    #[serde(default)]
    cost_max: String,
}

impl Filled {
    fn ask(self) -> Result<OrderAsk, Problem> {
        let given = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let cost_max = given(self.cost_max).map(|text| text.parse()).transpose();
        Ok(OrderAsk {
            recipient: Recipient {
                name: self.name,
                company: given(self.company),
                address1: self.address1,
                address2: given(self.address2),
                city: self.city,
                state_code: given(self.state_code),
                country_code: self.country_code.trim().to_ascii_uppercase(),
                zip: given(self.zip),
                phone: None,
                email: None,
            },
            variant_id: self.variant_id,
            quantity: self.quantity,
            shipping: "STANDARD".into(),
            cost_max: cost_max.map_err(|error: NotMoney| Problem::invalid(error.to_string()))?,
        })
    }
}

pub(super) async fn order(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    form: Result<Form<Filled>, FormRejection>,
) -> Result<Redirect, Problem> {
    let unread = |_| Problem::invalid("The order is not complete. Go back and fill in what is missing.");
    let Form(filled) = form.map_err(unread)?;
    let job = find_print(&app, &caller, &id).await?;
    ask(&app, &caller, &job, &filled.ask()?).await?;
    Ok(Redirect::to("/maps"))
}
