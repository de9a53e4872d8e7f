//! What polling costs the database, and that nobody waits for news because of it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_http::intake::Wanted;
use ode_http::{Intake, JobKind, Routes, Site, WebLimits, WebSettings};
use ode_job::{NewJob, SourceDocument};
use ode_store::{Blobs, BlobsConfig, Config, Store};
use ode_xml::machine::XML;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A site of the test's own, in this process, so that its statements can be counted.
struct Here {
    store: Store,
    address: SocketAddr,
    _files: TempDir,
}

/// A pipeline that takes every document.
fn documents() -> JobKind {
    let job = |document: SourceDocument, wanted: Wanted<'_>| {
        NewJob::new(XML, wanted.mapping, document.into_input())
    };
    JobKind { intake: Some(Intake::new(&[], job)), ..JobKind::new(XML) }
}

async fn serve(lists_kept_for: Duration) -> Here {
    ode_store::declare(&[
        &ode_xml::DECLARATION,
        &ode_html::DECLARATION,
        &ode_print::DECLARATION,
        &ode_script::DECLARATION,
    ])
    .unwrap();
    let store = Store::open(Config::new("sqlite::memory:")).await.unwrap();
    store.migrate_up().await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobsConfig::Local(files.path().to_owned())).unwrap();
    let limits = WebLimits { uploads_a_minute: 1000, polls_a_minute: 1_000_000 };
    let settings = WebSettings { lists_kept_for, limits, ..WebSettings::default() };
    let type_default = Some("documents".to_owned());
    let routes = Routes { kind: Some(documents()), type_default, ..Routes::default() };
    let site = Site::open(store.clone(), blobs, settings, vec![routes]).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(site.serve(listener, std::future::pending()));
    Here { store, address, _files: files }
}

impl Here {
    async fn send(&self, head: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let head = format!("{head}\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn cookie(&self) -> String {
        let answer = self.send("GET /api/jobs HTTP/1.1", b"").await;
        let line = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        line.split(';').next().unwrap().to_owned()
    }

    async fn list(&self, cookie: &str) -> String {
        self.send(&format!("GET /api/jobs HTTP/1.1\r\nCookie: {cookie}"), b"").await
    }

    async fn upload(&self, cookie: &str, number: usize) {
        let pdf = format!("%PDF-1.7\n{number}\nstartxref\n9\n%%EOF\n");
        let body = format!(
            "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n{pdf}\r\n--B--\r\n"
        );
        let kind = "Content-Type: multipart/form-data; boundary=B";
        let head = format!("POST /api/upload HTTP/1.1\r\nCookie: {cookie}\r\n{kind}");
        let answer = self.send(&head, body.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// Polls for a while as a page with a few tabs does, and answers what it cost.
    async fn statements_of_polling(&self) -> u64 {
        let cookie = self.cookie().await;
        self.upload(&cookie, 0).await;
        let before = self.store.statements_sent();
        for _ in 0..100 {
            assert!(self.list(&cookie).await.starts_with("HTTP/1.1 200"));
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        self.store.statements_sent() - before
    }
}

#[tokio::test]
async fn polling_costs_the_database_at_least_eighty_percent_less() {
    let (plain, kept) = (serve(Duration::ZERO).await, serve(WebSettings::default().lists_kept_for).await);
    let cost = plain.statements_of_polling().await;
    let cost_kept = kept.statements_of_polling().await;
    assert!(cost >= 100, "each poll read the database: {cost}");
    assert!(cost_kept * 5 <= cost, "{cost_kept} statements against {cost}");
    eprintln!("100 polls in 4 s: {cost} statements without keeping lists, {cost_kept} with");
}

#[tokio::test]
async fn a_change_shows_at_once_although_lists_are_kept() {
    let here = serve(Duration::from_secs(3600)).await;
    let cookie = here.cookie().await;
    for number in 0..3 {
        here.upload(&cookie, number).await;
        let list = here.list(&cookie).await;
        assert!(list.contains(&format!("\"active_count\":{}", number + 1)), "{list}");
    }
}

#[tokio::test]
async fn many_who_ask_at_once_cost_one_reading() {
    let here = serve(Duration::from_secs(3600)).await;
    let cookie = here.cookie().await;
    here.upload(&cookie, 0).await;
    // Let the reader of the journal notice, so that only lists are counted.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = here.store.statements_sent();
    let lists = (0..50).map(|_| here.list(&cookie));
    for list in futures_util::future::join_all(lists).await {
        assert!(list.contains("\"active_count\":1"), "{list}");
    }
    let cost = here.store.statements_sent() - before;
    assert!(cost <= 5, "fifty lists cost {cost} statements");
}
