//! Settings: what was typed or set in the environment, and what it means.

use anyhow::Context as _;
use clap::Args;
use ode_store::{Blobs, BlobsConfig, Config, Store};
use std::path::PathBuf;

/// Settings that every command understands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Settings {
    /// Directory for the embedded database and local files
    #[arg(long, global = true, env = "ODE_DATA", value_name = "DIR", default_value = "ode-data")]
    pub(crate) data: PathBuf,
    /// Database: postgres://user@host/name or sqlite:PATH [default: sqlite:DIR/ode.db]
    #[arg(long, global = true, env = "ODE_DATABASE", value_name = "URL", hide_env_values = true)]
    pub(crate) database: Option<String>,
    /// Files: a directory, or s3://bucket with keys from the AWS_… environment [default: DIR/files]
    #[arg(long, global = true, env = "ODE_STORAGE", value_name = "PLACE")]
    pub(crate) storage: Option<String>,
    /// Address of an S3-compatible store other than Amazon's
    #[arg(long, global = true, env = "ODE_S3_ENDPOINT", value_name = "URL")]
    pub(crate) s3_endpoint: Option<String>,
    /// Redis for wake-ups and progress: redis://host:port. Optional; nothing depends on it
    #[arg(long, global = true, env = "ODE_REDIS", value_name = "URL", hide_env_values = true)]
    pub(crate) redis: Option<String>,
    /// Connections to PostgreSQL at most, for each process
    #[arg(long, global = true, env = "ODE_CONNECTIONS", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) connections: u32,
    /// What to log: error, warn, info, debug, or a filter such as ode_worker=debug
    #[arg(long, global = true, env = "ODE_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Log as one JSON object a line
    #[arg(long, global = true, env = "ODE_LOG_JSON")]
    pub(crate) log_json: bool,
}

/// Whether a command makes the database it does not find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// Brings it to the newest version.
    Migrate,
    /// Refuses another version than its own.
    Check,
    /// Leaves it alone.
    Ignore,
}

impl Settings {
    /// The database's address.
    pub(crate) fn database_url(&self) -> String {
        self.database.clone().unwrap_or_else(|| format!("sqlite:{}", self.data.join("ode.db").display()))
    }

    /// Opens the store for `actor`, whose name the history shows.
    pub(crate) async fn store(&self, actor: &str, schema: Schema) -> anyhow::Result<Store> {
        if self.database.is_none() {
            self.find_data(schema)?;
        }
        let mut config = Config::new(self.database_url());
        config.connections_max = self.connections;
        config.redis_url.clone_from(&self.redis);
        actor.clone_into(&mut config.actor);
        let store = Store::open(config).await?;
        match schema {
            Schema::Migrate => {
                for version in store.migrate_up().await? {
                    tracing::info!("the database is now at schema version {version}");
                }
            }
            Schema::Check => store.check_schema().await?,
            Schema::Ignore => {}
        }
        Ok(store)
    }

    /// The embedded database's directory: made by those who may, asked for of the others.
    fn find_data(&self, schema: Schema) -> anyhow::Result<()> {
        if schema == Schema::Check && !self.data.join("ode.db").exists() {
            anyhow::bail!(
                "There is no database in {}. Start one with `ode serve`, or say where it is with --data or --database.",
                self.data.display()
            );
        }
        std::fs::create_dir_all(&self.data)
            .with_context(|| format!("The data directory {} cannot be made", self.data.display()))
    }

    /// Opens the file store.
    pub(crate) fn blobs(&self) -> anyhow::Result<Blobs> {
        let config = match self.storage.as_deref() {
            Some(place) if place.starts_with("s3://") => BlobsConfig::S3 {
                bucket: place.trim_start_matches("s3://").trim_end_matches('/').to_owned(),
                endpoint: self.s3_endpoint.clone(),
            },
            Some(place) if place.contains("://") => {
                anyhow::bail!("--storage {place} is not understood. Give a directory, or s3://bucket.")
            }
            Some(place) => BlobsConfig::Local(place.into()),
            None => BlobsConfig::Local(self.data.join("files")),
        };
        Ok(Blobs::open(&config)?)
    }
}
