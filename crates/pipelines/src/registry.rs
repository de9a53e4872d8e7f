//! The one place that knows which pipelines there are.

use ode_job::Registry;

/// Every handler that ships, by the lane it serves. No pipeline has one yet: jobs are accepted and wait.
pub fn registry() -> Registry {
    Registry::new()
}
