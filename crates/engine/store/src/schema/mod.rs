//! The schema: what pipelines declare, migrations, and the rules and columns that are rendered into SQL.

pub(crate) mod columns;
pub(crate) mod declaration;
pub(crate) mod machines;
pub(crate) mod migrate;
