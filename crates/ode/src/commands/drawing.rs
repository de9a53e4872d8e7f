//! Who draws maps for the web side: children of this program.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use ode_child::{PoolOptions, Sandbox};
use ode_http::{DrawMaps, Frozen, Undrawn};
use ode_print::{Drawer, Undrawn as Refusal};

/// A drawer, ready to work; `at_once` maps at a time, or one for each processor.
pub(super) fn drawer(at_once: Option<usize>, sandbox: Sandbox) -> Result<Drawer, ode_child::Error> {
    let options = PoolOptions { sandbox, ..ode_print::pool_options() };
    Drawer::new(PoolOptions { at_once: at_once.unwrap_or(options.at_once), ..options })
}

/// A drawer as the web side knows it.
#[derive(Debug)]
pub(super) struct Drawing(pub(super) Drawer);

impl DrawMaps for Drawing {
    fn features(&self, geojson: Bytes) -> BoxFuture<'_, Result<String, Undrawn>> {
        Box::pin(async { Ok(self.0.features(geojson).await.map_err(told)?.text) })
    }

    fn freeze(
        &self,
        spec: Bytes,
        features: Option<(String, String)>,
    ) -> BoxFuture<'_, Result<Frozen, Undrawn>> {
        Box::pin(async move {
            let features = features.as_ref().map(|(name, features)| (name.as_str(), features.as_str()));
            let frozen = self.0.freeze(spec, features).await.map_err(told)?;
            Ok(Frozen { text: frozen.text, warnings: frozen.warnings })
        })
    }

    fn preview(&self, spec: Bytes, width: u32) -> BoxFuture<'_, Result<Bytes, Undrawn>> {
        Box::pin(async move { Ok(self.0.draw(spec, Some(width), |_| ()).await.map_err(told)?.png.into()) })
    }
}

fn told(refusal: Refusal) -> Undrawn {
    match refusal {
        Refusal::Refused { path, message } => Undrawn::Refused { path, message },
        Refusal::Failed(failure) => Undrawn::Failed(failure),
    }
}
