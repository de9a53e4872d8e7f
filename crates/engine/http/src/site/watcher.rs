//! The listener for operators: `/metrics` for Prometheus, and `/healthz` with all that the public is not told.
//!
//! It asks nobody who they are. It belongs on an address that only those reach who may know.

use crate::jobs::seen::Seen;
use crate::server::connections::{self, Bounds};
use crate::server::problem::Problem;
use crate::site::health::{self, CHECK_TIMEOUT};
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ode_job::Pipeline;
use ode_metrics::{Family, gauge};
use ode_store::disk::Watermark;
use ode_store::{Blobs, Finding, LiveJobs, Overview, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// What was seen is told for this long before the database is asked again: reading it reads all that is under way.
const FRESH_FOR: Duration = Duration::from_secs(2);

/// Looks at an installation for those who watch it.
pub struct Watcher {
    pub store: Store,
    blobs: Blobs,
    disk: Watermark,
    redis_url: Option<String>,
    seen: Seen<Look>,
    files_seen: Seen<Option<String>>,
}

/// What a look showed.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// What goes on, where the database could say.
    pub overview: Option<Arc<Overview>>,
    /// Why Redis does not answer, where there should be one and it does not.
    redis_trouble: Option<String>,
}

impl Watcher {
    /// Watches this store, these files and their disk, and Redis where there is one.
    #[must_use]
    pub fn new(store: Store, blobs: Blobs, disk: Watermark, redis_url: Option<String>) -> Self {
        let (seen, files_seen) = (Seen::new(FRESH_FOR), Seen::new(FRESH_FOR));
        Watcher { store, blobs, disk, redis_url, seen, files_seen }
    }

    /// How things are, as of a moment ago. Many who ask at once cause one look.
    pub async fn look(&self) -> Look {
        let look = async {
            let (overview, redis_trouble) = tokio::join!(self.overview(), self.redis_trouble());
            Look { overview, redis_trouble }
        };
        self.seen.get(look).await
    }

    /// What is wrong with the file store, as of a moment ago: finding out writes a file, and anybody may ask.
    pub async fn files_trouble(&self) -> Option<String> {
        self.files_seen.get(health::trouble("files", self.blobs.check())).await
    }

    async fn overview(&self) -> Option<Arc<Overview>> {
        match tokio::time::timeout(CHECK_TIMEOUT, self.store.overview()).await {
            Ok(Ok(overview)) => Some(Arc::new(overview)),
            Ok(Err(error)) => {
                tracing::warn!(%error, "what goes on could not be read");
                None
            }
            Err(_) => {
                tracing::warn!("what goes on could not be read within {CHECK_TIMEOUT:?}");
                None
            }
        }
    }

    async fn redis_trouble(&self) -> Option<String> {
        let url = self.redis_url.as_deref()?;
        match tokio::time::timeout(CHECK_TIMEOUT, ode_store::ping_redis(url)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} seconds", CHECK_TIMEOUT.as_secs())),
        }
    }

    /// What may be wrong although requests are answered.
    pub fn findings(&self, look: &Look) -> Vec<Finding> {
        let disk = self.disk.state();
        let found = format!("{:.0} % of the disk is used", disk.used_share * 100.0);
        let mut findings = vec![if disk.is_paused {
            let advice = "Free some space: uploads go on by themselves once there is room.";
            Finding::bad("uploads", format!("paused: {found}"), advice)
        } else {
            Finding::ok("uploads", found)
        }];
        findings.extend(look.overview.iter().flat_map(|overview| overview.findings()));
        findings.push(match (&self.redis_url, &look.redis_trouble) {
            (None, _) => Finding::ok("redis", "not configured, not needed"),
            (Some(_), None) => Finding::ok("redis", "answers"),
            (Some(_), Some(trouble)) => Finding::bad(
                "redis",
                trouble.clone(),
                "Start it. Until then wake-ups come by the database, and each process counts visitors by itself.",
            ),
        });
        findings
    }
}

/// Time for the head of a request.
const HEADER_READ: Duration = Duration::from_secs(15);
/// Those who watch are few.
const CONNECTIONS_MAX: usize = 64;
/// An answer takes no longer than its slowest check.
const GRACE: Duration = Duration::from_secs(1);

struct Watch {
    watcher: Arc<Watcher>,
    families: Vec<&'static dyn Family>,
}

/// Serves what operators ask for, until it is dropped: what this process counted, and how the installation is.
pub async fn serve_watch(listener: TcpListener, watcher: Arc<Watcher>, families: Vec<&'static dyn Family>) {
    let bounds = Bounds { connections: CONNECTIONS_MAX, header_read: HEADER_READ, grace: GRACE };
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(Arc::new(Watch { watcher, families }));
    connections::serve(listener, router, bounds, std::future::pending()).await;
}

async fn healthz(State(watch): State<Arc<Watch>>) -> Response {
    health::details(&watch.watcher).await
}

async fn metrics(State(watch): State<Arc<Watch>>) -> Response {
    let look = watch.watcher.look().await;
    let mut text = String::new();
    write_look(&mut text, &look);
    let disk = watch.watcher.disk.state();
    one(&mut text, "ode_disk_used_ratio", "Used share of the disk of the files, 0 to 1.", disk.used_share);
    one(
        &mut text,
        "ode_uploads_paused",
        "1 while uploads pause because the disk is nearly full.",
        u8::from(disk.is_paused),
    );
    for family in &watch.families {
        family.write(&mut text);
    }
    ([(header::CONTENT_TYPE, ode_metrics::CONTENT_TYPE)], text).into_response()
}

/// A gauge without labels.
fn one(text: &mut String, name: &str, help: &str, value: impl std::fmt::Display) {
    gauge(text, name, help, [(&[][..], value)]);
}

/// What the database says. Where it says nothing, its gauges have no values: none is better than an old one.
fn write_look(text: &mut String, look: &Look) {
    let overview = look.overview.as_deref();
    one(text, "ode_database_up", "1 while the database answers.", u8::from(overview.is_some()));
    let live = overview.map_or(&[][..], |overview| &overview.live);
    let name = |jobs: &LiveJobs| [("pipeline", jobs.pipeline.as_str()), ("state", jobs.state.as_str())];
    let labels: Vec<_> = live.iter().map(name).collect();
    let counts = live.iter().map(|jobs| jobs.count);
    let help = "Jobs that have not ended, by pipeline and state.";
    gauge(text, "ode_jobs", help, labels.iter().map(|labels| &labels[..]).zip(counts));
    let help = "For how long the oldest job that waits for a worker has waited.";
    oldest(text, "ode_queue_oldest_age_seconds", help, live, |jobs| jobs.waiting_for);
    let help = "For how long the oldest attempt that is being made has been running.";
    oldest(text, "ode_running_oldest_age_seconds", help, live, |jobs| jobs.running_for);
    let workers = overview.map(|overview| (&[][..], overview.workers_alive));
    gauge(text, "ode_workers_alive", "Worker processes that are alive.", workers);
    let breakers = overview.map_or(&[][..], |overview| &overview.breakers);
    let labels: Vec<_> = breakers.iter().map(|standing| [("dependency", standing.name.as_str())]).collect();
    let is_open = breakers.iter().map(|standing| u8::from(standing.away_since.is_some()));
    let help = "1 while something that jobs depend on is away, as any worker sees it.";
    gauge(text, "ode_breaker_open", help, labels.iter().map(|labels| &labels[..]).zip(is_open));
}

/// The longest by pipeline; zero where there is nobody.
fn oldest(
    text: &mut String,
    name: &str,
    help: &str,
    live: &[LiveJobs],
    age: impl Fn(&LiveJobs) -> Option<Duration>,
) {
    let mut oldest: BTreeMap<Pipeline, f64> = BTreeMap::new();
    for jobs in live {
        let age = age(jobs).unwrap_or_default().as_secs_f64();
        let known = oldest.entry(jobs.pipeline).or_default();
        *known = known.max(age);
    }
    let labels: Vec<_> = oldest.keys().map(|pipeline| [("pipeline", pipeline.as_str())]).collect();
    gauge(text, name, help, labels.iter().map(|labels| &labels[..]).zip(oldest.values()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use ode_store::disk::WatermarkConfig;
    use ode_store::{BlobsConfig, Config};

    #[tokio::test]
    async fn the_file_store_is_not_tried_for_everybody_who_asks() {
        let place = tempfile::tempdir().unwrap();
        let files = place.path().join("files");
        let blobs = Blobs::open(&BlobsConfig::Local(files.clone())).unwrap();
        let store = Store::open(Config::new("sqlite::memory:")).await.unwrap();
        let disk = Watermark::new(None, WatermarkConfig { pause_at: 1.0, resume_at: 1.0 });
        let mut watcher = Watcher::new(store, blobs, disk, None);
        watcher.files_seen = Seen::new(Duration::from_secs(3600));
        assert_eq!(watcher.files_trouble().await, None);
        // Whoever tried it now would see that it is gone.
        std::fs::remove_dir_all(&files).unwrap();
        std::fs::write(&files, "in the way").unwrap();
        assert_eq!(watcher.files_trouble().await, None);
        watcher.files_seen = Seen::new(Duration::ZERO);
        assert!(watcher.files_trouble().await.is_some());
    }
}
