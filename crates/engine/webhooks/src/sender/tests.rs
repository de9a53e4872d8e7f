//! Messages to a receiver of our own, on loopback.

use super::*;
use ode_job::{Claimed, Ended, Lane, NewJob, Owner, WorkerId};
use ode_store::{ClaimRequest, Config, Finish, OwnerKind};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// Answers each request with the next of these statuses, and keeps what came.
struct Receiver {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = heard.clone();
        std::thread::spawn(move || {
            for (stream, status) in listener.incoming().zip(statuses) {
                kept.lock().unwrap().push(answer(stream.unwrap(), *status));
            }
        });
        Receiver { url, heard }
    }
}

fn answer(mut stream: TcpStream, status: u16) -> String {
    let (mut heard, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut part).unwrap();
        heard.extend_from_slice(&part[..length]);
        if length == 0 || heard.ends_with(b"}") {
            break;
        }
    }
    write!(stream, "HTTP/1.1 {status} Said\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    String::from_utf8(heard).unwrap()
}

fn header<'a>(heard: &'a str, name: &str) -> &'a str {
    let line = heard.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {heard}"))
}

async fn store() -> (Store, Owner) {
    ode_store::declare(&[&ode_html::DECLARATION, &ode_script::DECLARATION]).unwrap();
    let store = Store::open(Config::new("sqlite::memory:")).await.unwrap();
    store.migrate_up().await.unwrap();
    let key = store.create_key(OwnerKind::Organisation, "acme", "").await.unwrap();
    (store, Owner::Organisation(key.key.owner_id))
}

/// A job of this owner that has ended, and wants to be told of at this address as well.
async fn ended(store: &Store, owner: Owner, url: Option<&str>, external_id: &str) {
    let mut input = json!({});
    if let Some(url) = url {
        input["webhook_url"] = url.into();
    }
    let mut job = NewJob::new(ode_html::machine::HTML, "html5", input).owned_by(owner);
    job.external_id = Some(external_id.into());
    ended_job(store, ode_html::machine::LANE, job).await;
}

async fn ended_job(store: &Store, lane: Lane, job: NewJob) {
    store.enqueue(job).await.unwrap();
    let (worker, lease) = (WorkerId(Uuid::new_v4()), Duration::from_secs(60));
    store.register(worker, "test", "0").await.unwrap();
    let request = ClaimRequest { lane, worker, count: 1, after: Uuid::nil(), lease, attempt_timeout: lease };
    let job: Claimed = store.claim(request).await.unwrap().remove(0);
    store
        .finish(vec![Finish { result: Some(json!({})), ..Finish::new(job, Ended::Succeeded) }])
        .await
        .unwrap();
}

fn sender(store: &Store) -> Sender {
    let guard = Guard::new(["127.0.0.1"]).unwrap();
    let address = |pipeline, path| JobAddress { pipeline, path };
    let addresses = vec![
        address(ode_html::machine::HTML, "/v1/jobs"),
        address(ode_script::machine::SCRIPT, "/v1/scripts/jobs"),
    ];
    Sender::new(store.clone(), Options { guard, pause: Duration::ZERO, addresses }).unwrap()
}

#[tokio::test]
async fn a_message_is_signed_sent_again_under_its_id_until_it_arrives_and_can_be_replayed() {
    let (store, owner) = store().await;
    let receiver = Receiver::start(&[500, 302, 204, 200]);
    store.add_endpoint(OwnerKind::Organisation, "acme", &receiver.url).await.unwrap();
    // The same address for this one job: it is told once.
    ended(&store, owner, Some(&receiver.url), "mine").await;
    let sender = sender(&store);
    for _ in 0..3 {
        assert_eq!(sender.send_due().await.unwrap(), 1);
    }
    assert_eq!(sender.send_due().await.unwrap(), 0, "it has arrived");
    let told = store.deliveries(None, None, 10).await.unwrap();
    assert_eq!(
        (told.len(), told[0].status.as_str(), told[0].attempts, told[0].answer),
        (1, "delivered", 3, Some(204))
    );
    assert_eq!(store.replay_deliveries(told[0].job_id.0).await.unwrap(), 1);
    assert_eq!(sender.send_due().await.unwrap(), 1);
    let heard = receiver.heard.lock().unwrap().clone();
    let (secret, _) = store.webhook_secrets(owner.key()).await.unwrap();
    let id = header(&heard[0], "webhook-id");
    assert_eq!(heard.len(), 4);
    for heard in &heard {
        let (seconds, body) = (header(heard, "webhook-timestamp"), heard.split("\r\n\r\n").nth(1).unwrap());
        assert_eq!(header(heard, "webhook-id"), id);
        assert_eq!(header(heard, "webhook-signature"), sign(&secret, id, seconds.parse().unwrap(), body));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["type"], &body["data"]["external_id"]), (&json!("job.completed"), &json!("mine")));
    }
}

#[tokio::test]
async fn a_message_leads_to_where_its_job_is_shown() {
    let (store, owner) = store().await;
    let receiver = Receiver::start(&[200, 200]);
    store.add_endpoint(OwnerKind::Organisation, "acme", &receiver.url).await.unwrap();
    ended(&store, owner, None, "one").await;
    let mut script = NewJob::new(ode_script::machine::SCRIPT, "greet", json!({})).owned_by(owner);
    script.external_id = Some("another".into());
    ended_job(&store, ode_script::machine::LANE, script).await;
    assert_eq!(sender(&store).send_due().await.unwrap(), 2);
    let told = store.deliveries(None, None, 10).await.unwrap();
    let heard = receiver.heard.lock().unwrap().join("\n");
    for delivery in told {
        let jobs = if delivery.pipeline == Some(ode_script::machine::SCRIPT) {
            "/v1/scripts/jobs"
        } else {
            "/v1/jobs"
        };
        let link = format!(r#""self":"{jobs}/{}""#, delivery.job_id);
        assert!(heard.contains(&link), "{link} is not in {heard}");
    }
}

#[tokio::test]
async fn nobody_inside_our_network_is_told_unless_it_is_allowed() {
    let (store, owner) = store().await;
    let receiver = Receiver::start(&[200]);
    ended(&store, owner, Some(&receiver.url), "one").await;
    let sender = Sender::new(store.clone(), Options::default()).unwrap();
    assert_eq!(sender.send_due().await.unwrap(), 1);
    let told = store.deliveries(None, Some("failed"), 10).await.unwrap();
    assert_eq!((told.len(), told[0].attempts), (1, 1), "it is not tried again");
    assert!(receiver.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_address_that_is_gone_is_given_up_and_one_that_is_silent_after_nine_tries() {
    let (store, owner) = store().await;
    let gone = Receiver::start(&[410]);
    ended(&store, owner, Some(&gone.url), "one").await;
    let sender = sender(&store);
    sender.send_due().await.unwrap();
    assert_eq!(store.deliveries(None, Some("failed"), 10).await.unwrap().len(), 1);
    let usual = Sender::new(store, Options::default()).unwrap();
    let pauses: Vec<Option<u64>> =
        (1..=TRIES_MAX).map(|tries| usual.pause(tries).map(|pause| pause.as_secs())).collect();
    let expected = [5, 20, 80, 320, 1280, 5120, 20_480, 81_920].map(Some);
    assert_eq!(pauses, [expected.as_slice(), &[None]].concat());
}

#[tokio::test]
async fn an_address_that_says_it_is_gone_is_told_nothing_until_it_is_added_again() {
    let (store, owner) = store().await;
    let receiver = Receiver::start(&[410, 200]);
    let add = || store.add_endpoint(OwnerKind::Organisation, "acme", &receiver.url);
    add().await.unwrap();
    ended(&store, owner, None, "first").await;
    let sender = sender(&store);
    assert_eq!(sender.send_due().await.unwrap(), 1);
    let told = store.deliveries(None, None, 10).await.unwrap();
    assert_eq!((told[0].status.as_str(), told[0].answer), ("failed", Some(410)));
    assert!(store.endpoints().await.unwrap()[0].gone_at.is_some());
    ended(&store, owner, None, "second").await;
    assert_eq!(store.deliveries(None, None, 10).await.unwrap().len(), 1, "nobody is told of the second");
    add().await.unwrap();
    let endpoints = store.endpoints().await.unwrap();
    assert_eq!((endpoints.len(), endpoints[0].gone_at), (1, None));
    ended(&store, owner, None, "third").await;
    assert_eq!(sender.send_due().await.unwrap(), 1);
    assert_eq!(receiver.heard.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn while_a_secret_is_replaced_messages_are_signed_with_both() {
    let (store, owner) = store().await;
    let receiver = Receiver::start(&[200, 200]);
    let (first, none) = store.webhook_secrets(owner.key()).await.unwrap();
    assert_eq!(none, None);
    let second = store.renew_webhook_secret(owner.key(), Duration::from_hours(1)).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(store.webhook_secrets(owner.key()).await.unwrap(), (second.clone(), Some(first.clone())));
    ended(&store, owner, Some(&receiver.url), "one").await;
    let sender = sender(&store);
    sender.send_due().await.unwrap();
    // Once it is not kept any more, the new one signs alone.
    let third = store.renew_webhook_secret(owner.key(), Duration::ZERO).await.unwrap();
    ended(&store, owner, Some(&receiver.url), "two").await;
    sender.send_due().await.unwrap();
    let heard = receiver.heard.lock().unwrap().clone();
    for (heard, secrets) in heard.iter().zip([vec![second, first], vec![third]]) {
        let (id, seconds) = (header(heard, "webhook-id"), header(heard, "webhook-timestamp"));
        let body = heard.split("\r\n\r\n").nth(1).unwrap();
        let signed = secrets.iter().map(|secret| sign(secret, id, seconds.parse().unwrap(), body));
        assert_eq!(header(heard, "webhook-signature"), signed.collect::<Vec<_>>().join(" "));
    }
}
