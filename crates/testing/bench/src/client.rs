//! Visitors of the upload service: connections that stay open, with as little work of their own as possible.

use anyhow::{Context as _, bail, ensure};
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A browser with a session.
pub(super) struct Visitor {
    address: SocketAddr,
    connection: BufReader<TcpStream>,
    cookie: String,
}

impl Visitor {
    /// One who gets a session.
    pub(super) async fn arrive(address: SocketAddr) -> anyhow::Result<Self> {
        let mut visitor = Visitor { address, connection: connect(address).await?, cookie: String::new() };
        let head = visitor.request("GET /api/jobs HTTP/1.1", "", &[]).await?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        visitor.cookie = cookie.and_then(|cookie| cookie.split(';').next()).context("no session")?.to_owned();
        Ok(visitor)
    }

    pub(super) async fn get(&mut self, path: &str) -> anyhow::Result<()> {
        let head = self.request(&format!("GET {path} HTTP/1.1"), "", &[]).await?;
        ensure!(
            head.starts_with("HTTP/1.1 200"),
            "{path} was answered with {}",
            head.lines().next().unwrap_or_default()
        );
        Ok(())
    }

    pub(super) async fn upload(&mut self, file: &[u8]) -> anyhow::Result<()> {
        let kind = "Content-Type: multipart/form-data; boundary=ODE\r\n";
        let front = b"--ODE\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n";
        let head =
            self.request("POST /api/upload HTTP/1.1", kind, &[front, file, b"\r\n--ODE--\r\n"]).await?;
        ensure!(
            head.starts_with("HTTP/1.1 201"),
            "an upload was answered with {}",
            head.lines().next().unwrap_or_default()
        );
        Ok(())
    }

    /// Asks for a script with an API key.
    pub(super) async fn ask(&mut self, name: &str, key: &str, body: &str) -> anyhow::Result<()> {
        let headers = format!("Authorization: Bearer {key}\r\nContent-Type: application/json\r\n");
        let line = format!("POST /v1/scripts/{name} HTTP/1.1");
        let head = self.request(&line, &headers, &[body.as_bytes()]).await?;
        ensure!(
            head.starts_with("HTTP/1.1 202"),
            "a script was answered with {}",
            head.lines().next().unwrap_or_default()
        );
        Ok(())
    }

    /// Sends a request and reads its answer to the end; answers the head.
    async fn request(&mut self, line: &str, headers: &str, body: &[&[u8]]) -> anyhow::Result<String> {
        let length: usize = body.iter().map(|part| part.len()).sum();
        let head = format!(
            "{line}\r\nHost: {}\r\nCookie: {}\r\nContent-Length: {length}\r\n{headers}\r\n",
            self.address, self.cookie
        );
        self.connection.write_all(head.as_bytes()).await?;
        for part in body {
            self.connection.write_all(part).await?;
        }
        let head = read_head(&mut self.connection).await?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let mut rest = vec![0; length.parse()?];
        self.connection.read_exact(&mut rest).await?;
        Ok(head)
    }

    /// Opens a stream of its own.
    pub(super) async fn listen(&self) -> anyhow::Result<Listener> {
        let mut connection = connect(self.address).await?;
        let head =
            format!("GET /api/stream HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", self.address, self.cookie);
        connection.write_all(head.as_bytes()).await?;
        let head = read_head(&mut connection).await?;
        ensure!(
            head.starts_with("HTTP/1.1 200"),
            "a stream was answered with {}",
            head.lines().next().unwrap_or_default()
        );
        let mut listener = Listener { connection };
        listener.hear("event: ready").await?;
        Ok(listener)
    }
}

/// Somebody who listens.
pub(super) struct Listener {
    connection: BufReader<TcpStream>,
}

impl Listener {
    /// Waits for a line that begins like this.
    pub(super) async fn hear(&mut self, wanted: &str) -> anyhow::Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.connection.read_line(&mut line).await? == 0 {
                bail!("the stream ended");
            }
            if line.starts_with(wanted) {
                return Ok(());
            }
        }
    }
}

async fn connect(address: SocketAddr) -> anyhow::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address).await.context(
        "No further connection can be opened. Raise the limit of open files (ulimit -n) and try again",
    )?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

async fn read_head(connection: &mut BufReader<TcpStream>) -> anyhow::Result<String> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if connection.read_line(&mut head).await? == 0 {
            bail!("the connection ended");
        }
        if head.len() - before == 2 {
            return Ok(head);
        }
    }
}
