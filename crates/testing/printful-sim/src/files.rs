//! Fetching the files of orders, some time after they were ordered, as the provider does.

use crate::book::{FileStatus, Wanted};
use crate::sim::Inner;
use std::sync::Arc;
use std::time::Duration;

/// As long as a provider would wait for one.
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest file that Printful takes.
const BYTES_MAX: usize = 200 << 20;
/// What a PNG and a JPEG begin with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// Fetches one file and says what became of it.
pub(crate) async fn fetch(sim: Arc<Inner>, wanted: Wanted) {
    tokio::time::sleep(sim.options.file_delay).await;
    let status =
        if sim.options.fetch_files { look(&sim.http, &wanted.url).await } else { FileStatus::Fetched };
    if status == FileStatus::Failed {
        tracing::warn!("the file {} of order {} cannot be used", wanted.url, wanted.order);
    }
    sim.book().file_is(wanted.order, status);
}

async fn look(http: &reqwest::Client, url: &str) -> FileStatus {
    let fetched = async {
        let mut response = http.get(url).timeout(FETCH_TIMEOUT).send().await?.error_for_status()?;
        let (mut head, mut count) = (Vec::new(), 0);
        while let Some(chunk) = response.chunk().await? {
            count += chunk.len();
            head.extend(chunk.iter().take(PNG.len().saturating_sub(head.len())));
            if count > BYTES_MAX {
                break;
            }
        }
        Ok::<_, reqwest::Error>((head, count))
    };
    match fetched.await {
        Ok((head, count)) if count <= BYTES_MAX && (head.starts_with(PNG) || head.starts_with(JPEG)) => {
            FileStatus::Fetched
        }
        Ok(_) | Err(_) => FileStatus::Failed,
    }
}
