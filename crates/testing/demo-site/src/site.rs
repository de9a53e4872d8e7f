//! The running site: what its parts share, and its two origins.

use crate::Error;
use crate::faults::Fault;
use crate::world::World;
use crate::{prepared, routes};
use axum::Router;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Somebody who has an account from the beginning.
#[derive(Debug, Clone)]
pub struct Owner {
    /// What they sign in with.
    pub email: String,
    /// And the password for it.
    pub password: String,
    /// The name of their restaurant.
    pub restaurant: String,
    /// Whether everything in it is set up but the last: guests cannot order yet.
    pub is_set_up: bool,
}

impl Default for Owner {
    /// The one that the documents use.
    fn default() -> Self {
        Owner {
            email: "owner@restaurant.com".into(),
            password: "SecurePass123!".into(),
            restaurant: "The Best Restaurant".into(),
            is_set_up: false,
        }
    }
}

impl Owner {
    /// One who only has to open the restaurant.
    #[must_use]
    pub fn ready() -> Self {
        Owner {
            email: "ready@restaurant.com".into(),
            restaurant: "The Ready Restaurant".into(),
            is_set_up: true,
            ..Owner::default()
        }
    }
}

/// How it behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who has an account.
    pub owners: Vec<Owner>,
    /// How long somebody who does nothing stays signed in.
    pub session_ttl: Duration,
    pub faults: Vec<Fault>,
}

impl Default for Options {
    fn default() -> Self {
        let session_ttl = Duration::from_secs(30 * 60);
        Options { owners: vec![Owner::default(), Owner::ready()], session_ttl, faults: Vec::new() }
    }
}

/// What every request sees.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    world: Mutex<World>,
    session_ttl: Duration,
    payments_port: u16,
}

impl Shared {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        // A request that panicked has changed one thing at most; the others go on.
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session_ttl(&self) -> Duration {
        self.0.session_ttl
    }

    pub(crate) fn payments_port(&self) -> u16 {
        self.0.payments_port
    }
}

/// Letters that nobody can guess.
pub(crate) fn token() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system gives random numbers");
    hex::encode(random)
}

/// A site that listens. Dropped, it stops.
#[derive(Debug)]
pub struct Site {
    shared: Shared,
    admin: SocketAddr,
    payments: SocketAddr,
    tasks: JoinSet<()>,
}

impl Site {
    /// Starts one: the restaurants' admin on the first listener, the payments company on the second.
    pub fn start(admin: TcpListener, payments: TcpListener, options: Options) -> Result<Self, Error> {
        let (admin_address, payments_address) = (admin.local_addr()?, payments.local_addr()?);
        let mut world = World::default();
        for Owner { email, password, restaurant, is_set_up } in &options.owners {
            let parts = if *is_set_up { prepared::Part::ALL } else { &[] };
            prepared::set_up(world.sign_up(email, password, restaurant), parts);
        }
        options.faults.into_iter().for_each(|fault| world.faults.add(fault));
        let shared = Shared(Arc::new(Inner {
            world: Mutex::new(world),
            session_ttl: options.session_ttl,
            payments_port: payments_address.port(),
        }));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(admin, routes::admin(shared.clone())));
        tasks.spawn(serve(payments, routes::payments(shared.clone())));
        Ok(Site { shared, admin: admin_address, payments: payments_address, tasks })
    }

    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Where the payments company listens.
    #[must_use]
    pub fn payments(&self) -> SocketAddr {
        self.payments
    }

    /// Lets something go wrong.
    pub fn add_fault(&self, fault: Fault) {
        self.shared.world().faults.add(fault);
    }

    /// What the owner with this e-mail address has stored.
    #[must_use]
    pub fn state(&self, email: &str) -> serde_json::Value {
        routes::state_of(&self.shared.world(), email)
    }

    /// Waits until a listener fails, which is for ever as a rule.
    pub async fn run(mut self) {
        self.tasks.join_next().await;
    }
}

async fn serve(listener: TcpListener, router: Router) {
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the demo site can no longer listen");
    }
}
