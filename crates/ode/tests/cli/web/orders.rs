//! Orders over HTTP and on the command line, against a simulated provider in a process of its own.

use super::client::{Client, until};
use crate::harness::{Ode, bare, on_both};
use crate::serve::{Answer, Serving};
use hmac::{Hmac, KeyInit as _, Mac as _};
use ode_job::{Artifact, Ended, JobId, NewJob, WorkerId};
use ode_store::{ClaimRequest, Finish};
use serde_json::{Value, json};
use sha2::Sha256;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_print_is_ordered_once_shipped_and_delivered,
    only_an_organisation_orders_and_only_within_its_limit,
    a_map_is_exported_and_ordered_in_one_request,
    a_map_is_exported_and_ordered_in_one_command,
    a_person_signs_in_with_a_key_and_orders_on_the_page,
    the_page_of_maps_tells_an_organisation_how_its_orders_stand,
    an_order_that_is_not_what_was_asked_for_is_never_confirmed,
    an_order_that_was_too_dear_goes_on_with_a_higher_limit,
    a_print_of_somebody_else_is_ordered_by_nobody_else,
    events_come_in_by_one_door_and_under_one_key,
    a_map_that_shows_nothing_of_its_features_says_so,
    a_map_is_ordered_only_as_what_the_provider_prints_from_its_size,
    what_events_miss_is_found_by_asking,
    a_refused_token_makes_orders_wait_and_fails_none,
    the_queue_of_orders_is_seen_to_twice_at_once,
    both_sides_are_compared,
);

const JSON: &str = "application/json";

/// An installation with a provider.
pub(super) struct Shop<'a> {
    pub(super) ode: &'a Ode,
    sim: Serving,
}

impl<'a> Shop<'a> {
    pub(super) fn open(ode: &'a Ode, more: &[&str]) -> Self {
        let mut command = bare();
        command.args(["printful-sim", "--listen", "127.0.0.1:0", "--rate", "0", "--file-delay", "0.01"]);
        let sim = Serving::start(command.args(more));
        ode.json(["keys", "create", "--organisation", "acme"]);
        ode.ok(["print", "cap", "acme", "--order", "60.00", "--month", "6000.00"]);
        Shop { ode, sim }
    }

    pub(super) fn sim(&self) -> Client {
        Client::stranger(&self.sim)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.sim.address())
    }

    pub(super) fn fault(&self, fault: &str) {
        let answer = self.sim().send("POST", "/sim/faults", "text/plain", fault.as_bytes());
        assert_eq!(answer.code(), 204, "{answer:?}");
    }

    pub(super) fn act(&self, job: JobId, what: &str) {
        let answer = self.sim().post(&format!("/sim/orders/@{}/{what}", job.0.simple()));
        assert_eq!(answer.code(), 204, "{answer:?}");
    }

    /// How often the ledger tells this of a job.
    pub(super) fn told(&self, job: JobId, entry: &str) -> usize {
        let ledger = self.sim().get("/sim/ledger").json();
        let name = job.0.simple().to_string();
        let is_it = |line: &&Value| line["external_id"] == name.as_str() && line["entry"] == entry;
        ledger.as_array().unwrap().iter().filter(is_it).count()
    }

    /// A command that knows the provider.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.ode.command(args);
        command.env("ODE_PRINTFUL_TOKEN", "token").env("ODE_PRINTFUL_URL", self.url());
        command
    }

    pub(super) fn worker(&self, base: &str, more: &[&str]) -> Serving {
        let mut args = vec!["worker", "--export-base", base, "--retry-base", "0.1"];
        args.extend(more);
        Serving::start(self.command(&args).env("ODE_LOG", "error"))
    }

    /// The web side, which the provider tells of events, and its address.
    pub(super) fn web(&self) -> (Serving, String) {
        let listen = free_address();
        let base = format!("http://{listen}");
        let hook = format!("{base}/webhooks/printful");
        let secret = crate::harness::Ran::of(&mut self.command(&["print", "webhook", &hook]));
        assert_eq!(secret.code, Some(0), "{secret:?}");
        let mut web = self.ode.command(["web", "--listen", &listen, "--uploads-a-minute", "1000"]);
        (Serving::start(web.env("ODE_PRINTFUL_WEBHOOK_SECRET", secret.stdout.trim())), base)
    }

    /// A print that was exported, by nobody in particular: before there is a worker, which would try to draw it.
    pub(super) fn exported(&self) -> JobId {
        self.ode.with_store(async |store| {
            let id =
                store.enqueue(NewJob::new(ode_print::machine::PRINT, "map", json!({}))).await.unwrap().id();
            let worker = WorkerId(Uuid::new_v4());
            store.register(worker, "test", "0").await.unwrap();
            let (lane, lease) = (ode_print::machine::EXPORT, Duration::from_secs(60));
            let request =
                ClaimRequest { lane, worker, count: 1, after: Uuid::nil(), lease, attempt_timeout: lease };
            let job = store.claim(request).await.unwrap().remove(0);
            let artifact = Artifact {
                role: "export".into(),
                name: "map.png".into(),
                storage: "local".into(),
                path: format!("{id}.png"),
                content_type: "image/png".into(),
                bytes: 1,
                sha256: format!("{:064x}", id.0.as_u128()),
            };
            let finish = Finish { artifacts: vec![artifact], ..Finish::new(job, Ended::Succeeded) };
            store.finish(vec![finish]).await.unwrap();
            store.leave(worker).await.unwrap();
            id
        })
    }

    /// Asks for the order of a print on the command line.
    pub(super) fn order(&self, job: JobId) {
        let path = self.ode.path("order.json");
        std::fs::write(&path, order().to_string()).unwrap();
        let path = path.to_str().unwrap();
        self.ode.ok(["print", "order", &job.to_string(), "--organisation", "acme", "--order", path]);
    }

    pub(super) fn status(&self, job: JobId) -> Value {
        crate::harness::Ran::of(self.ode.command(["job:status", &job.to_string()]).arg("--json")).json()
    }

    #[track_caller]
    pub(super) fn until(&self, job: JobId, state: &str) -> Value {
        until(&format!("{job} to be {state}"), || {
            let status = self.status(job);
            let is_over = status["state"] == "order_failed" && state != "order_failed";
            assert!(!is_over, "{status}");
            status["state"] == state
        });
        self.status(job)
    }
}

pub(super) fn order() -> Value {
    json!({
        "recipient": { "name": "Ada Lovelace", "address1": "12 Main St", "city": "Springfield",
            "state_code": "IL", "country_code": "US", "zip": "62701" },
        "variant_id": 1,
    })
}

pub(super) fn post(client: &Client, path: &str, body: &Value) -> Answer {
    client.send("POST", path, JSON, body.to_string().as_bytes())
}

/// An address nobody listens on yet.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn a_print_is_ordered_once_shipped_and_delivered(ode: &Ode) {
    let shop = Shop::open(ode, &[]);
    let (web, base) = shop.web();
    let _worker = shop.worker(&base, &[]);
    let key = ode.json(["keys", "create", "--organisation", "acme"])["key"].as_str().unwrap().to_owned();
    let client = Client::program(&web, &key);
    let spec = json!({ "data": { "schema": 1, "page": { "size": "18x24", "dpi": 36 }, "base": { "detail": "110m" } } });
    let exported = post(&client, "/api/export", &spec).json();
    let id = exported["printJobId"].as_str().unwrap();
    let job = JobId(id.parse().unwrap());
    // Asked for before the map is drawn, twice, and then for another one.
    let path = format!("/api/print-jobs/{id}/order");
    client.get(&path).assert_problem(404, "NOT_FOUND");
    let asked = post(&client, &path, &order());
    assert_eq!((asked.code(), &asked.json()["phase"]), (201, &json!("none")), "{asked:?}");
    assert_eq!(post(&client, &path, &order()).code(), 200);
    let mut other = order();
    other["quantity"] = 2.into();
    post(&client, &path, &other).assert_problem(409, "CONFLICT");
    shop.until(job, "ordered");
    assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1));
    let placed = client.get(&path).json();
    assert_eq!((&placed["phase"], &placed["cost"]), (&json!("confirmed"), &json!("18.49")), "{placed}");
    assert!(placed["provider_order_id"].as_i64().is_some(), "{placed}");
    // An event that nobody signed changes nothing; those that Printful signs make it look.
    let forged = client.with("x-pf-webhook-signature", &"0".repeat(64));
    forged.send("POST", "/webhooks/printful", JSON, b"{}").assert_problem(401, "UNAUTHORIZED");
    shop.act(job, "ship");
    until("the shipment to be seen", || client.get(&path).json()["shipped_at"].is_string());
    assert_eq!(shop.status(job)["state"], "ordered", "sent is not delivered");
    shop.act(job, "deliver");
    shop.until(job, "fulfilled");
    assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1));
}

fn only_an_organisation_orders_and_only_within_its_limit(ode: &Ode) {
    let shop = Shop::open(ode, &[]);
    let web = super::client::web(ode);
    let spec = json!({ "data": { "schema": 1, "page": { "size": "18x24", "dpi": 36 } } });
    let of = |client: &Client| {
        let exported = post(client, "/api/export", &spec).json();
        format!("/api/print-jobs/{}/order", exported["printJobId"].as_str().unwrap())
    };
    let browser = Client::browser(&web);
    post(&browser, &of(&browser), &order()).assert_problem(403, "FORBIDDEN");
    let key = |kind: &str, name: &str| {
        let key = ode.json(["keys", "create", kind, name])["key"].as_str().unwrap().to_owned();
        Client::program(&web, &key)
    };
    let (user, poor, rich) =
        (key("--user", "ada"), key("--organisation", "poor"), key("--organisation", "acme"));
    post(&user, &of(&user), &order()).assert_problem(403, "FORBIDDEN");
    post(&poor, &of(&poor), &order()).assert_problem(403, "SPEND_CAP");
    post(&rich, &of(&poor), &order()).assert_problem(404, "NOT_FOUND");
    let wrong = |field: &str, value: Value| {
        let mut wrong = order();
        wrong[field] = value;
        post(&rich, &of(&rich), &wrong).json()
    };
    for (refused, path, says) in [
        (post(&rich, &of(&rich), &json!([])).json(), json!(null), "Send a JSON object"),
        (wrong("quantity", json!("two")), json!("quantity"), "quantity: write a whole number from 0"),
        (wrong("cost_max", json!("lots")), json!("cost_max"), "is not an amount. Write it like 12.50."),
        (wrong("colour", json!("red")), json!("colour"), "colour: there is no such field."),
    ] {
        assert_eq!(refused["path"], path, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(says), "{refused}");
    }
    post(&rich, &of(&rich), &json!({ "variant_id": 1 })).assert_problem(400, "INVALID");
    ode.ok(["print", "cap", "poor", "--order", "20.00", "--month", "30.00"]);
    assert_eq!(post(&poor, &of(&poor), &order()).code(), 201);
    post(&poor, &of(&poor), &order()).assert_problem(403, "SPEND_CAP");
    drop(shop);
}

fn a_person_signs_in_with_a_key_and_orders_on_the_page(ode: &Ode) {
    const FORM: &str = "application/x-www-form-urlencoded";
    let shop = Shop::open(ode, &["--no-fetch"]);
    let web = super::client::web(ode);
    let made = ode.json(["keys", "create", "--organisation", "acme"]);
    let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let page = Client::stranger(&web).with("Accept", "text/html");
    let wrong = page.send("POST", "/sign-in", FORM, b"key=ode_nothing");
    assert!(wrong.code() == 401 && wrong.body.contains("paste the whole of it"), "{wrong:?}");
    let signed = page.send("POST", "/sign-in", FORM, format!("key={key}").as_bytes());
    let cookie = signed.header("set-cookie");
    assert!(
        signed.code() == 303 && cookie.contains("HttpOnly") && !cookie.contains(&key[17..]),
        "{signed:?}"
    );
    let acme = page.with("Cookie", cookie.split(';').next().unwrap());
    assert!(acme.get("/maps").body.contains("Signed in as acme"));
    let spec = json!({ "data": ordered_map()["data"] });
    let id_of_job = post(&acme, "/api/export", &spec).json()["printJobId"].as_str().unwrap().to_owned();
    let path = format!("/print-jobs/{id_of_job}/order");
    assert!(acme.get(&path).body.contains("Poster, 18 × 24 in"));
    let form = "name=Ada&company=&address1=12+Main+St&city=Springfield&country_code=us&zip=62701&variant_id=1&quantity=1";
    let order = |client: &Client| client.send("POST", &path, FORM, form.as_bytes()).code();
    assert_eq!(order(&acme.with("Sec-Fetch-Site", "cross-site")), 403);
    assert_eq!(order(&page), 404, "a stranger");
    assert_eq!((order(&acme), order(&acme)), (303, 303), "asked for twice, ordered once");
    let other = form.replace("variant_id=1", "variant_id=2");
    assert_eq!(acme.send("POST", &path, FORM, other.as_bytes()).code(), 409);
    let job = JobId(id_of_job.parse().unwrap());
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    shop.until(job, "ordered");
    assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1));
    assert_eq!(acme.post("/sign-out").header("set-cookie").split(';').next(), Some("ode_sign_in="));
    ode.ok(["keys", "revoke", id]);
    assert!(page.get("/maps").body.contains("/sign-in"));
    assert!(acme.get("/maps").body.contains("/sign-in"), "the key was revoked");
}

/// A small map, and an order of its print.
fn ordered_map() -> Value {
    json!({
        "data": { "schema": 1, "page": { "size": "18x24", "dpi": 36 }, "base": { "detail": "110m" },
            "title": { "text": "Our <Journeys>" } },
        "order": order(),
    })
}

fn a_map_is_exported_and_ordered_in_one_request(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let web = super::client::web_with(ode, &["--uploads-a-minute", "1000"]);
    let key = |kind: &str, name: &str| {
        let key = ode.json(["keys", "create", kind, name])["key"].as_str().unwrap().to_owned();
        Client::program(&web, &key)
    };
    let (poor, rich) = (key("--organisation", "poor"), key("--organisation", "acme"));
    // Whoever may not order has printed nothing either.
    let others =
        [(Client::browser(&web), "FORBIDDEN"), (key("--user", "ada"), "FORBIDDEN"), (poor, "SPEND_CAP")];
    for (client, code) in &others {
        post(client, "/api/export", &ordered_map()).assert_problem(403, code);
        assert_eq!(client.get("/api/printable-maps").json()["printable_maps"], json!([]));
        assert_eq!(client.get("/api/print-jobs").json()["print_jobs"], json!([]));
    }
    let mut wrong = ordered_map();
    wrong["order"]["recipient"]["country_code"] = "Germany".into();
    post(&rich, "/api/export", &wrong).assert_problem(400, "INVALID");
    wrong["order"] = json!({ "variant_id": 1 });
    post(&rich, "/api/export", &wrong).assert_problem(400, "INVALID");
    let mut larger = ordered_map();
    larger["order"]["variant_id"] = 2.into();
    let refused = post(&rich, "/api/export", &larger);
    refused.assert_problem(400, "INVALID");
    let told = refused.json()["detail"].to_string();
    assert!(told.contains("variant 2 is printed from 24 x 36 in"), "{told}");
    let once = rich.with("Idempotency-Key", "one");
    let first = post(&once, "/api/export", &ordered_map());
    assert_eq!(first.code(), 201, "{first:?}");
    let again = post(&once, "/api/export", &ordered_map());
    assert_eq!((again.code(), again.json()), (200, first.json()));
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    let id = first.json()["printJobId"].as_str().unwrap().to_owned();
    let job = JobId(id.parse().unwrap());
    shop.until(job, "ordered");
    assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1));
    let shown = rich.get(&format!("/api/print-jobs/{id}")).json();
    assert_eq!(
        (&shown["state"], &shown["order"]["phase"]),
        (&json!("ordered"), &json!("confirmed")),
        "{shown}"
    );
    let listed = rich.get("/api/print-jobs?state=ordered").json();
    assert_eq!(listed["print_jobs"][0]["order"]["external_id"], job.0.simple().to_string(), "{listed}");
}

fn a_map_is_exported_and_ordered_in_one_command(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let (map, ask) = (ode.path("map.json"), ode.path("order.json"));
    std::fs::write(&map, ordered_map()["data"].to_string()).unwrap();
    std::fs::write(&ask, order().to_string()).unwrap();
    let (map, ask) = (map.to_str().unwrap(), ask.to_str().unwrap());
    let export = ["print", "export", map, "--organisation", "acme", "--order", ask, "--key", "one"];
    ode.ok(export.iter().chain(&["--dry-run"]));
    assert_eq!(ode.json(["export:queue"]), json!([]), "nothing was made");
    ode.run(["print", "export", map, "--order", ask]).assert_refused(&["--organisation"]);
    ode.run(["print", "export", map, "--organisation", "nobody"])
        .assert_refused(&["nobody", "ode keys create"]);
    let start = || shop.command(&export).arg("--json").output().unwrap();
    let (first, second) = std::thread::scope(|scope| {
        let both = [scope.spawn(start), scope.spawn(start)];
        let [first, second] = both.map(|one| crate::harness::Ran::from(one.join().unwrap()).json());
        (first, second)
    });
    assert_eq!(first, second, "one request, twice at once");
    let again = ode.run(export.iter().chain(&["--dry-run"]));
    assert!(again.code == Some(0) && again.stderr.contains("has made JOB_"), "{again:?}");
    let other = ode.path("other.json");
    std::fs::write(&other, r#"{"schema": 1, "page": {"size": "18x24", "dpi": 72}}"#).unwrap();
    let reused =
        ["print", "export", other.to_str().unwrap(), "--organisation", "acme", "--key", "one", "--dry-run"];
    ode.run(reused).assert_refused(&["was used for a different request"]);
    let job = JobId(first["printJobId"].as_str().unwrap().parse().unwrap());
    ode.ok(["print", "reprint", first["printableMapId"].as_str().unwrap(), "--dry-run"]);
    ode.ok(["print", "reprint", &job.reference(), "--dry-run"]);
    ode.run(["print", "reprint", "the last one"]).assert_wrong_use(&["is no map", "JOB_"]);
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    shop.until(job, "ordered");
    assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1));
}

fn the_page_of_maps_tells_an_organisation_how_its_orders_stand(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch", "--fault", "dear"]);
    let web = super::client::web_with(ode, &["--uploads-a-minute", "1000"]);
    let key = ode.json(["keys", "create", "--organisation", "acme"])["key"].as_str().unwrap().to_owned();
    let client = Client::program(&web, &key).with("Accept", "text/html");
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    let made = post(&client, "/api/export", &ordered_map()).json();
    let job = JobId(made["printJobId"].as_str().unwrap().parse().unwrap());
    shop.until(job, "order_failed");
    let page = client.get("/maps").body;
    for words in
        ["Our &#60;Journeys&#62;", "18 × 24 in", "Order failed", "Needs attention", "Retry", "Download"]
    {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    assert!(!Client::browser(&web).get("/maps").body.contains("Journeys"), "somebody else's map");
    ode.ok(["print", "cap", "acme", "--order", "2000", "--month", "6000"]);
    ode.ok(["print", "order", &job.to_string(), "--cost-max", "2000"]);
    until("the order", || client.get("/maps").body.contains("Ordered"));
    let page = client.get("/maps").body;
    assert!(page.contains("USD") && !page.contains("Needs attention"), "{page}");
}

fn an_order_that_is_not_what_was_asked_for_is_never_confirmed(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let cases = [
        ("foreign", "ORDER_MISMATCH"),
        ("dear", "COST_ABOVE_CAP"),
        ("cancelled", "ORDER_CANCELLED"),
        ("file-failed@0.1", "FILE_REFUSED"),
    ];
    let jobs = cases.map(|_| shop.exported());
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    for ((fault, code), job) in cases.into_iter().zip(jobs) {
        shop.fault(fault);
        shop.order(job);
        let status = shop.until(job, "order_failed");
        assert_eq!(status["error_code"], code, "{status}");
        assert_eq!(shop.told(job, "charge"), 0, "{fault}");
        assert_eq!(shop.told(job, "create"), 1, "{fault}");
    }
    let listed = ode.json(["print", "status", "--attention"]);
    assert_eq!(listed.as_array().unwrap().len(), cases.len(), "{listed}");
}

fn an_order_that_was_too_dear_goes_on_with_a_higher_limit(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch", "--fault", "dear"]);
    let (job, other) = (shop.exported(), shop.exported());
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    shop.order(job);
    shop.until(job, "order_failed");
    ode.run(["print", "order", &job.to_string(), "--cost-max", "2000"]).assert_refused(&["60.00"]);
    // A dry run says the same, and changes nothing.
    let dry = ["print", "order", &job.to_string(), "--dry-run", "--cost-max"];
    ode.run(dry.iter().chain(&["2000"])).assert_refused(&["60.00"]);
    assert!(ode.ok(dry.iter().chain(&["59"])).contains("Nothing was changed"));
    let status = shop.status(job);
    assert_eq!(
        (&status["state"], &status["order"]["cost_max"]),
        (&json!("order_failed"), &json!("60.00")),
        "{status}"
    );
    let watched = ode.run(["job:status", &job.to_string(), "--watch"]);
    assert!(
        watched.code == Some(1) && watched.stdout.contains("order draft: The order costs"),
        "{watched:?}"
    );
    // Another order has some of the month's amount, so that both together are too much.
    shop.order(other);
    ode.ok(["print", "cap", "acme", "--order", "2000", "--month", "2000"]);
    ode.run(["print", "order", &job.to_string(), "--cost-max", "2000"])
        .assert_refused(&["of 2000.00 for 30 days"]);
    ode.ok(["print", "cap", "acme", "--order", "2000", "--month", "6000"]);
    ode.ok(["print", "order", &job.to_string(), "--cost-max", "2000"]);
    until("the order", || shop.status(job)["state"] == "ordered");
    assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1), "the same draft");
    ode.run(dry.iter().chain(&["59"])).assert_refused(&["is ordered", "print status"]);
    let steps = ode.run(["print", "status", &job.to_string()]).stdout;
    assert!(steps.contains("create_sent (fence "), "{steps}");
}

fn a_print_of_somebody_else_is_ordered_by_nobody_else(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let web = super::client::web_with(ode, &["--uploads-a-minute", "1000"]);
    let key = ode.json(["keys", "create", "--organisation", "other"])["key"].as_str().unwrap().to_owned();
    ode.ok(["print", "cap", "other", "--order", "60", "--month", "600"]);
    let other = Client::program(&web, &key);
    let map = json!({ "data": ordered_map()["data"] });
    let theirs = post(&other, "/api/export", &map).json()["printJobId"].as_str().unwrap().to_owned();
    let session = post(&Client::browser(&web), "/api/export", &map).json();
    let session = session["printJobId"].as_str().unwrap();
    let key = ode.json(["keys", "create", "--organisation", "acme"])["key"].as_str().unwrap().to_owned();
    let acme = Client::program(&web, &key);
    let ask = ode.path("order.json");
    std::fs::write(&ask, order().to_string()).unwrap();
    for job in [theirs.as_str(), session] {
        let path = format!("/api/print-jobs/{job}/order");
        post(&acme, &path, &order()).assert_problem(404, "NOT_FOUND");
        acme.get(&path).assert_problem(404, "NOT_FOUND");
        for act in ["retry", "reprint"] {
            acme.post(&format!("/api/print-jobs/{job}/{act}")).assert_problem(404, "NOT_FOUND");
        }
        for dry in [&[][..], &["--dry-run"]] {
            let asked = ["print", "order", job, "--organisation", "acme", "--order", ask.to_str().unwrap()];
            ode.run(asked.iter().chain(dry)).assert_refused(&["is not a print of acme"]);
        }
    }
    assert_eq!(ode.json(["print", "status"]), json!([]), "nothing was ordered");
    let caps = ode.run(["print", "cap"]).stdout;
    assert!(caps.contains("acme") && caps.contains("other"), "{caps}");
    drop(shop);
}

fn events_come_in_by_one_door_and_under_one_key(ode: &Ode) {
    const HOOK: &str = "/webhooks/printful";
    let shop = Shop::open(ode, &["--no-fetch"]);
    let closed = super::client::web(ode);
    Client::stranger(&closed).send("POST", HOOK, JSON, b"{}").assert_problem(404, "NOT_FOUND");
    ode.run(["print", "webhook", "https://ode.example/webhooks/printful"])
        .assert_refused(&["ODE_PRINTFUL_TOKEN"]);
    let mut asked = shop.command(&["print", "webhook", "https://ode.example/webhooks/printful"]);
    crate::harness::Ran::of(asked.env("ODE_PRINTFUL_URL", "http://127.0.0.1:9"))
        .assert_refused(&["did not answer clearly", "Run it again"]);
    let secret = "00ff".repeat(16);
    let mut web = ode.command(["web", "--listen", "127.0.0.1:0"]);
    let web = Serving::start(web.env("ODE_PRINTFUL_WEBHOOK_SECRET", &secret));
    let provider = Client::stranger(&web);
    let sent = |body: &[u8], signed: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&[0, 255].repeat(16)).unwrap();
        mac.update(signed);
        let signature = hex::encode(mac.finalize().into_bytes());
        provider.with("x-pf-webhook-signature", &signature).send("POST", HOOK, JSON, body)
    };
    let event = br#"{"type":"order_updated","occurred_at":"2026-01-01T00:00:00Z","data":{"order":{"id":1,"external_id":"x"}}}"#;
    provider.send("POST", HOOK, JSON, event).assert_problem(401, "UNAUTHORIZED");
    sent(event, b"another body").assert_problem(401, "UNAUTHORIZED");
    // An event that was heard before, or is about nothing of ours, is no reason to have it sent again.
    assert_eq!((sent(event, event).code(), sent(event, event).code()), (200, 200));
    sent(b"no JSON", b"no JSON").assert_problem(400, "INVALID");
    let large = vec![b' '; (1 << 20) + 1];
    sent(&large, &large).assert_problem(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(provider.get(HOOK).code(), 405);
}

fn a_map_that_shows_nothing_of_its_features_says_so(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let web = super::client::web_with(ode, &["--uploads-a-minute", "1000"]);
    let client = Client::browser(&web);
    let spec = json!({ "schema": 1, "page": { "size": "A6", "dpi": 72 }, "base": { "detail": "110m" },
        "projection": { "name": "orthographic", "center": [0, 0] },
        "layers": [{ "data": { "type": "FeatureCollection", "features": [{ "type": "Feature", "properties": {},
            "geometry": { "type": "Point", "coordinates": [179, 0] } }] } }] });
    let words = "Nothing of the layers is on the map";
    let says_so = |told: &Value| told["warnings"][0].as_str().is_some_and(|told| told.contains(words));
    let made = post(&client, "/api/export", &json!({ "data": spec })).json();
    assert!(says_so(&made), "{made}");
    let map = ode.path("map.json");
    std::fs::write(&map, spec.to_string()).unwrap();
    let dry = ode.run(["print", "export", map.to_str().unwrap(), "--dry-run"]);
    assert!(dry.code == Some(0) && dry.stderr.contains(words), "{dry:?}");
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    let id = made["printJobId"].as_str().unwrap();
    until("the note", || says_so(&client.get(&format!("/api/print-jobs/{id}")).json()));
    assert!(says_so(&client.get("/api/print-jobs").json()["print_jobs"][0]));
    assert!(client.with("Accept", "text/html").get("/maps").body.contains(words));
    assert!(says_so(&ode.json(["job:status", id])));
}

/// Of products that ODE does not know, the provider is asked before anything is sent.
fn a_map_is_ordered_only_as_what_the_provider_prints_from_its_size(ode: &Ode) {
    let faults = ["500-before:catalog", "garbage:catalog", "403:catalog"].map(|fault| ["--fault", fault]);
    let shop = Shop::open(ode, &[&["--no-fetch"], faults.as_flattened()].concat());
    let (map, ask) = (ode.path("map.json"), ode.path("order.json"));
    let (map, ask) = (map.to_str().unwrap(), ask.to_str().unwrap());
    let cases = [("12x18", 4, ""), ("12x18", 3, "FILE_REFUSED"), ("A2", 5, ""), ("A2", 77, "ORDER_REFUSED")];
    let ordered_as = |size: &str, variant: i64| {
        let page = json!({ "size": size, "dpi": 36 });
        std::fs::write(map, json!({ "schema": 1, "page": page, "base": { "detail": "110m" } }).to_string())
            .unwrap();
        let mut order = order();
        order["variant_id"] = variant.into();
        std::fs::write(ask, order.to_string()).unwrap();
        let made = ode.json(["print", "export", map, "--organisation", "acme", "--order", ask]);
        JobId(made["printJobId"].as_str().unwrap().parse().unwrap())
    };
    let jobs = cases.map(|(size, variant, _)| ordered_as(size, variant));
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    for ((size, variant, code), job) in cases.into_iter().zip(jobs) {
        let is_well = code.is_empty();
        let status = shop.until(job, if is_well { "ordered" } else { "order_failed" });
        let count = usize::from(is_well);
        assert_eq!(
            (shop.told(job, "create"), shop.told(job, "charge")),
            (count, count),
            "{size} as {variant}"
        );
        assert_eq!(status["error_code"].as_str().unwrap_or_default(), code, "{status}");
    }
    shop.fault("400:catalog");
    let refused = ordered_as("24x36", 2);
    assert_eq!(shop.until(refused, "order_failed")["error_code"], "ORDER_REFUSED");
    let listed = ode.json(["print", "status", "--attention"]).to_string();
    let called_for = [
        "made for 12 x 18 in, and variant 3 is printed from 24 x 20 in",
        "has no variant 77",
        "refuses the order: This call is refused",
    ];
    for words in called_for {
        assert!(listed.contains(words), "{words} is not in {listed}");
    }
    let mut order = order();
    order["variant_id"] = 77.into();
    std::fs::write(ask, order.to_string()).unwrap();
    let last = jobs[3].to_string();
    let dry = ["print", "order", &last, "--organisation", "acme", "--order", ask, "--dry-run"];
    crate::harness::Ran::of(&mut shop.command(&dry)).assert_refused(&["Printful has no variant 77"]);
}

fn what_events_miss_is_found_by_asking(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let (job, other) = (shop.exported(), shop.exported());
    let _worker = shop.worker("http://127.0.0.1:9", &["--order-look", "0.2"]);
    shop.order(job);
    shop.until(job, "ordered");
    shop.act(job, "cancel");
    until("the cancellation to be seen", || {
        ode.json(["print", "status", "--attention"]).as_array().is_some_and(|orders| orders.len() == 1)
    });
    shop.order(other);
    shop.until(other, "ordered");
    shop.act(other, "ship");
    shop.act(other, "deliver");
    shop.until(other, "fulfilled");
}

fn a_refused_token_makes_orders_wait_and_fails_none(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch", "--fault", "401:any:2", "--fault", "403"]);
    let jobs = [shop.exported(), shop.exported()];
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    jobs.iter().for_each(|job| shop.order(*job));
    for job in jobs {
        shop.until(job, "ordered");
        assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1));
    }
}

fn the_queue_of_orders_is_seen_to_twice_at_once(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let (job, bare) = (shop.exported(), shop.exported());
    shop.order(job);
    let dry = ode.json(["print:queue", "--dry-run"]);
    assert_eq!(dry.as_array().unwrap().len(), 2, "{dry}");
    let start = || shop.command(&["print:queue", "--json"]).spawn().unwrap();
    let mut killed = start();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut both = [start(), start()];
    both.iter_mut().for_each(|one| assert!(one.wait().unwrap().success()));
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    let watched = ode.ok(["print:queue", "--watch"]);
    assert!(watched.contains("no order asked for"), "{watched}");
    shop.until(job, "ordered");
    assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 1));
    assert_eq!(shop.status(bare)["state"], "export_complete");
    let line = ode.ok(["job:status", &job.to_string(), "--watch"]);
    assert!(line.contains("ordered, order confirmed"), "{line}");
}

fn both_sides_are_compared(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let job = shop.exported();
    let _worker = shop.worker("http://127.0.0.1:9", &[]);
    shop.order(job);
    shop.until(job, "ordered");
    let reconcile = || crate::harness::Ran::of(shop.command(&["print", "reconcile"]).arg("--json"));
    let agreed = reconcile();
    assert_eq!((agreed.code, agreed.json()), (Some(0), json!([])), "{agreed:?}");
    // One that nobody here knows of, and one that is gone there.
    let mut foreign = order();
    foreign["external_id"] = "somebody-elses".into();
    foreign["items"] =
        json!([{ "variant_id": 1, "quantity": 1, "files": [{ "url": "https://example.com/a.png" }] }]);
    let token = shop.sim().with("Authorization", "Bearer token");
    assert_eq!(post(&token, "/orders", &foreign).code(), 200);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(post(&token, "/orders/@somebody-elses/confirm", &json!({})).code(), 200);
    shop.act(job, "cancel");
    let found = reconcile();
    assert_eq!(found.code, Some(1), "{found:?}");
    let told = found.json().to_string();
    assert!(told.contains("somebody-elses") && told.contains(&job.to_string()), "{told}");
}
