//! The site over real sockets, as far as no browser is needed; `tests/scripts` drives it with one.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_demo_site::{Fault, Options, Owner, Site};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;

struct Visit {
    site: Site,
    client: Client,
}

impl Visit {
    async fn new() -> Self {
        let any = || TcpListener::bind("127.0.0.1:0");
        let site = Site::start(any().await.unwrap(), any().await.unwrap(), Options::default()).unwrap();
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        Visit { site, client }
    }

    async fn post(&self, path: &str, cookie: &str, form: &str) -> Response {
        let request = self.client.post(format!("http://{}{path}", self.site.admin()));
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.header(header::COOKIE, cookie).body(form.to_owned()).send().await.unwrap()
    }

    async fn get(&self, path: &str, cookie: &str) -> Response {
        let request = self.client.get(format!("http://{}{path}", self.site.admin()));
        request.header(header::COOKIE, cookie).send().await.unwrap()
    }

    /// The cookie of the owner who is there from the beginning.
    async fn sign_in(&self) -> String {
        let form = "email=owner%40restaurant.com&password=SecurePass123%21";
        let answer = self.post("/sign-in", "", form).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    fn restaurant(&self) -> Value {
        self.site.state(&Owner::default().email)["restaurants"][0].clone()
    }
}

fn csrf(page: &str) -> &str {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a form");
    rest.split('"').next().unwrap()
}

const TAGS: &str = "/r/the-best-restaurant/tags";

#[tokio::test]
async fn what_is_sent_is_stored_and_told_by_the_oracle() {
    let visit = Visit::new().await;
    let cookie = visit.sign_in().await;
    let page = visit.get(TAGS, &cookie).await.text().await.unwrap();
    let form = format!("csrf={}&name=Spicy&display_name=Hot&color=%23ff0000", csrf(&page));
    assert_eq!(visit.post(TAGS, &cookie, &form).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(
        visit.restaurant()["tags"],
        json!([{ "name": "Spicy", "display_name": "Hot", "color": "#ff0000" }])
    );
    let told = visit.get("/__state", "").await.text().await.unwrap();
    assert!(told.contains("Spicy") && !told.contains("SecurePass"), "{told}");
}

#[tokio::test]
async fn nobody_changes_anything_without_a_session_or_its_token() {
    let visit = Visit::new().await;
    let answer = visit.post(TAGS, "", "name=Spicy&color=%23ff0000").await;
    assert_eq!(answer.headers()[header::LOCATION], format!("/sign-in?next={TAGS}"));
    let cookie = visit.sign_in().await;
    visit.post(TAGS, &cookie, "csrf=guessed&name=Spicy&color=%23ff0000").await;
    assert_eq!(visit.get("/r/somebody-elses/tags", &cookie).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(visit.restaurant()["tags"], json!([]));
}

#[tokio::test]
async fn only_a_session_that_there_was_has_ended() {
    let visit = Visit::new().await;
    let page = async |cookie: &str| visit.get("/sign-in?next=/", cookie).await.text().await.unwrap();
    assert!(!page("").await.contains("has ended"));
    assert!(page("trattoria=of-yesterday").await.contains("has ended"));
}

#[tokio::test]
async fn a_fault_strikes_the_owner_it_is_for() {
    let visit = Visit::new().await;
    let fault = |owner: &str| -> Fault {
        serde_json::from_value(json!({ "kind": "error", "owner": owner, "path": "/tags" })).unwrap()
    };
    let cookie = visit.sign_in().await;
    visit.site.add_fault(fault("somebody@else.com"));
    assert_eq!(visit.post(TAGS, &cookie, "").await.status(), StatusCode::SEE_OTHER);
    visit.site.add_fault(fault("owner@restaurant.com"));
    assert_eq!(visit.post(TAGS, &cookie, "").await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(visit.post(TAGS, &cookie, "").await.status(), StatusCode::SEE_OTHER);
}
