//! Connections with bounds: how many there are, and how long a peer may take to say what it wants and to hear the
//! answer. `axum::serve` has none of these.

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};

/// What connections may use.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// At the same time; further ones wait with the system.
    pub connections: usize,
    /// For the head of a request, and so also for staying silent between two.
    pub header_read: Duration,
    /// For what is under way when we are asked to stop; then it is cut off.
    pub grace: Duration,
}

/// Serves until `stop` is done, then lets requests that are under way end, within the grace period.
pub async fn serve(listener: TcpListener, router: Router, bounds: Bounds, stop: impl Future<Output = ()>) {
    let free = Arc::new(Semaphore::new(bounds.connections));
    let (stopping, stopped) = watch::channel(());
    let mut open = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let (stream, peer, place) = tokio::select! {
            accepted = accept(&listener, &free) => accepted,
            () = &mut stop => break,
        };
        while open.try_join_next().is_some() {}
        let service = WithPeer { router: TowerToHyperService::new(router.clone()), peer: Peer(peer.ip()) };
        open.spawn(converse(stream, service, bounds.header_read, stopped.clone(), place));
    }
    drop((listener, stopping));
    let ended = async { while open.join_next().await.is_some() {} };
    if timeout(bounds.grace, ended).await.is_err() {
        tracing::warn!("some requests did not end in time and were cut off");
        open.shutdown().await;
    }
}

/// Who is at the other end of the connection: perhaps a proxy.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// The routes, for requests of one peer.
struct WithPeer {
    router: TowerToHyperService<Router>,
    peer: Peer,
}

impl Service<Request<Incoming>> for WithPeer {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.router.call(request)
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    /// Out of file descriptors, say: it passes as others end, and asking at once would only burn the processor.
    const PAUSE: Duration = Duration::from_millis(200);
    loop {
        let place = free.clone().acquire_owned().await.expect("this semaphore is never closed");
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, place),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers on one connection until either side has had enough.
async fn converse(
    stream: TcpStream,
    service: WithPeer,
    header_read: Duration,
    mut stopped: watch::Receiver<()>,
    _place: OwnedSemaphorePermit,
) {
    // Answers are written whole, so that waiting for more to send only costs time. It works without.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_read)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        // Only ever ends with the sender being dropped.
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// A peer that takes none of our answer for this long is gone, or wants us to hold it for ever.
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// How long and how much is still read, and dropped, after the answer: a peer that is still sending what was refused
/// would otherwise be reset before it has read why.
const LINGER_MAX: Duration = Duration::from_millis(500);
const LINGER_BYTES_MAX: usize = 16 << 20;

/// A stream that gives up on a peer that does not read, and lets one that does not listen finish.
struct Patient {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
    lingering: Option<Pin<Box<Sleep>>>,
    lingered_bytes: usize,
}

impl Patient {
    fn new(stream: TcpStream) -> Self {
        Patient { stream, stalled: None, lingering: None, lingered_bytes: 0 }
    }

    fn written(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_STALL_MAX)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, data);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let lingering = this.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER_MAX)));
        let mut room = [0; 16 << 10];
        while lingering.as_mut().poll(cx).is_pending() && this.lingered_bytes < LINGER_BYTES_MAX {
            let mut read = ReadBuf::new(&mut room);
            // Whether the peer ends in order or not no longer matters.
            if ready!(Pin::new(&mut this.stream).poll_read(cx, &mut read)).is_err()
                || read.filled().is_empty()
            {
                break;
            }
            this.lingered_bytes += read.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}
