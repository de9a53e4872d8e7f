//! What the routes of maps and prints share: who checks and draws maps, and small pictures that were looked at lately.

use crate::{Drawer, Undrawn};
use axum::extract::Extension;
use bytes::Bytes;
use ode_http::problem::Problem;
use ode_job::ErrorCode;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the routes of maps and prints share.
#[derive(Debug)]
pub struct PrintSite {
    pub(crate) drawer: Drawer,
    pub(crate) hook_secret: Option<Vec<u8>>,
    previews: Previews,
}

/// How a route takes it.
pub(crate) type Site = Extension<Arc<PrintSite>>;

impl PrintSite {
    /// Draws maps by this drawer, and takes Printful's events under this key; none without.
    #[must_use]
    pub fn new(drawer: Drawer, hook_secret: Option<Vec<u8>>) -> Self {
        PrintSite { drawer, hook_secret, previews: Previews::default() }
    }

    /// A small picture of a map, drawn now or kept from an earlier look.
    pub(crate) async fn preview(&self, sha256: &str, spec: String, width: u32) -> Result<Bytes, Problem> {
        let key = (sha256.to_owned(), width);
        if let Some(png) = self.previews.get(&key) {
            return Ok(png);
        }
        let png: Bytes = self.drawer.draw(spec.into(), Some(width), |_| ()).await?.png.into();
        self.previews.keep(key, png.clone());
        Ok(png)
    }
}

impl From<Undrawn> for Problem {
    fn from(undrawn: Undrawn) -> Self {
        match undrawn {
            Undrawn::Refused { path, message } => Problem::new(ErrorCode::BadMap, message).at(path),
            Undrawn::Failed(failure) => failure.into(),
        }
    }
}

/// A picture by the map's digest and its width.
type Key = (String, u32);

/// Pictures that were looked at lately. What a digest stands for never changes, so nothing here grows old.
#[derive(Debug, Default)]
struct Previews {
    kept: Mutex<VecDeque<(Key, Bytes)>>,
}

/// All of them together have at most this many bytes, which is some hundred pictures.
const KEPT_BYTES_MAX: usize = 32 << 20;

impl Previews {
    fn kept(&self) -> MutexGuard<'_, VecDeque<(Key, Bytes)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &Key) -> Option<Bytes> {
        let mut kept = self.kept();
        let found = kept.iter().position(|(known, _)| known == key)?;
        let entry = kept.remove(found)?;
        let png = entry.1.clone();
        kept.push_back(entry);
        Some(png)
    }

    fn keep(&self, key: Key, png: Bytes) {
        let mut kept = self.kept();
        kept.retain(|(known, _)| *known != key);
        kept.push_back((key, png));
        let mut bytes: usize = kept.iter().map(|(_, png)| png.len()).sum();
        while bytes > KEPT_BYTES_MAX {
            let Some((_, oldest)) = kept.pop_front() else { return };
            bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_nobody_looks_at_make_room_for_others() {
        let previews = Previews::default();
        let key = |number: u32| ("map".to_owned(), number);
        let png = Bytes::from(vec![0; KEPT_BYTES_MAX / 4]);
        for number in 0..4 {
            previews.keep(key(number), png.clone());
        }
        assert!(previews.get(&key(0)).is_some());
        previews.keep(key(4), png);
        assert!(previews.get(&key(0)).is_some() && previews.get(&key(4)).is_some());
        assert!(previews.get(&key(1)).is_none(), "it was not looked at for the longest time");
    }
}
