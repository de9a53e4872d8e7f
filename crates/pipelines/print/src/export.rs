//! What the print pipeline does first with a claimed job: its frozen map in, a PNG at full size kept as its export.

use super::drawer::{Drawer, Drawn};
use crate::request::ExportNote;
use crate::sql::held_map;
use async_trait::async_trait;
use bytes::Bytes;
use ode_job::File;
use ode_job::{Claimed, ErrorCode, Failure, LogLevel, Progress, RetryPolicy};
use ode_worker::{Context, Handler, Limits, unreached};
use serde_json::Value;
use std::time::Duration;

/// The handler of the lane of exports.
#[derive(Debug, Clone)]
pub struct ExportHandler {
    drawer: Drawer,
    at_once: usize,
    retry: RetryPolicy,
}

/// Longer than a map may be drawn: then it is its own limit that ends it, which says why.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(300);
/// What is left for storing the file, in percent of the whole.
const DRAWN_PERCENT: f32 = 95.0;

impl ExportHandler {
    /// Exports by this drawer, so many at a time.
    #[must_use]
    pub fn new(drawer: Drawer, at_once: usize, retry: RetryPolicy) -> Self {
        ExportHandler { drawer, at_once: at_once.max(1), retry }
    }
}

#[async_trait]
impl Handler for ExportHandler {
    fn limits(&self) -> Limits {
        Limits { concurrency: self.at_once, attempt_timeout: ATTEMPT_TIMEOUT, retry: self.retry }
    }

    async fn run(&self, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
        context.note("attempt_count", job.attempt.into());
        tell(context, 0.0, "Fetching the map");
        let map = printable_map(context).await?;
        let drawn = self.drawer.draw(map, None, |percent| {
            tell(context, percent * DRAWN_PERCENT / 100.0, "Drawing the map");
        });
        let Drawn { png, width, height, dpi, warnings } = drawn.await?;
        warnings.iter().for_each(|warning| context.log(LogLevel::Warn, warning));
        tell(context, DRAWN_PERCENT, "Storing the picture");
        let file = File {
            role: "export".into(),
            name: "map.png".into(),
            content_type: "image/png".into(),
            content: png.into(),
        };
        let kept = context.keep(vec![file]).await?;
        let export = kept.first().ok_or(ErrorCode::IoError)?;
        let (sha256, bytes) = (export.sha256.clone(), export.bytes);
        let about = serde_json::to_value(ExportNote { sha256, bytes, width, height, dpi, warnings });
        let about =
            about.map_err(|error| Failure::from(ErrorCode::Unknown).with_detail(error.to_string()))?;
        // A job between its stages has no result; its history tells what was made.
        context.note("export", about.clone());
        Ok(about)
    }
}

/// The frozen map that the job prints, as its canonical JSON.
async fn printable_map(context: &Context<'_>) -> Result<Bytes, Failure> {
    let found = held_map(context.held()).await.map_err(|error| unreached(&error))?;
    let none = "This job names no map. Make it with `ode print export`, or by POST /api/export";
    found.map(Bytes::from).ok_or_else(|| Failure::rejected(ErrorCode::Invalid, none))
}

fn tell(context: &Context<'_>, percent: f32, message: &str) {
    // Between 0 and 100, which the child may not know.
    let percent = percent.clamp(0.0, 100.0) as u8;
    context.progress(Progress { percent, message: Some(message.to_owned()), step: 0, steps: 0 });
}
