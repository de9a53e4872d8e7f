//! What pipelines bring to the database, declared once when the program starts.

use crate::attempts::rules::Rules;
use crate::schema::migrate::Migration;
use ode_job::machines::{self, DeclareError};
use ode_job::{Machine, Pipeline};
use std::sync::OnceLock;

/// What one pipeline brings to the database.
#[derive(Debug)]
pub struct Declaration {
    /// Its machine: the states, steps and lanes that the database knows.
    pub pipeline: Pipeline,
    /// Tables and views of its own, in the order in which they are made.
    pub migrations: &'static [Migration],
    /// Decisions about its jobs that the engine leaves to it.
    pub rules: Rules,
    /// Who is notified when one of its jobs ends.
    pub notified: Notified,
    /// Whether its waiting jobs may be called off by `ode_cancel` on PostgreSQL.
    pub is_cancelled_in_sql: bool,
}

/// Who is notified when a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notified {
    /// Nobody.
    Nobody,
    /// The webhooks of its owner.
    Owner,
    /// The same, and the address under this key of the job's input.
    OwnerAnd(&'static str),
}

impl Declaration {
    /// A pipeline with nothing of its own in the database.
    pub const fn new(pipeline: Pipeline) -> Self {
        Declaration {
            pipeline,
            migrations: &[],
            rules: Rules::NONE,
            notified: Notified::Nobody,
            is_cancelled_in_sql: true,
        }
    }
}

static DECLARED: OnceLock<Vec<&'static Declaration>> = OnceLock::new();

/// Declares the pipelines of this program, in the order in which lists show them, before any name is parsed or any store
/// opened. Declaring the same ones again changes nothing.
pub fn declare(declarations: &[&'static Declaration]) -> Result<(), DeclareError> {
    let machines: Vec<&'static Machine> =
        declarations.iter().map(|declaration| declaration.pipeline.machine()).collect();
    machines::declare(&machines)?;
    DECLARED.get_or_init(|| declarations.to_vec());
    Ok(())
}

/// The declared pipelines. None before [`declare`].
pub(crate) fn declared() -> &'static [&'static Declaration] {
    DECLARED.get().map_or(&[], Vec::as_slice)
}

/// The rules of a declared pipeline.
pub(crate) fn rules(pipeline: Pipeline) -> &'static Rules {
    let found = declared().iter().find(|declaration| declaration.pipeline == pipeline);
    found.map_or(&Rules::NONE, |declaration| &declaration.rules)
}
