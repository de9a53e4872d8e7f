//! Who sees what: sessions, keys, and requests that other sites make a browser send.

use super::client::{Client, Makes, pdf, until, web, web_with, work};
use crate::harness::{Ode, on_both};
use crate::serve::Serving;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;

on_both!(
    a_foreign_job_answers_exactly_like_one_that_does_not_exist,
    a_users_earlier_anonymous_jobs_become_theirs,
    keys_of_one_organisation_see_the_same_jobs_and_no_others,
    a_revoked_key_is_refused_within_a_second,
    two_processes_know_the_same_session,
);

/// Every address of the API that names a job.
const OF_A_JOB: [(&str, &str); 12] = [
    ("GET", ""),
    ("GET", "/events"),
    ("GET", "/checks"),
    ("GET", "/revisions"),
    ("POST", "/revisions"),
    ("GET", "/download"),
    ("POST", "/retry"),
    ("POST", "/convert"),
    ("POST", "/cancel"),
    ("POST", "/stop"),
    ("POST", "/link"),
    ("DELETE", ""),
];

fn a_foreign_job_answers_exactly_like_one_that_does_not_exist(ode: &Ode) {
    let serving = web(ode);
    let owner = Client::browser(&serving);
    let (done, waiting) = (owner.uploaded("a.pdf", &pdf(1)), owner.uploaded("b.pdf", &pdf(2)));
    work(ode, Makes::Xml("<a/>"));
    let key = ode.json(["keys", "create", "--organisation", "other"])["key"].as_str().unwrap().to_owned();
    let others = [Client::browser(&serving), Client::stranger(&serving), Client::program(&serving, &key)];
    let nobodys = "01890000-0000-7000-8000-000000000000";
    for other in &others {
        assert_eq!(other.list()["jobs"], json!([]));
        for (method, of) in OF_A_JOB {
            let ask = |id: &str| {
                let answer = other.send(method, &format!("/api/jobs/{id}{of}"), "", b"");
                (answer.code(), answer.body)
            };
            let expected = ask(nobodys);
            assert_eq!(expected.0, 404, "{method} {of}: {expected:?}");
            for job in [&done, &waiting] {
                for name in ["id", "reference"] {
                    let name = job[name].as_str().unwrap();
                    assert_eq!(ask(name), expected, "{method} {of} of {name}");
                }
            }
        }
    }
    // Neither is what is no text at all.
    for address in ["/api/jobs/%ff", "/api/jobs/%ff/events", "/jobs/%C3"] {
        others[0].get(address).assert_problem(404, "NOT_FOUND");
    }
    // All of them are there for their owner.
    let id = done["id"].as_str().unwrap();
    for (method, of) in OF_A_JOB {
        let answer = owner.send(method, &format!("/api/jobs/{id}{of}"), "", b"");
        assert_ne!(answer.code(), 404, "{method} {of}: {answer:?}");
    }
}

#[test]
fn every_address_of_a_job_is_in_the_matrix() {
    let ode = Ode::new();
    let serving = web(&ode);
    let api = Client::stranger(&serving).get("/api/openapi.json").json();
    let mut described = BTreeSet::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        if let Some(of) = path.strip_prefix("/api/jobs/{id}") {
            described.extend(
                item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), of.to_owned())),
            );
        }
    }
    let tested = OF_A_JOB.iter().map(|(method, of)| ((*method).to_owned(), (*of).to_owned())).collect();
    assert_eq!(described, tested);
}

fn a_users_earlier_anonymous_jobs_become_theirs(ode: &Ode) {
    let serving = web(ode);
    let browser = Client::browser(&serving);
    let (done, waiting) = (browser.uploaded("a.pdf", &pdf(1)), browser.uploaded("b.pdf", &pdf(2)));
    work(ode, Makes::Xml("<a/>"));
    let key = ode.json(["keys", "create", "--user", "ada"])["key"].as_str().unwrap().to_owned();
    let program = Client::program(&serving, &key);
    assert_eq!(program.list()["jobs"], json!([]));
    let mut both = browser.clone();
    both.headers.extend(program.headers.clone());
    assert_eq!(ids(&both.list()), ids_of([&waiting, &done]));
    assert_eq!(ids(&program.list()), ids_of([&waiting, &done]), "with the key alone from now on");
    assert_eq!(ids(&browser.list()), ids_of([&waiting, &done]), "and in the browser still");
    let download = format!("/api/jobs/{}/download", done["id"].as_str().unwrap());
    assert_eq!(program.get(&download).body, "<a/>");
    // What was uploaded before is known again.
    let again = program.upload(&[("a.pdf", &pdf(1))], &[]);
    assert_eq!((again.code(), &again.json()["job"]["id"]), (200, &done["id"]), "{again:?}");
    // A key of an organisation takes nothing over: it is not the person at the browser.
    let key = ode.json(["keys", "create", "--organisation", "acme"])["key"].as_str().unwrap().to_owned();
    let mut both = browser.clone();
    both.headers.extend(Client::program(&serving, &key).headers);
    assert_eq!(both.list()["jobs"], json!([]));
}

fn ids(list: &Value) -> Vec<Value> {
    list["jobs"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect()
}

fn ids_of(jobs: [&Value; 2]) -> Vec<Value> {
    jobs.iter().map(|job| job["id"].clone()).collect()
}

fn keys_of_one_organisation_see_the_same_jobs_and_no_others(ode: &Ode) {
    let serving = web(ode);
    let key = |kind: &str, name: &str| {
        let made = ode.json(["keys", "create", kind, name]);
        Client::program(&serving, made["key"].as_str().unwrap())
    };
    let (one, two) = (key("--organisation", "acme"), key("--organisation", "acme"));
    let (other, user) = (key("--organisation", "other"), key("--user", "acme"));
    let job = one.uploaded("a.pdf", &pdf(1));
    assert_eq!(two.list()["jobs"][0]["id"], job["id"]);
    assert_eq!((&other.list()["jobs"], &user.list()["jobs"]), (&json!([]), &json!([])));
    assert_eq!(one.get("/api/jobs").header("set-cookie"), "", "a program needs no cookie");
    let listed = ode.json(["keys", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 4);
    assert!(listed[0]["used_at"].is_string() && listed[2]["used_at"].is_string(), "{listed}");
    assert!(!listed.to_string().contains("secret"), "{listed}");
}

fn a_revoked_key_is_refused_within_a_second(ode: &Ode) {
    let serving = web(ode);
    let made = ode.json(["keys", "create", "--user", "ada", "--name", "laptop"]);
    let (text, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let program = Client::program(&serving, text);
    assert_eq!(program.get("/api/jobs").code(), 200);
    // The table of people has a word for each.
    let table = ode.ok(["keys", "list"]);
    assert!(table.contains("user ada") && table.contains("laptop") && table.contains("valid"), "{table}");
    ode.ok(["keys", "revoke", id]);
    let revoked = Instant::now();
    until("it is refused", || program.get("/api/jobs").code() == 401);
    assert!(revoked.elapsed().as_millis() < 1500, "{:?}", revoked.elapsed());
    let refused = program.get("/api/jobs");
    refused.assert_problem(401, "UNAUTHORIZED");
    assert_eq!(refused.header("www-authenticate"), "Bearer");
    assert!(ode.ok(["keys", "list"]).contains("revoked"));
    // One that is mistyped, unknown or no key at all is told the same.
    let mistyped = format!("{}0", &text[..text.len() - 1]);
    for wrong in [mistyped.as_str(), "ode_", "", "hunter2"] {
        let answer = Client::program(&serving, wrong).get("/api/jobs");
        assert_eq!((answer.code(), &answer.body), (401, &refused.body), "{wrong}");
    }
    let basic = Client::stranger(&serving).with("Authorization", "Basic YTpi").get("/api/jobs");
    assert_eq!(basic.code(), 401);
    ode.run(["keys", "revoke", "nonsense"]);
    // The key itself is nowhere in the database.
    let secret = text.rsplit('_').next().unwrap();
    let database = std::fs::read(ode.data().join("ode.db")).unwrap_or_default();
    let log = std::fs::read(ode.data().join("ode.db-wal")).unwrap_or_default();
    for bytes in [database, log] {
        assert!(!String::from_utf8_lossy(&bytes).contains(&secret[..40]));
    }
}

fn two_processes_know_the_same_session(ode: &Ode) {
    let (one, two) = (web(ode), web(ode));
    let browser = Client::browser(&one);
    let job = browser.uploaded("a.pdf", &pdf(1));
    let elsewhere = Client { headers: browser.headers.clone(), ..Client::stranger(&two) };
    assert_eq!(elsewhere.list()["jobs"][0]["id"], job["id"]);
    work(ode, Makes::Xml("<a/>"));
    let made = browser.post(&format!("/api/jobs/{}/link", job["id"].as_str().unwrap())).json();
    assert_eq!(Client::stranger(&two).get(made["url"].as_str().unwrap()).body, "<a/>");
}

fn cookie(serving: &Serving, more: &[(&str, &str)]) -> String {
    let client =
        more.iter().fold(Client::stranger(serving), |client, (name, value)| client.with(name, value));
    client.get("/api/jobs").header("set-cookie").to_owned()
}

#[test]
fn the_cookie_is_for_our_pages_alone() {
    let ode = Ode::new();
    let serving = web(&ode);
    let plain = cookie(&serving, &[]);
    assert!(plain.starts_with("ode_session="), "{plain}");
    for word in ["; Path=/", "; HttpOnly", "; SameSite=Lax", "; Max-Age="] {
        assert!(plain.contains(word), "{plain}");
    }
    assert!(!plain.contains("Secure") && !plain.contains("Domain"), "{plain}");
    assert!(
        !cookie(&serving, &[("X-Forwarded-Proto", "https")]).contains("Secure"),
        "nobody vouches for that header"
    );
    // Who has one gets no other, and a value that was not made here is none.
    let value = plain.split(';').next().unwrap();
    assert_eq!(cookie(&serving, &[("Cookie", value)]), "");
    let chosen = format!("ode_session=1.{}.{}", "a".repeat(64), "b".repeat(64));
    assert!(cookie(&serving, &[("Cookie", &chosen)]).starts_with("ode_session="));
}

#[test]
fn over_tls_the_cookie_is_bound_to_this_host() {
    let ode = Ode::new();
    let serving = web_with(&ode, &["--public-url", "https://ode.example/"]);
    let cookie_of = cookie(&serving, &[]);
    assert!(cookie_of.starts_with("__Host-ode_session=") && cookie_of.contains("; Secure"), "{cookie_of}");
    // One that was set without TLS is not taken.
    let value = cookie_of.split(';').next().unwrap();
    assert_eq!(cookie(&serving, &[("Cookie", value)]), "");
    let weak = value.replace("__Host-", "");
    assert!(cookie(&serving, &[("Cookie", &weak)]).starts_with("__Host-"));
    let answer = Client::stranger(&serving).get("/api/nonsense");
    assert!(answer.header("strict-transport-security").starts_with("max-age="), "{answer:?}");
    let behind = Ode::new();
    let serving = web_with(&behind, &["--behind-proxy"]);
    assert!(cookie(&serving, &[("X-Forwarded-Proto", "https")]).contains("Secure"));
}

#[test]
fn another_site_cannot_make_a_browser_change_anything() {
    let ode = Ode::new();
    let serving = web_with(&ode, &["--public-url", "http://ode.example"]);
    let browser = Client::browser(&serving);
    let job = browser.uploaded("a.pdf", &pdf(1));
    let (cancel, host) = (format!("/api/jobs/{}/cancel", job["id"].as_str().unwrap()), serving.address());
    let foreign = [
        ("Origin", "https://evil.example".to_owned()),
        ("Origin", "null".to_owned()),
        ("Origin", format!("http://evil.{host}")),
        ("Origin", format!("http://{host}.evil.example")),
        ("Origin", "http://ode.example.evil.example".to_owned()),
        ("Sec-Fetch-Site", "cross-site".to_owned()),
        ("Sec-Fetch-Site", "same-site".to_owned()),
    ];
    for (name, value) in &foreign {
        let from_there = browser.with(name, value);
        from_there.post(&cancel).assert_problem(403, "CROSS_SITE");
        from_there.upload(&[("b.pdf", &pdf(2))], &[]).assert_problem(403, "CROSS_SITE");
        assert_eq!(from_there.get("/api/jobs").code(), 200, "reading changes nothing");
    }
    assert_eq!(browser.list()["jobs"][0]["status"], "queued");
    assert_eq!(browser.list()["jobs"].as_array().unwrap().len(), 1);
    // Nobody can make a browser send a key.
    let key = ode.json(["keys", "create", "--user", "ada"])["key"].as_str().unwrap().to_owned();
    let program = Client::program(&serving, &key).with("Origin", "https://evil.example");
    assert_eq!(program.upload(&[("b.pdf", &pdf(2))], &[]).code(), 201);
    // Our own pages can, by either of our names.
    for origin in [format!("http://{host}"), "http://ode.example".to_owned()] {
        let ours = browser.with("Origin", &origin).with("Sec-Fetch-Site", "same-origin");
        assert_ne!(ours.post(&cancel).code(), 403, "{origin}");
    }
    assert_eq!(browser.list()["jobs"][0]["error"]["code"], "CANCELLED");
}

#[test]
fn every_answer_tells_browsers_what_not_to_do() {
    let ode = Ode::new();
    let serving = web(&ode);
    let client = Client::stranger(&serving);
    let answers = [
        client.get("/"),
        client.get("/api/jobs"),
        client.get("/api/nonsense"),
        client.get("/api/jobs/nonsense"),
        client.get("/api/healthz"),
        client.get("/api/docs"),
        client.post("/api/healthz"),
        client.post("/api/upload"),
    ];
    for answer in answers {
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{answer:?}");
        let policy = answer.header("content-security-policy");
        for rule in ["base-uri 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(rule), "{answer:?}");
        }
        assert!(!answer.header("cache-control").is_empty(), "{answer:?}");
        if answer.code() >= 400 {
            assert_eq!(answer.header("content-type"), "application/problem+json", "{answer:?}");
        }
    }
}
