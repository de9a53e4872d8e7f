//! Accepting scripts: payloads are checked and their secrets sealed before anything of them is stored.

use crate::payload::{Secrets, join, secret_names};
use crate::record::{Sealed, SecretPart};
use crate::sql::{self, SealSide};
use crate::{Bond, Catalog, Error, Keyring, Script, SealTo};
use ode_http::problem::Problem;
use ode_job::{ErrorCode, Failure, JobRecord};
use ode_store::Store;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What the routes share: the types of scripts, and the web side's keys. It can seal to workers, and open what they seal to it.
#[derive(Debug)]
pub struct Intake {
    pub(crate) catalog: Catalog,
    keys: Option<Keyring>,
    keep_secrets: Duration,
}

/// A payload that can become a job.
pub(crate) struct AcceptedPayload {
    /// The script that it is for.
    pub(crate) script: Arc<Script>,
    /// What was sent, with the names of secrets in place of the secrets.
    pub(crate) input: Value,
    /// Those, if there were some.
    pub(crate) secret: Option<Sealed>,
    /// How long they are kept for somebody who tries the job again after it failed.
    pub(crate) keep_secret: Duration,
    /// Jobs with the same do not run at once.
    pub(crate) turn: Option<String>,
}

impl Intake {
    /// Accepts scripts of these types; secrets of jobs that failed are kept for `keep_secrets`.
    #[must_use]
    pub fn new(catalog: Catalog, keys: Option<Keyring>, keep_secrets: Duration) -> Self {
        Intake { catalog, keys, keep_secrets }
    }

    fn script(&self, kind: &str) -> Result<Arc<Script>, Problem> {
        let none = "There is no script of that type. GET /v1/scripts lists those there are.";
        self.catalog.get(kind).ok_or_else(|| Problem::new(ErrorCode::NotFound, none))
    }

    /// Checks what is sent to a script, and takes the secrets out of it under seal.
    pub(crate) async fn accept(
        &self,
        store: &Store,
        kind: &str,
        owner: Uuid,
        input: Value,
    ) -> Result<AcceptedPayload, Problem> {
        let script = self.script(kind)?;
        script.check(&input).map_err(invalid)?;
        let turn = script.concurrency_key(&owner.to_string(), &input);
        let (input, secrets) = script.split(input);
        let secret = seal(store, owner, &secrets).await?;
        Ok(AcceptedPayload { script, input, secret, keep_secret: self.keep_secrets, turn })
    }

    /// Seals other secrets for a job that was sent with this input: all of them, by name. They come with how long they are kept.
    pub(crate) async fn reseal(
        &self,
        store: &Store,
        job: &JobRecord,
        owner: Uuid,
        secrets: Map<String, Value>,
    ) -> Result<(Sealed, Duration), Problem> {
        let script = self.script(&job.kind)?;
        check_names(&secret_names(&job.input), &secrets)?;
        let mut given = Secrets::default();
        secrets.into_iter().for_each(|(name, value)| given.insert(name, value));
        let whole = join(job.input.clone(), &given);
        script.check(&whole).map_err(invalid)?;
        let (input, secrets) = script.split(whole);
        let sealed = seal(store, owner, &secrets).await?.filter(|_| input == job.input);
        let changed = || {
            let why = "The script's schema has changed since this job was sent, and other fields are secret now. Send \
                       it as a new job.";
            Problem::invalid(why).at("secrets")
        };
        sealed.map(|sealed| (sealed, self.keep_secrets)).ok_or_else(changed)
    }

    /// Opens secrets that came of a job.
    pub(crate) fn open(&self, owner: Uuid, sealed: &Sealed) -> Result<Value, Problem> {
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

/// Seals secrets to workers; none if there are none.
async fn seal(store: &Store, owner: Uuid, secrets: &Secrets) -> Result<Option<Sealed>, Problem> {
    if secrets.is_empty() {
        return Ok(None);
    }
    let key = sql::seal_key(store.sql(), SealSide::Worker).await.map_err(|error| {
        tracing::error!(%error, "the workers' key cannot be read");
        Problem::from(ErrorCode::DatabaseUnavailable)
    })?;
    let none = || {
        let message =
            "No worker has made a key for secrets yet. Start one with `ode worker`, then send this again";
        Failure::retryable(ErrorCode::Busy, message)
    };
    let to = key.and_then(|key| SealTo::new(&key.public)).ok_or_else(none)?;
    to.seal(Bond { owner, part: SecretPart::Input }, secrets).map(Some).map_err(|error| {
        tracing::error!(%error, "secrets cannot be sealed");
        ErrorCode::Unknown.into()
    })
}

/// Checks that secrets which are sent again are exactly those that a job has.
fn check_names(expected: &BTreeSet<String>, given: &Map<String, Value>) -> Result<(), Problem> {
    let all = expected.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let refuse = |name: &str, why: String| Err(Problem::invalid(why).at(format!("secrets.{name}")));
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

/// A payload that its schema does not allow.
fn invalid(wrong: Vec<crate::Invalid>) -> Problem {
    let wrong: Vec<_> = wrong.into_iter().map(|wrong| (written(&wrong.path), wrong.message)).collect();
    let each: Vec<String> = wrong.iter().map(|(path, why)| format!("{path} {why}")).collect();
    let first = wrong.into_iter().next().map_or_else(String::new, |(path, _)| path);
    Problem::invalid(format!("{}.", each.join("; "))).at(first)
}

/// The place in the input that a JSON pointer names, written as in every problem: `input.itemTags[0].name`.
fn written(pointer: &str) -> String {
    let part = |name: &str| match name.parse::<usize>() {
        Ok(place) => format!("[{place}]"),
        Err(_) => format!(".{}", name.replace("~1", "/").replace("~0", "~")),
    };
    format!("input{}", pointer.split('/').skip(1).map(part).collect::<String>())
}
