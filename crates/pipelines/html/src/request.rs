//! Input, configuration and result of a job. No other file knows the keys of their JSON.

use crate::machine::HTML;
use ode_job::{Claimed, ErrorCode, Failure, SourceDocument};
use ode_pdf_html::{ConversionConfig, Pages, ZOOMS};
use ode_store::Publisher;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The kind of HTML, of which there is one.
pub(super) const KIND: &str = "html5";

/// The key of [`HtmlInput::webhook_url`], under which the database finds it.
pub(super) const WEBHOOK_URL: &str = "webhook_url";

/// Which document, and where its files go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HtmlInput {
    /// Digest of the request that the job was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    /// Address of the document, if it was not stored with the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input_s3_path: Option<String>,
    /// SHA-256 that the document must have, in hexadecimal digits, if the caller named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input_sha256: Option<String>,
    /// Prefix below which the files are to appear as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_s3_prefix: Option<String>,
    /// Address that a message goes to when the job ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) webhook_url: Option<String>,
    /// The configuration as it was sent: a database may write its own copy in another order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) config_text: Option<String>,
    /// The document that was stored with the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) document: Option<SourceDocument>,
}

impl HtmlInput {
    /// Reads the input of a job. One that was not made by this crate and does not fit reads as empty.
    pub(super) fn of(input: &Value) -> Self {
        HtmlInput::deserialize(input).unwrap_or_default()
    }

    /// The input as a job stores it.
    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("texts and numbers are always valid JSON")
    }

    /// The last part of the document's address.
    pub(super) fn address_name(&self) -> Option<&str> {
        self.input_s3_path.as_deref()?.rsplit('/').next()
    }
}

/// Reads what a claimed job asks for.
pub(super) fn read(job: &Claimed) -> Result<(HtmlInput, ConversionConfig), Failure> {
    let invalid = |why: String| Failure::rejected(ErrorCode::Invalid, why);
    let config = read_config(&job.config).map_err(|error| invalid(error.to_string()))?;
    let input = HtmlInput::deserialize(&job.input);
    let input = input.map_err(|error| invalid(format!("The input of the job does not fit: {error}")))?;
    Ok((input, config))
}

/// The field with the address of the document.
pub(super) const INPUT: &str = "input_s3_path";
/// The field with the prefix of the files.
pub(super) const OUTPUT: &str = "output_s3_prefix";

/// Says which field names the place that is not open, or what is no address.
pub(super) fn in_field(field: &str, why: &Failure) -> Failure {
    Failure::rejected(why.code, format!("{field}: {}", why.message))
}

/// The prefixes below which files of jobs appear beside our own storage.
pub const PUBLISHER: Publisher = Publisher { pipeline: HTML, prefix: published_at };

/// Prefix below which the files of a job appear beside our own storage, if it names one.
pub(super) fn published_at(input: &Value) -> Option<&str> {
    input[OUTPUT].as_str()
}

/// What a job that ended well returns.
#[derive(Debug, Serialize)]
pub(super) struct HtmlResult {
    pub(super) pages: usize,
    pub(super) files: usize,
    pub(super) warnings: usize,
    pub(super) output_s3_prefix: Option<String>,
    pub(super) telemetry: Value,
}

/// The key of a result, and of the last event of a job that failed, that says what an attempt cost.
pub(super) const TELEMETRY: &str = "telemetry";

/// The one key of a configuration that is the caller's own: kept, given back, and read by nobody here.
const CUSTOM: &str = "custom";

/// A configuration that cannot be used, with the path of the key that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub(super) struct BadConfig {
    /// Where, such as `config.zoom`.
    pub(super) path: String,
    /// What to write there, in a sentence.
    pub(super) why: String,
}

/// Reads a configuration. Keys that the converter does not know are refused, but for `custom`.
pub(super) fn read_config(config: &Value) -> Result<ConversionConfig, BadConfig> {
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
        "format" => (value == KIND, "write \"html5\", the one format there is.".into()),
        CUSTOM => return None,
        _ => {
            let known = "zoom, embed_fonts, single_file, pages and format";
            (false, format!("there is no such key. There are {known}, and {CUSTOM} for what is yours."))
        }
    };
    (!will_do).then_some(wanted)
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

    #[test]
    fn an_input_is_stored_without_what_it_has_not_and_read_back() {
        let document = SourceDocument { name: Some("a.pdf".into()), ..SourceDocument::default() };
        let input = HtmlInput {
            request: Some("digest".into()),
            output_s3_prefix: Some("s3://outbox/a".into()),
            document: Some(document),
            ..HtmlInput::default()
        };
        let json = input.to_json();
        let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["request", "output_s3_prefix", "document"]);
        assert_eq!(HtmlInput::of(&json), input);
        assert_eq!(published_at(&json), Some("s3://outbox/a"));
    }

    #[test]
    fn an_input_that_does_not_fit_reads_as_empty() {
        for json in [json!(null), json!([1]), json!({ "input_s3_path": 7 })] {
            assert_eq!(HtmlInput::of(&json), HtmlInput::default(), "{json}");
        }
        let address = HtmlInput::of(&json!({ "input_s3_path": "s3://inbox/new/a.pdf", "other": 1 }));
        assert_eq!(address.address_name(), Some("a.pdf"));
    }

    /// A key that the converter learns is one that can be asked for.
    #[test]
    fn every_key_of_the_converter_is_known() {
        let known = serde_json::to_value(ConversionConfig::default()).unwrap();
        assert_eq!(read_config(&known), Ok(ConversionConfig::default()));
    }
}
