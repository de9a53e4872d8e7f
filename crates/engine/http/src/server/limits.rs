//! How often somebody may upload and ask, and what they are told when it was too often.

use crate::callers::caller::Caller;
use crate::server::problem::Problem;
use ode_job::ErrorCode;
use ode_store::{Error, Limiter, Rate};
use std::time::Duration;

/// How often one visitor may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebLimits {
    pub uploads_a_minute: u32,
    /// Requests of any kind a minute.
    pub polls_a_minute: u32,
}

impl Default for WebLimits {
    /// Ten files and a thousand requests.
    fn default() -> Self {
        WebLimits { uploads_a_minute: 10, polls_a_minute: 1000 }
    }
}

/// Counts requests.
#[derive(Debug)]
pub struct Limits {
    limiter: Limiter,
    limits: WebLimits,
}

impl Limits {
    pub fn open(limits: WebLimits, redis_url: Option<&str>) -> Result<Self, Error> {
        Ok(Limits { limiter: Limiter::open(redis_url)?, limits })
    }

    /// Counts a request.
    pub async fn poll(&self, caller: &Caller) -> Result<(), Problem> {
        let count = self.limits.polls_a_minute;
        let taken = self.limiter.take(&format!("poll:{}", caller.counted_as), Rate::a_minute(count)).await;
        taken.map_err(|wait| too_often(&format!("{count} requests"), wait))
    }

    pub async fn upload(&self, caller: &Caller) -> Result<(), Problem> {
        let count = self.limits.uploads_a_minute;
        let taken = self.limiter.take(&format!("upload:{}", caller.counted_as), Rate::a_minute(count)).await;
        taken.map_err(|wait| too_often(&format!("{count} uploads"), wait))
    }
}

fn too_often(limit: &str, wait: Duration) -> Problem {
    let seconds = wait.as_secs() + 1;
    let detail = format!("{limit} a minute are taken from one visitor. Try again in {seconds} s.");
    Problem::new(ErrorCode::RateLimited, detail).after(wait)
}
