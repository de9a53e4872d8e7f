//! What a job asks for. The only file that knows the keys of its configuration; those of its document are the engine's.

use crate::conversion::ask::{Ask, Output, Places, To};
use crate::machine::XML;
use ode_http::intake::Wanted;
use ode_job::{Claimed, ErrorCode, Failure, NewJob, SourceDocument};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The type of jobs whose mapping is chosen by the document.
pub(super) const AUTO: &str = "auto";

/// Configuration of a job as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Config {
    /// Which XML, by its name; our own where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
}

impl Config {
    /// Reads the configuration of a job. One that is no object, as SQL may have stored it, asks for nothing.
    pub(super) fn read(config: &Value) -> Result<Self, Failure> {
        if !config.is_object() {
            return Ok(Self::default());
        }
        Self::deserialize(config).map_err(|_| {
            let message = "`output` is not a name. Use one of: own, ubl, cii.";
            Failure::rejected(ErrorCode::Invalid, message)
        })
    }
}

/// A job's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// A name, or [`AUTO`].
    pub(super) mapping: String,
    /// Which XML.
    pub(super) output: Output,
}

impl Request {
    /// Reads the request of a claimed job.
    pub(super) fn read(job: &Claimed) -> Result<Self, Failure> {
        let output = Config::read(&job.config)?.output.map(|name| name.parse::<Output>()).transpose();
        let output = output.map_err(|message| Failure::rejected(ErrorCode::Invalid, message))?;
        Ok(Request { mapping: job.kind.clone(), output: output.unwrap_or_default() })
    }

    /// The same as the converter understands it.
    pub(super) fn ask(&self) -> Ask {
        Ask {
            to: To::Xml,
            mapping: (self.mapping != AUTO).then(|| self.mapping.clone()),
            output: self.output,
            page_only: false,
            // For whoever looks at the result later: what is kept beside it does not change it.
            places: Places::Beside,
        }
    }
}

/// Makes the job of a document that somebody sent.
pub(super) fn new_job(document: SourceDocument, Wanted { mapping, output }: Wanted<'_>) -> NewJob {
    let mut job = NewJob::new(XML, mapping, document.into_input());
    job.config = json!(Config { output: output.map(str::to_owned) });
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_holds_nothing_that_was_not_asked_for() {
        let job = |output| {
            let document = SourceDocument { name: Some("a.pdf".into()), ..SourceDocument::default() };
            new_job(document, Wanted { mapping: "auto", output })
        };
        assert_eq!(job(None).config, json!({}));
        assert_eq!(job(Some("ubl")).config, json!({ "output": "ubl" }));
        assert_eq!(job(None).input["document"]["name"], "a.pdf");
    }
}
