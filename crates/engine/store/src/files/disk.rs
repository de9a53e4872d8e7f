//! How full the disk of the files is: past one mark uploads pause, and below another they go on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The marks, as used shares of the disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WatermarkConfig {
    /// From here on uploads pause.
    pub pause_at: f64,
    /// Below this they go on. Lower, so that they do not start and stop with every file.
    pub resume_at: f64,
}

impl Default for WatermarkConfig {
    /// 90 % and 85 %.
    fn default() -> Self {
        WatermarkConfig { pause_at: 0.90, resume_at: 0.85 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DiskState {
    /// Used share, 0 to 1; zero where there is no local disk or it cannot be asked.
    pub used_share: f64,
    /// Whether uploads pause.
    pub is_paused: bool,
}

/// Watches one disk. Cheap to clone; all clones agree.
#[derive(Debug, Clone)]
pub struct Watermark {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: Option<PathBuf>,
    config: WatermarkConfig,
    seen: Mutex<Option<(Instant, DiskState)>>,
}

/// The disk is asked no more often than this.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Watermark {
    /// Watches the disk under `root`; without one there is nothing to watch, and uploads never pause.
    #[must_use]
    pub fn new(root: Option<&Path>, config: WatermarkConfig) -> Self {
        let inner = Inner { root: root.map(Path::to_owned), config, seen: Mutex::new(None) };
        Watermark { inner: Arc::new(inner) }
    }

    /// Whether there is room for another file.
    #[must_use]
    pub fn allows_uploads(&self) -> bool {
        !self.state().is_paused
    }

    /// How the disk stands, as of a second ago at most.
    #[must_use]
    pub fn state(&self) -> DiskState {
        self.state_within(LOOK_EVERY)
    }

    /// How the disk stands at this moment, for whoever just changed it.
    #[must_use]
    pub fn look_now(&self) -> DiskState {
        self.state_within(Duration::ZERO)
    }

    fn state_within(&self, age_max: Duration) -> DiskState {
        let mut seen = self.inner.seen.lock().expect("no code panics while holding this lock");
        if let Some((at, state)) = *seen
            && at.elapsed() < age_max
        {
            return state;
        }
        let state = self.look(seen.is_some_and(|(_, state)| state.is_paused));
        *seen = Some((Instant::now(), state));
        state
    }

    fn look(&self, was_paused: bool) -> DiskState {
        let used_share = self.inner.root.as_deref().and_then(used_share).unwrap_or_default();
        DiskState { used_share, is_paused: is_paused(self.inner.config, used_share, was_paused) }
    }
}

fn is_paused(config: WatermarkConfig, used_share: f64, was_paused: bool) -> bool {
    let mark = if was_paused { config.resume_at.min(config.pause_at) } else { config.pause_at };
    used_share >= mark
}

/// The used share of the disk under a directory, as `df` counts: what is kept for the administrator is not ours to use.
#[must_use]
pub fn used_share(root: &Path) -> Option<f64> {
    let disk = rustix::fs::statvfs(root).ok()?;
    let used = disk.f_blocks.saturating_sub(disk.f_bfree) as f64;
    let all = used + disk.f_bavail as f64;
    (all > 0.0).then(|| used / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_pause_at_one_mark_and_go_on_below_the_other() {
        let config = WatermarkConfig::default();
        let mut is_paused_now = false;
        let shares = [0.5, 0.89, 0.90, 0.88, 0.85, 0.849, 0.89, 0.95];
        let paused = shares.map(|share| {
            is_paused_now = is_paused(config, share, is_paused_now);
            is_paused_now
        });
        assert_eq!(paused, [false, false, true, true, true, false, false, true]);
    }

    #[test]
    fn a_store_without_a_disk_never_pauses() {
        let watermark = Watermark::new(None, WatermarkConfig { pause_at: 0.0001, resume_at: 0.0001 });
        assert!(watermark.allows_uploads());
    }

    #[test]
    fn the_disk_is_really_looked_at() {
        let here = std::env::temp_dir();
        let full = Watermark::new(Some(&here), WatermarkConfig { pause_at: 0.0, resume_at: 0.0 });
        assert!(!full.allows_uploads());
        assert!(full.state().used_share > 0.0);
        assert!(
            Watermark::new(Some(&here), WatermarkConfig { pause_at: 1.1, resume_at: 1.1 }).allows_uploads()
        );
    }
}
