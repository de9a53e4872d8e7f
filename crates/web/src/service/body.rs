//! Bodies of requests as JSON, with the path of what is wrong in them.

mod names;

use crate::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use ode_job::ErrorCode;
use serde::de::DeserializeOwned;
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

/// Numbers as our types name them, and as people do.
const NUMBERS: [(&str, &str); 5] = [
    ("expected i32", "expected a whole number from -2147483648 to 2147483647"),
    ("expected i64", "expected a whole number"),
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
    let plain = NUMBERS.iter().fold(said, |said, (ours, plain)| said.replace(ours, plain));
    plain.trim_end_matches('.').to_owned()
}

/// Refuses JSON in which a name stands twice in an object, at any depth. `root` is what its path begins with.
pub(crate) fn refuse_repeated(json: &[u8], root: &str) -> Result<(), Problem> {
    let Some(path) = names::repeated(json, root) else { return Ok(()) };
    Err(Problem::invalid(format!("{path}: this name stands more than once. Keep one of them.")))
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
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { format!("{path}: ") };
        Problem::invalid(format!("{at}{}.", plainly(&error.into_inner().to_string())))
    });
    let read = read?;
    reader.end().map_err(|_| Problem::invalid("Something follows the JSON of the request. Remove it."))?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

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
    fn a_number_that_does_not_fit_is_told_in_words() {
        let problem = parse::<Asked>(br#"{ "priority": 99999999999 }"#).unwrap_err();
        let detail = problem.document().detail;
        assert!(detail.starts_with("priority: ") && detail.contains("a whole number from"), "{detail}");
        assert!(!detail.contains("i32"), "{detail}");
    }
}
