//! What a job asks for: which document, where its files go, and how it is converted.

use ode_html::{ConversionConfig, ZOOMS};
use ode_job::{Claimed, ErrorCode, Failure};
use serde_json::Value;

/// The one key of a configuration that is the caller's own: kept, given back, and read by nobody here.
const CUSTOM: &str = "custom";
/// How the list of the converter's keys ends, in what is said of a key that is none.
const LAST_KEY: &str = "`pages`, `format`";

/// A configuration that cannot be used, with the path of the key that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct BadConfig {
    /// Where, such as `config.zoom`.
    pub path: String,
    /// What is wrong there.
    pub why: String,
}

/// Reads a configuration. Keys that the converter does not know are refused, but for `custom`.
pub fn read_config(config: &Value) -> Result<ConversionConfig, BadConfig> {
    let mut known = config.clone();
    let Some(keys) = known.as_object_mut() else {
        let why = "expected an object such as {\"zoom\": 1.5}.".to_owned();
        return Err(BadConfig { path: "config".into(), why });
    };
    keys.shift_remove(CUSTOM);
    let config: ConversionConfig = serde_path_to_error::deserialize(known).map_err(|error| {
        let path = format!("config.{}", error.path());
        let why = error.into_inner().to_string().replace(LAST_KEY, &format!("{LAST_KEY}, `{CUSTOM}`"));
        BadConfig { path, why: format!("{}.", why.trim_end_matches('.')) }
    })?;
    if !ZOOMS.contains(&config.zoom) {
        let why =
            format!("{} is out of range; choose from {} to {}.", config.zoom, ZOOMS.start(), ZOOMS.end());
        return Err(BadConfig { path: "config.zoom".into(), why });
    }
    Ok(config)
}

/// What a job asks for.
pub(super) struct Order<'a> {
    pub(super) config: ConversionConfig,
    /// Where the document lies, if it was not stored with the job.
    pub(super) input: Option<&'a str>,
    /// What the document must be, if the caller said.
    pub(super) sha256: Option<&'a str>,
    /// Where the files are to appear as well.
    pub(super) output: Option<&'a str>,
}

impl<'a> Order<'a> {
    pub(super) fn read(job: &'a Claimed) -> Result<Self, Failure> {
        let config = read_config(&job.config)
            .map_err(|error| Failure::rejected(ErrorCode::Invalid, error.to_string()))?;
        Ok(Order {
            config,
            input: job.input["input_s3_path"].as_str(),
            sha256: job.input["input_sha256"].as_str(),
            output: job.input["output_s3_prefix"].as_str(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(config: Value, expected: Result<f64, (&str, &str)>) {
        let read = read_config(&config).map(|read| read.zoom);
        match (read, expected) {
            (Ok(zoom), Ok(expected)) => assert_eq!(zoom, expected, "{config}"),
            (Err(bad), Err((path, why))) => {
                assert_eq!(bad.path, path, "{config}");
                assert!(bad.why.contains(why) && bad.why.ends_with('.'), "{config}: {bad}");
            }
            (read, _) => panic!("{config}: {read:?}"),
        }
    }

    #[test]
    fn a_configuration_is_read_or_refused_with_the_path_of_its_fault() {
        check(json!({}), Ok(1.0));
        check(json!({ "zoom": 1.5, "embed_fonts": true, "format": "html5" }), Ok(1.5));
        check(json!({ "zoom": 2, "custom": { "anything": ["at", "all"] } }), Ok(2.0));
        check(json!({ "zoomm": 1.5 }), Err(("config.zoomm", "`format`, `custom`")));
        check(json!({ "zoom": "large" }), Err(("config.zoom", "expected f64")));
        check(json!({ "zoom": 11 }), Err(("config.zoom", "from 0.1 to 10")));
        check(json!({ "format": "pdf" }), Err(("config.format", "html5")));
        check(json!({ "pages": "5-2" }), Err(("config.pages", "not a range of pages")));
        check(json!([1]), Err(("config", "expected")));
        check(json!("html5"), Err(("config", "expected")));
    }
}
