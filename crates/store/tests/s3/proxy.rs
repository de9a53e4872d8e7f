//! A proxy in front of a server that spoils requests as it is told.

use std::io::{Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    /// It passes.
    Fair,
    /// It is answered with this status, and the server never hears of it.
    Status(u16),
    /// Its answer takes this much longer.
    Slow(Duration),
    /// The server carries it out, and its answer is lost with the connection.
    LostBeforeAnswer,
    /// So many bytes of the answer pass, then the connection is lost.
    CutAfter(usize),
}

struct State {
    /// Requests that still pass before the mood begins.
    pass: usize,
    mood: Mood,
    /// Requests that are spoilt before it passes.
    left: usize,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    pub(crate) fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { pass: 0, mood: Mood::Fair, left: 0 }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || serve(client, upstream, &state));
            }
        });
        Proxy { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Spoils the next so many requests.
    pub(crate) fn set(&self, mood: Mood, count: usize) {
        self.set_after(0, mood, count);
    }

    /// The same after so many that pass.
    pub(crate) fn set_after(&self, pass: usize, mood: Mood, count: usize) {
        *self.state.lock().unwrap() = State { pass, mood, left: count };
    }
}

/// What becomes of the request that begins now.
fn next(state: &Mutex<State>) -> Mood {
    let mut state = state.lock().unwrap();
    if state.pass > 0 {
        state.pass -= 1;
        return Mood::Fair;
    }
    if state.left == 0 {
        return Mood::Fair;
    }
    state.left = state.left.saturating_sub(1);
    state.mood
}

/// One request after another, until either side has enough.
fn serve(mut client: TcpStream, upstream: SocketAddr, state: &Mutex<State>) {
    let Ok(mut server) = TcpStream::connect(upstream) else { return };
    while let Some(request) = message(&mut client) {
        let mood = next(state);
        if let Mood::Status(status) = mood {
            // Nobody minds if it is not heard.
            let _ =
                write!(client, "HTTP/1.1 {status} Spoilt\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            break;
        }
        if server.write_all(&request).is_err() {
            break;
        }
        let is_head = request.starts_with(b"HEAD ");
        let Some(answer) = (if is_head { head(&mut server) } else { message(&mut server) }) else { break };
        let passes = match mood {
            Mood::LostBeforeAnswer => break,
            Mood::CutAfter(bytes) if bytes < answer.len() => {
                let _ = client.write_all(&answer[..bytes]);
                break;
            }
            Mood::Slow(pause) => {
                std::thread::sleep(pause);
                answer
            }
            Mood::Fair | Mood::Status(_) | Mood::CutAfter(_) => answer,
        };
        if client.write_all(&passes).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// A message's head, as bytes.
fn head(from: &mut impl Read) -> Option<Vec<u8>> {
    let (mut bytes, mut one) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") {
        if from.read(&mut one).ok()? == 0 {
            return None;
        }
        bytes.push(one[0]);
    }
    Some(bytes)
}

/// A whole message: its head, and as much body as that announces.
fn message(from: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = head(from)?;
    let text = String::from_utf8_lossy(&bytes).to_lowercase();
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.trim().to_owned())
    };
    if field("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        chunks(from, &mut bytes)?;
    } else if let Some(length) = field("content-length").and_then(|length| length.parse::<usize>().ok()) {
        let start = bytes.len();
        bytes.resize(start + length, 0);
        from.read_exact(&mut bytes[start..]).ok()?;
    }
    Some(bytes)
}

fn chunks(from: &mut impl Read, bytes: &mut Vec<u8>) -> Option<()> {
    loop {
        let (mut line, mut one) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") {
            from.read_exact(&mut one).ok()?;
            line.push(one[0]);
        }
        let size = std::str::from_utf8(&line).ok()?.trim().split(';').next()?.to_owned();
        let size = usize::from_str_radix(&size, 16).ok()?;
        let mut chunk = vec![0; size + 2];
        from.read_exact(&mut chunk).ok()?;
        bytes.extend_from_slice(&line);
        bytes.extend_from_slice(&chunk);
        if size == 0 {
            return Some(());
        }
    }
}
