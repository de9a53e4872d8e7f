//! A proxy in front of a server that speaks HTTP. It spoils requests as it is told.

use std::io::{Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A request that waits for longer was forgotten.
const HELD_MAX: Duration = Duration::from_secs(120);

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mood {
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
    /// It waits at the door until it is released, and then passes.
    Held,
}

struct State {
    /// Requests whose head does not contain this pass whatever the mood; in small letters.
    about: String,
    /// Requests that still pass before the mood begins.
    pass: usize,
    mood: Mood,
    /// Requests that are spoilt before it passes.
    left: usize,
    /// Requests that wait at the door.
    held: usize,
    /// How often those were released.
    releases: usize,
}

/// What the threads of a proxy share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// It ends with the process.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts one in front of this address.
    pub fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { about: String::new(), pass: 0, mood: Mood::Fair, left: 0, held: 0, releases: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let proxy = Proxy { address, shared: shared.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(client, upstream, &shared));
            }
        });
        proxy
    }

    /// Where it is reached.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Spoils the next so many requests.
    pub fn set(&self, mood: Mood, count: usize) {
        self.set_after(0, mood, count);
    }

    /// The same after so many that pass.
    pub fn set_after(&self, pass: usize, mood: Mood, count: usize) {
        let mut state = self.shared.state.lock().unwrap();
        state.about.clear();
        (state.pass, state.mood, state.left) = (pass, mood, count);
    }

    /// Spoils the next so many requests whose head contains this text, whether its letters are small or not.
    pub fn set_for(&self, about: &str, mood: Mood, count: usize) {
        let mut state = self.shared.state.lock().unwrap();
        state.about = about.to_lowercase();
        (state.pass, state.mood, state.left) = (0, mood, count);
    }

    /// Returns once a request waits at the door.
    pub fn wait_for_held(&self) {
        let state = self.shared.state.lock().unwrap();
        let waited =
            self.shared.changed.wait_timeout_while(state, HELD_MAX, |state| state.held == 0).unwrap();
        assert!(!waited.1.timed_out(), "no request came to be held");
    }

    /// Lets those that wait at the door pass, and those that come.
    pub fn release(&self) {
        self.set(Mood::Fair, 0);
        self.shared.state.lock().unwrap().releases += 1;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// Waits at the door; false if nobody let it pass.
    fn hold(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let releases = state.releases;
        state.held += 1;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, HELD_MAX, |state| state.releases == releases);
        let (mut state, waited) = waited.unwrap();
        state.held -= 1;
        !waited.timed_out()
    }
}

/// What becomes of the request that begins now.
fn next(shared: &Shared, request: &[u8]) -> Mood {
    let mut state = shared.state.lock().unwrap();
    let head = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(request.len());
    if !String::from_utf8_lossy(&request[..head]).to_lowercase().contains(&state.about) {
        return Mood::Fair;
    }
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
fn serve(mut client: TcpStream, upstream: SocketAddr, shared: &Shared) {
    let Ok(mut server) = TcpStream::connect(upstream) else { return };
    while let Some(request) = message(&mut client) {
        let mood = next(shared, &request);
        if mood == Mood::Held && !shared.hold() {
            break;
        }
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
            Mood::Fair | Mood::Held | Mood::Status(_) | Mood::CutAfter(_) => answer,
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
