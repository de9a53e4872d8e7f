//! A gateway that does as it is told, in the process of the test.

use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What it does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    /// Converts.
    Well,
    /// Converts after this long.
    Slow(Duration),
    /// Converts after this long, and that much longer for each megabyte.
    BySize(Duration, Duration),
    /// Answers this status.
    Says(u16),
    /// Answers with more than anybody should read.
    Endless,
    /// Converts the first of every two, and fails the second.
    Flapping,
    /// Is a language model, and doubts the total.
    Doubts,
}

/// A gateway on a port of its own; it ends with the test's process.
#[derive(Clone)]
pub(crate) struct StandIn {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

struct State {
    mood: Mood,
    calls: Vec<Instant>,
    running: usize,
    most: usize,
}

impl StandIn {
    pub(crate) fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = State { mood, calls: Vec::new(), running: 0, most: 0 };
        let standin = StandIn { url, state: Arc::new(Mutex::new(state)) };
        let server = standin.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        standin
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    /// When it was called.
    pub(crate) fn calls(&self) -> Vec<Instant> {
        self.state.lock().unwrap().calls.clone()
    }

    /// How many calls were under way at once, at most.
    pub(crate) fn most(&self) -> usize {
        self.state.lock().unwrap().most
    }

    fn serve(&self, mut stream: TcpStream) {
        let bytes = read_request(&mut stream);
        let (mood, number) = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(Instant::now());
            state.running += 1;
            state.most = state.most.max(state.running);
            (state.mood, state.calls.len())
        };
        // The other side may have hung up.
        let _ = answer(&mut stream, mood.for_a_request_of(bytes), number);
        self.state.lock().unwrap().running -= 1;
    }
}

impl Mood {
    fn for_a_request_of(self, bytes: usize) -> Self {
        match self {
            Mood::BySize(each, a_megabyte) => Mood::Slow(each + a_megabyte.mul_f64(bytes as f64 / 1e6)),
            other => other,
        }
    }
}

fn answer(stream: &mut TcpStream, mood: Mood, number: usize) -> std::io::Result<()> {
    const XML: &str = "<?xml version=\"1.0\"?><invoice><total>1.00</total></invoice>";
    match mood {
        Mood::Well => say(stream, 200, XML),
        Mood::Slow(wait) | Mood::BySize(wait, _) => {
            std::thread::sleep(wait);
            say(stream, 200, XML)
        }
        Mood::Says(status) => say(stream, status, "no"),
        Mood::Flapping if number % 2 == 1 => say(stream, 200, XML),
        Mood::Flapping => say(stream, 502, "no"),
        Mood::Doubts => {
            let findings = json!({ "findings": [{ "field": "gross_total", "message": "The page says 31.00.", "confidence": 0.8 }] });
            let answer = json!({ "choices": [{ "message": { "content": findings.to_string() } }] });
            say(stream, 200, &answer.to_string())
        }
        Mood::Endless => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\nconnection: close\r\n\r\n<a>"
            )?;
            let words = "word ".repeat(200_000);
            loop {
                stream.write_all(words.as_bytes())?;
            }
        }
    }
}

fn say(stream: &mut TcpStream, status: u16, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head =
        "content-type: application/xml\r\nconnection: close\r\node-mapping: standin_v1\r\node-pages: 2";
    write!(stream, "HTTP/1.1 {status} Word\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Reads the request to its end, by its length; answers how much it was.
fn read_request(stream: &mut TcpStream) -> usize {
    let mut request = Vec::new();
    let mut room = [0; 65_536];
    loop {
        let head = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if request.len() >= head + 4 + length.unwrap_or(0_usize) {
                return request.len();
            }
        }
        match stream.read(&mut room) {
            Ok(0) | Err(_) => return request.len(),
            Ok(count) => request.extend_from_slice(&room[..count]),
        }
    }
}
