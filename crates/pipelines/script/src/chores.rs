//! What is done for scripts by the clock.

use crate::sql;
use async_trait::async_trait;
use ode_worker::{Chore, ChoreError, Turn};
use std::time::Duration;

/// Shreds the secrets of scripts that ended, once they have been kept long enough.
#[derive(Debug)]
pub(crate) struct ShredSecrets;

#[async_trait]
impl Chore for ShredSecrets {
    fn name(&self) -> &'static str {
        "shred-secrets"
    }

    /// Shorter than the pause between two looks, so that each look finds it due.
    fn every(&self) -> Duration {
        Duration::from_secs(15)
    }

    async fn run(&self, turn: &Turn<'_>) -> Result<(), ChoreError> {
        let count = sql::shred_due(turn.sql()).await?;
        if count > 0 {
            tracing::info!(count, "shredded the secrets of {count} jobs that ended");
        }
        Ok(())
    }
}
