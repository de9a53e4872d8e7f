//! Settings: what was typed or set in the environment, and what it means.

use crate::WrongUse;
use anyhow::{Context as _, anyhow};
use clap::Args;
use ode_store::disk::WatermarkConfig;
use ode_store::{Blobs, BlobsConfig, Config, Places, PlacesConfig, Store};
use ode_webhooks::Guard;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings that every command understands. The short help shows those that say which installation is meant.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings")]
pub struct Settings {
    /// Directory for the embedded database and local files
    #[arg(long, global = true, env = "ODE_DATA", value_name = "DIR", default_value = "ode-data")]
    pub data: PathBuf,
    /// Database: postgres://user@host/name or sqlite:PATH [default: sqlite:DIR/ode.db]
    #[arg(long, global = true, env = "ODE_DATABASE", value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
    /// Files: a directory, or s3://bucket with keys from the AWS_… environment [default: DIR/files]
    #[arg(long, global = true, env = "ODE_STORAGE", value_name = "PLACE", hide_short_help = true)]
    pub storage: Option<String>,
    /// Address of an S3-compatible store other than Amazon's
    #[arg(long, global = true, env = "ODE_S3_ENDPOINT", value_name = "URL", hide_short_help = true)]
    pub s3_endpoint: Option<String>,
    /// Place that jobs may fetch documents from: s3://bucket/path or a directory. Give it again for more
    #[arg(
        long = "input-root",
        global = true,
        env = "ODE_INPUT_ROOTS",
        value_name = "PLACE",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub input_roots: Vec<String>,
    /// Place that jobs may put results below, written in the same way
    #[arg(
        long = "output-root",
        global = true,
        env = "ODE_OUTPUT_ROOTS",
        value_name = "PLACE",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub output_roots: Vec<String>,
    /// Host or network inside which messages about jobs may be sent, such as 10.0.0.0/8. Give it again for more
    #[arg(
        long,
        global = true,
        env = "ODE_WEBHOOK_ALLOW",
        value_name = "PLACE",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub webhook_allow: Vec<String>,
    /// Redis for wake-ups and progress: redis://host:port. Optional; nothing depends on it
    #[arg(
        long,
        global = true,
        env = "ODE_REDIS",
        value_name = "URL",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub redis: Option<String>,
    /// Connections to PostgreSQL at most, for each process
    #[arg(long, global = true, env = "ODE_CONNECTIONS", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(2..=1000), hide_short_help = true)]
    pub connections: u32,
    /// Seconds that a worker may be silent before its jobs go to others
    #[arg(
        long,
        global = true,
        env = "ODE_SILENCE",
        value_name = "SECONDS",
        default_value_t = 5.0,
        hide = true
    )]
    pub silence: f64,
    /// Percent of the disk in use at which uploads pause
    #[arg(long, global = true, env = "ODE_DISK_PAUSE", value_name = "PERCENT", default_value_t = 90,
        value_parser = clap::value_parser!(u8).range(1..=100), hide_short_help = true)]
    pub disk_pause: u8,
    /// Percent below which they go on
    #[arg(long, global = true, env = "ODE_DISK_RESUME", value_name = "PERCENT", default_value_t = 85,
        value_parser = clap::value_parser!(u8).range(1..=100), hide_short_help = true)]
    pub disk_resume: u8,
    /// What to log: error, warn, info, debug, or a filter such as ode_worker=debug
    #[arg(long, global = true, env = "ODE_LOG", value_name = "FILTER", hide_short_help = true)]
    pub log: Option<String>,
    /// Log as one JSON object a line
    #[arg(long, global = true, env = "ODE_LOG_JSON", hide_short_help = true)]
    pub log_json: bool,
}

/// What a command does about the schema of the database it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Makes the database if need be, and brings it to the newest version.
    Migrate,
    /// Wants the database to be there, in its own version.
    Check,
    /// Makes the database if need be, and leaves the schema alone.
    Ignore,
}

impl Settings {
    pub fn database_url(&self) -> String {
        let path = || self.data.join("ode.db").display().to_string();
        // In an address these two begin an escape and the parameters; in a path they are letters.
        let escaped = |path: String| path.replace('%', "%25").replace('?', "%3F");
        self.database.clone().unwrap_or_else(|| format!("sqlite:{}", escaped(path())))
    }

    /// The file of the embedded database, if it is not there yet. A server's databases are for it to know, and
    /// an address with escapes or parameters is for the driver to read.
    pub fn missing_file(&self) -> Option<PathBuf> {
        let file = match &self.database {
            None => self.data.join("ode.db"),
            Some(url) => {
                let path = url.strip_prefix("sqlite:")?;
                let path = path.strip_prefix("//").unwrap_or(path);
                let is_plain = !path.contains(['%', '?']) && path != ":memory:";
                is_plain.then(|| PathBuf::from(path))?
            }
        };
        (!file.exists()).then_some(file)
    }

    /// Opens the store for `actor`, whose name the history shows.
    pub async fn store(&self, actor: &str, schema: Schema) -> anyhow::Result<Store> {
        if let Some(file) = self.missing_file() {
            if schema == Schema::Check {
                return Err(no_database(&file));
            }
            make_directory(file.parent().unwrap_or(&self.data))?;
        }
        let mut config = Config::new(self.database_url());
        config.connections_max = self.connections;
        config.redis_url.clone_from(&self.redis);
        actor.clone_into(&mut config.actor);
        config.silence_max = Duration::try_from_secs_f64(self.silence).unwrap_or(config.silence_max);
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

    /// How often a worker says that it is alive: twice within what counts as silence, and once to spare.
    pub fn beat_every(&self) -> Duration {
        Duration::try_from_secs_f64(self.silence / 2.5).unwrap_or(Duration::from_secs(2))
    }

    /// Where local files go; `None` if they go elsewhere.
    pub fn files_directory(&self) -> Option<PathBuf> {
        match self.storage.as_deref() {
            Some(place) => (!place.contains("://")).then(|| place.into()),
            None => Some(self.data.join("files")),
        }
    }

    /// When the disk of the files counts as nearly full.
    pub fn watermark(&self) -> anyhow::Result<WatermarkConfig> {
        let share = |percent: u8| f64::from(percent) / 100.0;
        let (pause, resume) = (self.disk_pause, self.disk_resume);
        if resume > pause {
            anyhow::bail!(
                "--disk-resume {resume} is above --disk-pause {pause}: uploads would pause and go on at once. Give it \
                 {pause} or less."
            );
        }
        Ok(WatermarkConfig { pause_at: share(pause), resume_at: share(resume) })
    }

    /// Opens the places of callers.
    pub fn places(&self) -> anyhow::Result<Places> {
        let roots = |roots: &[String]| roots.iter().map(|root| place(root)).collect();
        Ok(Places::open(&PlacesConfig {
            inputs: roots(&self.input_roots),
            outputs: roots(&self.output_roots),
            s3_endpoint: self.s3_endpoint.clone(),
        })?)
    }

    /// Where messages about jobs may go.
    pub fn webhook_guard(&self) -> anyhow::Result<Guard> {
        Guard::new(&self.webhook_allow).context("--webhook-allow cannot be used")
    }

    /// Opens the file store.
    pub fn blobs(&self) -> anyhow::Result<Blobs> {
        let place = self.storage.as_deref().unwrap_or_default();
        let config = match (self.files_directory(), place.strip_prefix("s3://")) {
            (Some(directory), _) => BlobsConfig::Local(directory),
            (None, Some(bucket)) if !bucket.trim_matches('/').is_empty() => BlobsConfig::S3 {
                bucket: bucket.trim_end_matches('/').to_owned(),
                endpoint: self.s3_endpoint.clone(),
            },
            (None, _) => anyhow::bail!(WrongUse(format!(
                "--storage {place} is not understood. Give a directory, or s3://bucket."
            ))),
        };
        Ok(Blobs::open(&config)?)
    }
}

/// A directory as an address; other addresses as they are.
fn place(root: &str) -> String {
    if root.contains("://") {
        return root.to_owned();
    }
    // One that is not there is told by its name when it is opened.
    let path = std::path::absolute(root).unwrap_or_else(|_| root.into());
    format!("file://{}", path.display())
}

/// Says that there is nothing to look at or act on.
pub fn no_database(file: &Path) -> anyhow::Error {
    anyhow!(
        "There is no database at {}. Start one with `ode serve`, or say where it is with --data or --database.",
        file.display()
    )
}

/// Makes the database's directory, for its owner alone: it holds what people entrusted to us.
fn make_directory(path: &Path) -> anyhow::Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| {
        let path = path.display();
        anyhow!(
            "The directory {path} cannot be made: {error}. Choose another place with --data or --database."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        settings: Settings,
    }

    fn settings(args: &[&str]) -> Settings {
        Only::parse_from(std::iter::once(&"ode").chain(args)).settings
    }

    #[test]
    fn a_path_keeps_its_letters_in_the_address() {
        let settings = settings(&["--data", "what? 100%"]);
        assert_eq!(settings.database_url(), "sqlite:what%3F 100%25/ode.db");
    }

    #[test]
    fn a_file_that_is_not_there_is_noticed() {
        fn check(url: &str, expected: Option<&str>) {
            assert_eq!(settings(&["--database", url]).missing_file(), expected.map(PathBuf::from), "{url}");
        }
        check("sqlite:/nowhere/a.db", Some("/nowhere/a.db"));
        check("sqlite:///nowhere/a.db", Some("/nowhere/a.db"));
        check("sqlite:nowhere.db", Some("nowhere.db"));
        check("sqlite:/dev/null", None);
        check("sqlite::memory:", None);
        check("sqlite:/nowhere/a.db?mode=memory", None);
        check("postgres://localhost/ode", None);
    }
}
