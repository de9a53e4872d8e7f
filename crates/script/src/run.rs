//! Runs scripts.

use crate::Error;
use crate::order::{News, Order, Report};
use ode_child::{Program, Supervisor};
use std::path::{Path, PathBuf};

/// How scripts are run here.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where runs have their private directories while they last.
    pub data: PathBuf,
    /// Our own binary as the keeper of what scripts start.
    pub keeper: Program,
    /// The browser that scripts are given; found by itself if none is named.
    pub browser: Option<PathBuf>,
    /// Whether a browser may run without its own sandbox, which as root it cannot have.
    pub allow_no_sandbox: bool,
    /// How many processes of each kind wait for work; none wait at 0.
    pub spares: usize,
}

impl Settings {
    /// The usual: one spare, and the browser's sandbox.
    pub fn new(data: &Path, keeper: Program) -> Self {
        Self { data: data.to_owned(), keeper, browser: None, allow_no_sandbox: false, spares: 1 }
    }
}

/// Runs scripts. Cheap to clone; needs a tokio runtime.
#[derive(Clone)]
pub struct Runner {
    #[expect(dead_code, reason = "runs come with the next commit")]
    settings: Settings,
    #[expect(dead_code, reason = "runs come with the next commit")]
    supervisor: Supervisor,
}

impl Runner {
    /// Gets ready to run scripts, and ends what a runner that died has left here.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self { settings, supervisor: Supervisor::new()? })
    }

    /// Runs one attempt to its end, with every process of it gone and its directory removed.
    pub async fn run(
        &self,
        _order: Order,
        _told: impl FnMut(News) + Send,
        _stop: impl Future<Output = ()> + Send,
    ) -> Result<Report, Error> {
        Err(ode_child::Error::Closed.into())
    }
}
