//! Scripts, as the web side and the worker of this program know them: which there are, and the keys of their secrets.

use crate::config::Settings;
use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use ode_child::Program;
use ode_http::{AcceptedScript, Refusal, ScriptInfo, Scripts};
use ode_job::{ErrorCode, Failure, JobRecord, Sealed, SecretPart};
use ode_script::ScriptHandler;
use ode_script::{Bond, Catalog, Error, Keyring, Runner, SealTo, Secrets, join, secret_names};
use ode_store::{ScriptType, SealSide, Store};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// Reads the scripts that came with ODE, and the operator's own.
pub(super) fn catalog(settings: &Settings) -> anyhow::Result<Catalog> {
    let shipped = ode_script::unpack(&settings.data).context("The scripts of ODE cannot be unpacked")?;
    Ok(Catalog::load(&shipped, settings.scripts.as_deref())?)
}

/// Where one side has its keys.
pub(super) fn key_file(settings: &Settings, side: SealSide) -> PathBuf {
    let given = match side {
        SealSide::Worker => &settings.worker_key,
        SealSide::Web => &settings.web_key,
    };
    let usual = || settings.data.join("keys").join(format!("{}.key", side.as_str()));
    given.clone().unwrap_or_else(usual)
}

/// The keys of one side. Made, where nobody has some yet; where others have them and we do not, there are none here.
async fn keys(settings: &Settings, store: &Store, side: SealSide) -> anyhow::Result<Option<Keyring>> {
    let path = key_file(settings, side);
    let (here, used) = (Keyring::read(&path)?, store.seal_key(side).await?);
    let keys = match (here, used) {
        (here, Some(used)) => {
            if !here.as_ref().is_some_and(|keys| keys.ids().contains(&used.id)) {
                tracing::warn!(
                    key.id = used.id,
                    "secrets of scripts are sealed to the {} key {}, which is not in {}: copy it there from where it was \
                     made, or make a new one with `ode seal rotate`",
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
    store.publish_seal_key(side, &keys.newest().id(), keys.newest().bytes()).await?;
    Ok(Some(keys))
}

/// How scripts are run here.
pub(super) struct Running<'a> {
    pub(super) settings: &'a Settings,
    pub(super) at_once: usize,
    pub(super) site: Option<String>,
    /// Where files lie that payloads name.
    pub(super) files: Option<PathBuf>,
    /// Whether browsers may run without their own sandbox.
    pub(super) allow_no_sandbox: bool,
}

impl Running<'_> {
    /// The handler of scripts; none where there are no keys for what is sealed to workers.
    pub(super) async fn handler(self, store: &Store) -> anyhow::Result<Option<ScriptHandler>> {
        let catalog = catalog(self.settings)?;
        store.publish_scripts(&catalog.iter().map(|script| published(script)).collect::<Vec<_>>()).await?;
        let Some(keys) = keys(self.settings, store, SealSide::Worker).await? else { return Ok(None) };
        let keeper = Program::this_binary(["child", "keep"])?;
        let mut how = ode_script::Settings::new(&self.settings.data, keeper);
        (how.allow_no_sandbox, how.files) = (self.allow_no_sandbox, self.files);
        let handler = ScriptHandler::new(Runner::new(how)?, catalog, keys, self.at_once);
        Ok(Some(handler.with_site(self.site)))
    }
}

fn published(script: &ode_script::Script) -> ScriptType {
    let manifest = &script.manifest;
    ScriptType {
        name: manifest.name.clone(),
        title: manifest.title.clone(),
        version: manifest.version.to_string(),
        digest: script.digest.clone(),
        timeout: manifest.timeout,
        retries_max: manifest.max_retries,
        retry_delay: manifest.retry_delay,
    }
}

/// Scripts as the web side knows them: it can seal to workers, and open what they seal to it.
#[derive(Debug)]
pub(super) struct KnownScripts {
    catalog: Catalog,
    store: Store,
    keys: Option<Keyring>,
    keep_secrets: Duration,
}

impl KnownScripts {
    pub(super) async fn open(
        settings: &Settings,
        store: Store,
        keep_secrets: Duration,
    ) -> anyhow::Result<Self> {
        let keys = keys(settings, &store, SealSide::Web).await?;
        Ok(KnownScripts { catalog: catalog(settings)?, store, keys, keep_secrets })
    }

    /// Seals secrets to workers; none if there are none.
    async fn seal(&self, owner: Uuid, secrets: &Secrets) -> Result<Option<Sealed>, Refusal> {
        if secrets.is_empty() {
            return Ok(None);
        }
        let key = self.store.seal_key(SealSide::Worker).await.map_err(|error| {
            tracing::error!(%error, "the workers' key cannot be read");
            Refusal::Failed(ErrorCode::DatabaseUnavailable.into())
        })?;
        let none = || {
            let message =
                "No worker has made a key for secrets yet. Start one with `ode worker`, then send this again";
            Refusal::Failed(Failure::retryable(ErrorCode::Busy, message))
        };
        let to = key.and_then(|key| SealTo::new(&key.public)).ok_or_else(none)?;
        let bond = Bond { owner, part: SecretPart::Input };
        to.seal(bond, secrets).map(Some).map_err(|error| unsealed(&error))
    }

    async fn accepted(&self, kind: &str, owner: Uuid, input: Value) -> Result<AcceptedScript, Refusal> {
        let script = self.catalog.get(kind).ok_or(Refusal::Unknown)?;
        script.check(&input).map_err(invalid)?;
        let turn = script.concurrency_key(&owner.to_string(), &input);
        let (input, secrets) = script.split(input);
        Ok(AcceptedScript {
            input,
            secret: self.seal(owner, &secrets).await?,
            keep_secret: self.keep_secrets,
            timeout: script.manifest.timeout,
            retries_max: script.manifest.max_retries,
            turn,
        })
    }

    async fn resealed(
        &self,
        job: &JobRecord,
        owner: Uuid,
        secrets: Map<String, Value>,
    ) -> Result<(Sealed, Duration), Refusal> {
        let script = self.catalog.get(&job.kind).ok_or(Refusal::Unknown)?;
        check_names(&secret_names(&job.input), &secrets)?;
        let mut given = Secrets::default();
        secrets.into_iter().for_each(|(name, value)| given.insert(name, value));
        let whole = join(job.input.clone(), &given);
        script.check(&whole).map_err(invalid)?;
        let (input, secrets) = script.split(whole);
        let sealed = self.seal(owner, &secrets).await?.filter(|_| input == job.input);
        let changed = || {
            let why = "The script's schema has changed since this job was sent, and other fields are secret now. Send \
                       it as a new job.";
            Refusal::Secrets(None, why.to_owned())
        };
        sealed.map(|sealed| (sealed, self.keep_secrets)).ok_or_else(changed)
    }
}

impl Scripts for KnownScripts {
    fn types(&self) -> Vec<ScriptInfo> {
        let info = |script: &std::sync::Arc<ode_script::Script>| {
            let manifest = &script.manifest;
            ScriptInfo {
                name: manifest.name.clone(),
                title: manifest.title.clone(),
                version: manifest.version,
                payload: script.payload.document().clone(),
                steps: manifest.steps.iter().map(|step| (step.id.clone(), step.title.clone())).collect(),
            }
        };
        self.catalog.iter().map(info).collect()
    }

    fn accept<'a>(
        &'a self,
        kind: &'a str,
        owner: Uuid,
        input: Value,
    ) -> BoxFuture<'a, Result<AcceptedScript, Refusal>> {
        self.accepted(kind, owner, input).boxed()
    }

    fn reseal<'a>(
        &'a self,
        job: &'a JobRecord,
        owner: Uuid,
        secrets: Map<String, Value>,
    ) -> BoxFuture<'a, Result<(Sealed, Duration), Refusal>> {
        self.resealed(job, owner, secrets).boxed()
    }

    fn open(&self, owner: Uuid, sealed: &Sealed) -> Result<Value, Failure> {
        let bond = Bond { owner, part: SecretPart::Result };
        let keys = self.keys.as_ref().ok_or_else(|| Error::NoKey(sealed.key_id.clone()));
        let opened = keys.and_then(|keys| match keys.open(bond, sealed) {
            Err(Error::NoKey(_)) => keys.reread()?.open(bond, sealed),
            opened => opened,
        });
        let opened = opened.map_err(|error| {
            tracing::error!(%error, "secrets that came of a script cannot be opened");
            let message =
                "The secrets cannot be opened by this process. Ask the operator to bring it its keys";
            Failure::retryable(ErrorCode::Busy, message)
        })?;
        serde_json::to_value(opened).map_err(|_| ErrorCode::Unknown.into())
    }
}

/// Whether secrets that are sent again are exactly those that a job has.
fn check_names(expected: &BTreeSet<String>, given: &Map<String, Value>) -> Result<(), Refusal> {
    let all = expected.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let refuse = |name: &str, why: String| Err(Refusal::Secrets(Some(name.to_owned()), why));
    if let Some(unknown) = given.keys().find(|name| !expected.contains(*name)) {
        let takes = if all.is_empty() { "It has none.".to_owned() } else { format!("It has: {all}.") };
        return refuse(
            unknown,
            format!("secrets names {unknown:?}, which is no secret of this job. {takes}"),
        );
    }
    match expected.iter().find(|name| !given.contains_key(*name)) {
        Some(missing) => {
            refuse(missing, format!("secrets lacks {missing:?}. Send all of this job's again: {all}."))
        }
        None => Ok(()),
    }
}

fn invalid(wrong: Vec<ode_script::Invalid>) -> Refusal {
    Refusal::Invalid(wrong.into_iter().map(|wrong| (wrong.path, wrong.message)).collect())
}

fn unsealed(error: &Error) -> Refusal {
    tracing::error!(%error, "secrets cannot be sealed");
    Refusal::Failed(ErrorCode::Unknown.into())
}
