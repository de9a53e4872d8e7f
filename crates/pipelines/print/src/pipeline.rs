//! What the print pipeline brings to the engine.

use crate::ExportHandler;
use crate::machine::{EXPORT, ORDER};
use crate::order::OrderHandler;
use crate::routes::{self, PrintSite};
use ode_http::Routes;
use ode_job::Lane;
use ode_pipeline::Pipeline;
use ode_worker::{Chore, Handler};
use std::sync::Arc;

/// The print pipeline, with what this process has a use for.
#[derive(Clone, Default)]
pub struct Print {
    /// Draws maps, where jobs are worked on.
    pub export: Option<ExportHandler>,
    /// Places orders, where there is a provider as well.
    pub order: Option<OrderHandler>,
    /// What is done about placed orders by the clock.
    pub chores: Vec<Arc<dyn Chore>>,
    /// What the routes share, where there is a site.
    pub site: Option<Arc<PrintSite>>,
}

impl Pipeline for Print {
    fn lanes(&self) -> Vec<(Lane, Arc<dyn Handler>)> {
        let export = self.export.clone().map(|handler| (EXPORT, Arc::new(handler) as Arc<dyn Handler>));
        let order = self.order.clone().map(|handler| (ORDER, Arc::new(handler) as Arc<dyn Handler>));
        export.into_iter().chain(order).collect()
    }

    fn chores(&self) -> Vec<Arc<dyn Chore>> {
        self.chores.clone()
    }

    fn routes(&self) -> Routes {
        self.site.clone().map(routes::routes).unwrap_or_default()
    }
}
