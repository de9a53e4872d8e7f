//! Bodies of requests as JSON, with the path of what is wrong in them.

use crate::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use ode_job::{ErrorCode, repeated_name};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use std::str::FromStr;
use std::time::Duration;

/// A body that has not come by then does not.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a request says that its body is of this type.
pub(crate) fn is_of_type(headers: &HeaderMap, wanted: &str) -> bool {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

pub(crate) fn wrong_type(takes: &str) -> Problem {
    let detail = format!("Send {takes}, and say so in the header Content-Type.");
    Problem::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::Invalid, detail)
}

/// The whole body, if it is no larger than this.
pub(crate) async fn whole(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    match tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, bytes_max)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if is_too_long(&error) => Err(Problem::new(
            ErrorCode::PayloadTooLarge,
            format!(
                "The request is larger than {} KB, which is the limit. Send less at a time.",
                bytes_max >> 10
            ),
        )),
        Ok(Err(_)) => Err(Problem::invalid("The request ends early. Send it again.")),
        Err(_) => Err(Problem::too_slow("The request took too long to arrive. Send it again.")),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string().contains("length limit"))
}

/// Around a text that is repeated where something else was expected.
const QUOTED: &str = ": string \"";
const EXPECTED: &str = "\", expected";
/// Where the last of these goes on in words.
const EXPECTED_AT: usize = "\", ".len();

/// Before the name of a type of ours.
const STRUCT: &str = "expected struct ";

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Types as our reader names them, and as people do. The one number that may be negative is a priority.
const TYPES: [(&str, &str); 9] = [
    ("expected a map", "expected an object"),
    ("expected i32", "expected a whole number from -1000 to 1000"),
    ("expected i64", "expected a whole number"),
    ("expected u32", "expected a whole number from 0 on"),
    ("expected a sequence", "expected a list"),
    ("expected a boolean", "expected true or false"),
    ("expected u64", "expected a whole number from 0 on"),
    ("expected usize", "expected a whole number from 0 on"),
    ("expected f64", "expected a number"),
];

/// What a reader of JSON says, without the names of our types, and without a text that may have been a secret.
fn plainly(message: &str) -> String {
    let value = message.find(QUOTED).zip(message.rfind(EXPECTED)).filter(|(from, to)| from < to);
    let said = match value {
        Some((from, to)) => format!("{}: text, {}", &message[..from], &message[to + EXPECTED_AT..]),
        None => message.to_owned(),
    };
    let plain = TYPES.iter().fold(said, |said, (ours, plain)| said.replace(ours, plain));
    let plain = match plain.split_once(STRUCT) {
        Some((before, named)) => {
            format!("{before}expected an object{}", named.trim_start_matches(is_of_name))
        }
        None => plain,
    };
    plain.trim_end_matches('.').to_owned()
}

/// What is wrong. Where it stands in the text helps who wrote what is no JSON; anything else is known by its path.
fn said(error: &serde_json::Error) -> String {
    let said = error.to_string();
    match said.rfind(" at line ").filter(|_| error.is_data()) {
        Some(place) => said[..place].to_owned(),
        None => said,
    }
}

/// Reads something that is written as text, or nothing; `form` says how it is written.
pub(crate) fn written<'de, T: FromStr, D: Deserializer<'de>>(
    reader: D,
    form: &str,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(reader).map_err(|_| D::Error::custom(form))?;
    text.map(|text| text.parse().map_err(|_| D::Error::custom(form))).transpose()
}

/// Refuses JSON in which a name stands twice in an object, at any depth. `root` is what its path begins with.
pub(crate) fn refuse_repeated(json: &[u8], root: &str) -> Result<(), Problem> {
    let Some(path) = repeated_name(json, root) else { return Ok(()) };
    Err(Problem::invalid(format!("{path}: this name stands more than once. Keep one of them.")).at(path))
}

/// Reads a JSON object. What does not fit is told with its path.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    refuse_repeated(json, "")?;
    parse_outline(json)
}

/// The same where parts of it are looked at one by one later, and each is refused by itself.
pub(crate) fn parse_outline<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    // Fields without their names would be taken in their order.
    if json.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::invalid(
            "The request is a list. Send a JSON object, with the names of its fields.",
        ));
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        // What is no JSON has no fields, and all of a request no path.
        let path = Some(error.path().to_string()).filter(|path| error.inner().is_data() && path != ".");
        let path = path.unwrap_or_default();
        let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
        Problem::invalid(format!("{at}{}.", plainly(&said(error.inner())))).at(path)
    });
    let read = read?;
    reader.end().map_err(|_| Problem::invalid("Something follows the JSON of the request. Remove it."))?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Asked {
        #[expect(dead_code, reason = "only read")]
        priority: i32,
    }

    #[test]
    fn a_text_in_the_wrong_place_is_not_repeated() {
        for sent in ["hunter2", "hunter2\", expected", "{\"token\":\"hunter2\"}"] {
            let body = serde_json::json!({ "priority": sent }).to_string();
            let detail = parse::<Asked>(body.as_bytes()).unwrap_err().document().detail;
            assert!(detail.starts_with("priority: invalid type: text, expected a whole number"), "{detail}");
            assert!(!detail.contains("hunter2"), "{detail}");
        }
    }

    #[test]
    fn what_should_be_a_request_is_told_without_the_name_of_our_type() {
        for body in [&b"5"[..], b"null"] {
            let detail = parse_outline::<Asked>(body).unwrap_err().document().detail;
            assert!(detail.ends_with("expected an object."), "{detail}");
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place_in_the_text() {
        let problem = parse::<Asked>(br#"{ "priority": 1, "#).unwrap_err().document();
        assert_eq!(problem.path, None);
        assert!(
            problem.detail.starts_with("EOF") && problem.detail.contains("line 1 column"),
            "{}",
            problem.detail
        );
    }

    #[test]
    fn a_number_that_does_not_fit_is_told_in_words() {
        let problem = parse::<Asked>(br#"{ "priority": 99999999999 }"#).unwrap_err();
        let detail = problem.document().detail;
        assert!(
            detail.starts_with("priority: ") && detail.contains("a whole number from -1000 to 1000"),
            "{detail}"
        );
        assert!(!detail.contains("i32"), "{detail}");
    }
}
