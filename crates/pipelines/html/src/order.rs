//! What a job asks for: which document, where its files go, and how it is converted.

use ode_job::{Claimed, ErrorCode, Failure};
use ode_pdf_html::{ConversionConfig, Pages, ZOOMS};
use serde_json::{Map, Value};

/// The one key of a configuration that is the caller's own: kept, given back, and read by nobody here.
const CUSTOM: &str = "custom";
/// A configuration that cannot be used, with the path of the key that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct BadConfig {
    /// Where, such as `config.zoom`.
    pub path: String,
    /// What to write there, in a sentence.
    pub why: String,
}

/// Reads a configuration. Keys that the converter does not know are refused, but for `custom`.
pub fn read_config(config: &Value) -> Result<ConversionConfig, BadConfig> {
    let whole = |why: String| BadConfig { path: "config".into(), why };
    let keys = config.as_object();
    let keys = keys.ok_or_else(|| whole("write an object such as {\"zoom\": 1.5}.".into()))?;
    if let Some((key, why)) = keys.iter().find_map(|(key, value)| Some((key, fault(key, value)?))) {
        return Err(BadConfig { path: format!("config.{key}"), why });
    }
    let known: Map<String, Value> = keys.clone().into_iter().filter(|(key, _)| key != CUSTOM).collect();
    serde_json::from_value(known.into()).map_err(|error| whole(format!("it cannot be used: {error}.")))
}

/// What to write in the place of a value that will not do.
fn fault(key: &str, value: &Value) -> Option<String> {
    let (will_do, wanted) = match key {
        "zoom" => {
            let wanted = format!("write a number from {} to {}.", ZOOMS.start(), ZOOMS.end());
            (value.as_f64().is_some_and(|zoom| ZOOMS.contains(&zoom)), wanted)
        }
        "embed_fonts" | "single_file" => (value.is_boolean(), "write true or false.".into()),
        "pages" => {
            let wanted =
                "write one page such as \"3\", a range such as \"2-5\", or \"4-\" for all from page 4 on.";
            let is_range = value.as_str().is_some_and(|text| text.parse::<Pages>().is_ok());
            (is_range || value.is_null(), wanted.into())
        }
        "format" => (value == "html5", "write \"html5\", the one format there is.".into()),
        CUSTOM => return None,
        _ => {
            let known = "zoom, embed_fonts, single_file, pages and format";
            (false, format!("there is no such key. There are {known}, and {CUSTOM} for what is yours."))
        }
    };
    (!will_do).then_some(wanted)
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
        check(json!({ "pages": null }), Ok(1.0));
        check(json!({ "zoomm": 1.5 }), Err(("config.zoomm", "pages and format, and custom")));
        check(json!({ "zoom": "large" }), Err(("config.zoom", "a number from 0.1 to 10")));
        check(json!({ "zoom": 11 }), Err(("config.zoom", "a number from 0.1 to 10")));
        check(json!({ "zoom": null }), Err(("config.zoom", "a number from 0.1 to 10")));
        check(json!({ "single_file": 1 }), Err(("config.single_file", "true or false")));
        check(json!({ "format": "pdf" }), Err(("config.format", "html5")));
        check(json!({ "pages": "5-2" }), Err(("config.pages", "a range such as")));
        check(json!({ "pages": 3 }), Err(("config.pages", "a range such as")));
        check(json!([1]), Err(("config", "an object")));
        check(json!("html5"), Err(("config", "an object")));
    }

    /// A key that the converter learns is one that can be asked for.
    #[test]
    fn every_key_of_the_converter_is_known() {
        let known = serde_json::to_value(ConversionConfig::default()).unwrap();
        assert_eq!(read_config(&known), Ok(ConversionConfig::default()));
    }
}
