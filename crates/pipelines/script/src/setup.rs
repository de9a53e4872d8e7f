//! Setting scripts up: where scripts and keys lie, and the options of commands. Groups of options are skipped: clap names them
//! after structs, and other crates have structs of these names.

use crate::handler::ScriptHandler;
use crate::intake::Intake;
use crate::sql::{self, ScriptType, SealSide};
use crate::{Catalog, Error, Keyring, Runner, find_browser, unpack, unpacked};
use clap::Args;
use ode_child::Program;
use ode_cli::Settings;
use ode_store::{Finding, Store};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Where scripts and keys lie.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The directory for everything that this machine keeps.
    pub data: PathBuf,
    /// The operator's own scripts.
    pub scripts: Option<PathBuf>,
    /// The workers' keys, where they are not in the directory for data.
    pub worker_key: Option<PathBuf>,
    /// The web side's, likewise.
    pub web_key: Option<PathBuf>,
}

/// Options of all commands.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(next_help_heading = "Settings")]
pub(crate) struct FolderArgs {
    /// Directory with scripts of one's own; they replace ours of the same type
    #[arg(long, global = true, env = "ODE_SCRIPTS", value_name = "DIR", hide_short_help = true)]
    scripts: Option<PathBuf>,
    /// File with the keys that open secrets which are sent to scripts [default: DIR/keys/worker.key]
    #[arg(long, global = true, env = "ODE_WORKER_KEY", value_name = "FILE", hide_short_help = true)]
    worker_key: Option<PathBuf>,
    /// File with the keys that open secrets which come of scripts [default: DIR/keys/web.key]
    #[arg(long, global = true, env = "ODE_WEB_KEY", value_name = "FILE", hide_short_help = true)]
    web_key: Option<PathBuf>,
}

impl Folders {
    /// The folders of an installation.
    pub(crate) fn new(settings: &Settings, args: FolderArgs) -> Self {
        let FolderArgs { scripts, worker_key, web_key } = args;
        Folders { data: settings.data.clone(), scripts, worker_key, web_key }
    }

    /// Checks what browser scripts need. Who runs none needs nothing of it, so a lack is no fault.
    pub(crate) fn check(&self) -> Finding {
        let packages = unpacked(&self.data).join("node_modules/playwright-core");
        let mut missing = Vec::new();
        if !packages.is_dir() {
            missing.push("`ode scripts setup` installs the packages that browser scripts need".to_owned());
        }
        if let Err(failed) = find_browser(None, true) {
            missing.push(failed.message);
        }
        let found = if missing.is_empty() { "ready for browsers".to_owned() } else { missing.join("; ") };
        Finding::ok("scripts", found)
    }

    /// Reads the scripts that came with ODE, and the operator's own.
    pub fn catalog(&self) -> Result<Catalog, Error> {
        Catalog::load(&unpack(&self.data)?, self.scripts.as_deref())
    }

    /// Where one side has its keys.
    #[must_use]
    pub fn key_file(&self, side: SealSide) -> PathBuf {
        let given = match side {
            SealSide::Worker => &self.worker_key,
            SealSide::Web => &self.web_key,
        };
        let usual = || self.data.join("keys").join(format!("{}.key", side.as_str()));
        given.clone().unwrap_or_else(usual)
    }

    /// The keys of one side. Made, where nobody has some yet; where others have them and we do not, there are none here.
    async fn keys(&self, store: &Store, side: SealSide) -> Result<Option<Keyring>, Error> {
        let path = self.key_file(side);
        let (here, used) = (Keyring::read(&path)?, sql::seal_key(store.sql(), side).await?);
        let keys = match (here, used) {
            (here, Some(used)) => {
                if !here.as_ref().is_some_and(|keys| keys.ids().contains(&used.id)) {
                    tracing::warn!(
                        key.id = used.id,
                        "secrets of scripts are sealed to the {} key {}, which is not in {}: copy it there from where it \
                         was made, or make a new one with `ode seal rotate`",
                        side.as_str(),
                        used.id,
                        path.display()
                    );
                }
                return Ok(here);
            }
            (Some(keys), None) => keys,
            (None, None) => Keyring::make(&path)?,
        };
        sql::publish_seal_key(store.sql(), side, &keys.newest().id(), keys.newest().bytes()).await?;
        Ok(Some(keys))
    }
}

/// How a worker runs scripts.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(next_help_heading = "Work")]
pub(crate) struct WorkArgs {
    /// Scripts that are run at a time
    #[arg(long, env = "ODE_SCRIPTS_AT_ONCE", value_name = "N", default_value = "2")]
    scripts_at_once: NonZeroUsize,
    /// Site that scripts work on where what is sent to them names none
    #[arg(long, env = "ODE_SCRIPT_SITE", value_name = "URL", hide_short_help = true)]
    script_site: Option<String>,
    /// Directory with the files that payloads of scripts name, such as menus to import
    #[arg(long, env = "ODE_SCRIPT_FILES", value_name = "DIR", hide_short_help = true)]
    script_files: Option<PathBuf>,
    /// Let browsers of scripts run without their own sandbox, which they cannot have as root
    #[arg(long, env = "ODE_BROWSER_NO_SANDBOX", hide_short_help = true)]
    browser_no_sandbox: bool,
}

impl WorkArgs {
    /// The handler of scripts, whose types are published; none where there are no keys for what is sealed to workers.
    pub(crate) async fn handler(
        &self,
        folders: &Folders,
        store: &Store,
    ) -> Result<Option<ScriptHandler>, Error> {
        let catalog = folders.catalog()?;
        let types: Vec<ScriptType> = catalog.iter().map(|script| script.as_ref().into()).collect();
        sql::publish_types(store.sql(), &types).await?;
        let Some(keys) = folders.keys(store, SealSide::Worker).await? else { return Ok(None) };
        let mut how = crate::Settings::new(&folders.data, Program::this_binary(["child", "keep"])?);
        how.allow_no_sandbox = self.browser_no_sandbox;
        how.files.clone_from(&self.script_files);
        let handler = ScriptHandler::new(Runner::new(how)?, catalog, keys, self.scripts_at_once.get());
        Ok(Some(handler.with_site(self.script_site.clone())))
    }
}

/// How a site accepts scripts.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(next_help_heading = "Web")]
pub(crate) struct SiteArgs {
    /// Minutes that a script which failed keeps its secrets, for somebody who tries it again; 0 shreds them at once
    #[arg(long, env = "ODE_SECRETS_MINUTES", value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(..=10_080), hide_short_help = true)]
    secrets_minutes: u64,
}

impl SiteArgs {
    /// What the routes of scripts need.
    pub(crate) async fn intake(&self, folders: &Folders, store: &Store) -> Result<Intake, Error> {
        let keys = folders.keys(store, SealSide::Web).await?;
        Ok(Intake::new(folders.catalog()?, keys, Duration::from_secs(self.secrets_minutes * 60)))
    }
}
