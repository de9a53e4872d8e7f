//! Messages about ended jobs, as a receiver meets them: with the check of docs/service.md, and what `ode webhooks` shows.

use super::examples::blocks;
use super::{Site, key, pdf, request};
use crate::harness::Ode;
use crate::web::client::until;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Takes everything, and keeps it.
struct Receiver {
    url: String,
    heard: Arc<Mutex<Vec<Message>>>,
}

#[derive(Clone)]
struct Message {
    headers: Value,
    body: String,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                kept.lock().unwrap().push(take(stream.unwrap()));
            }
        });
        Receiver { url, heard }
    }

    /// The last of so many messages, once they are there.
    fn heard(&self, count: usize) -> Message {
        until("a message arrives", || self.heard.lock().unwrap().len() >= count);
        self.heard.lock().unwrap()[count - 1].clone()
    }
}

fn take(mut stream: TcpStream) -> Message {
    let (mut heard, mut part) = (Vec::new(), [0; 4096]);
    while !heard.ends_with(b"}}") {
        let length = stream.read(&mut part).unwrap();
        assert_ne!(length, 0, "it ends early");
        heard.extend_from_slice(&part[..length]);
    }
    stream.write_all(b"HTTP/1.1 204 Taken\r\nConnection: close\r\n\r\n").unwrap();
    let text = String::from_utf8(heard).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), json!(value))).collect();
    Message { headers: Value::Object(headers), body: body.to_owned() }
}

impl Message {
    fn id(&self) -> &str {
        self.headers["webhook-id"].as_str().unwrap()
    }

    /// What the check of the documents says of it.
    fn is_signed_with(&self, secret: &str) -> bool {
        let asks = "import json, sys\n\
                    secret, headers, body = json.load(sys.stdin)\n\
                    print(is_from_ode(secret, headers, body.encode()))";
        let code = format!("{}\n{asks}", blocks("python")[1]);
        let mut python = Command::new("python3");
        python.args(["-c", &code]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        let asked = json!([secret, self.headers, self.body]).to_string();
        python.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
        let said = python.wait_with_output().unwrap();
        assert!(said.status.success());
        said.stdout == b"True\n"
    }
}

#[test]
fn a_receiver_knows_our_messages_by_the_check_of_the_documents_and_by_their_names() {
    let ode = Ode::sqlite();
    let receiver = Receiver::start();
    let allow = ["--webhook-allow", "127.0.0.1"];
    let site = Site::start_with(&ode, &allow);
    key(&ode, "acme");
    ode.ok(["webhooks", "add", "--organisation", "acme", &receiver.url, allow[0], allow[1]]);
    let id = site.client.submitted(&request("one", &site.put("doc.pdf", &pdf("RE-1"))));
    let first = receiver.heard(1);
    let secret = |verb: &str| ode.ok(["webhooks", verb, "--organisation", "acme"]).trim().to_owned();
    let old = secret("secret");
    assert!(old.starts_with("whsec_") && first.is_signed_with(&old));
    let forged = Message { body: first.body.replace("completed", "failed"), ..first.clone() };
    assert!(!forged.is_signed_with(&old));
    // It has one name, wherever it is shown.
    let arrived = || {
        until("it is known to have arrived", || ode.json(["webhooks", "list"])[0]["status"] == "delivered");
    };
    arrived();
    let listed = ode.json(["webhooks", "list"]);
    assert_eq!((&listed[0]["id"], &listed[0]["job_id"]), (&json!(first.id()), &json!(id)));
    assert!(ode.ok(["webhooks", "list"]).contains(first.id()));
    assert_eq!(ode.ok(["webhooks", "replay", first.id()]), format!("{} is sent again.\n", first.id()));
    let again = receiver.heard(2);
    assert_eq!((again.id(), &again.body), (first.id(), &first.body));
    arrived();
    // While its secret is replaced, a receiver may know either.
    let new = secret("rotate");
    assert_eq!(secret("secret"), new);
    ode.ok(["webhooks", "replay", &id]);
    let both = receiver.heard(3);
    assert!(both.is_signed_with(&old) && both.is_signed_with(&new) && !first.is_signed_with(&new));
    ode.run(["webhooks", "rotate", "--organisation", "acme"]).assert_refused(&["--keep-hours 0"]);
    assert_eq!(secret("secret"), new);
}
