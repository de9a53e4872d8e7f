//! What the web side asks of whoever draws maps. No route knows how that is done.

use crate::App;
use crate::problem::Problem;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use ode_job::{ErrorCode, Failure};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Checks and draws maps.
pub trait DrawMaps: Debug + Send + Sync {
    /// Checks GeoJSON, and gives it back in canonical form.
    fn features(&self, geojson: Bytes) -> BoxFuture<'_, Result<String, Undrawn>>;

    /// Checks a specification, with the features of a map of this name or without, and gives it back in canonical form.
    fn freeze(
        &self,
        spec: Bytes,
        features: Option<(String, String)>,
    ) -> BoxFuture<'_, Result<Frozen, Undrawn>>;

    /// Draws a specification as a PNG of this width.
    fn preview(&self, spec: Bytes, width: u32) -> BoxFuture<'_, Result<Bytes, Undrawn>>;
}

/// A specification that can be drawn.
#[derive(Debug, Clone)]
pub struct Frozen {
    /// In canonical form.
    pub text: String,
    /// What whoever made it should know, in sentences.
    pub warnings: Vec<String>,
}

/// Why nothing was drawn.
#[derive(Debug, Clone)]
pub enum Undrawn {
    /// The specification is wrong.
    Refused {
        /// Where, such as `layers[0].style`; empty for all of it.
        path: String,
        /// What is wrong there, and what to do about it.
        message: String,
    },
    /// Something else.
    Failed(Failure),
}

impl From<Undrawn> for Problem {
    fn from(undrawn: Undrawn) -> Self {
        match undrawn {
            Undrawn::Refused { path, message } => Problem::new(ErrorCode::BadMap, message).at(path),
            Undrawn::Failed(failure) => failure.into(),
        }
    }
}

impl App {
    /// Whoever draws maps here.
    pub fn drawer(&self) -> Result<&dyn DrawMaps, Problem> {
        self.settings.maps.as_deref().ok_or_else(|| {
            Problem::new(ErrorCode::Busy, "Nothing here draws maps. Start ODE with `ode serve` or `ode web`.")
        })
    }

    /// A small picture of a map, drawn now or kept from an earlier look.
    pub async fn preview(&self, sha256: &str, spec: String, width: u32) -> Result<Bytes, Problem> {
        let key = (sha256.to_owned(), width);
        if let Some(png) = self.previews.get(&key) {
            return Ok(png);
        }
        let png = self.drawer()?.preview(spec.into(), width).await?;
        self.previews.keep(key, png.clone());
        Ok(png)
    }
}

/// A picture by the map's digest and its width.
type Key = (String, u32);

/// Pictures that were looked at lately. What a digest stands for never changes, so nothing here grows old.
#[derive(Debug, Default)]
pub struct Previews {
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
