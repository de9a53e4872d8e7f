//! Bodies of requests as JSON, with the path of what is wrong in them.

use crate::server::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use ode_job::{ErrorCode, repeated_name};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::str::FromStr;
use std::time::Duration;

/// A body that has not come by then does not.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a request says that its body is of this type.
pub fn is_of_type(headers: &HeaderMap, wanted: &str) -> bool {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

pub fn wrong_type(takes: &str) -> Problem {
    let detail = format!("Send {takes}, and say so in the header Content-Type.");
    Problem::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::Invalid, detail)
}

/// The whole body, if it is no larger than this.
pub async fn whole(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
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

/// What a reader of JSON says before and after what was sent, which may have been a secret.
const WANTED: &str = ", expected ";
const UNKNOWN_FIELD: &str = "unknown field ";
const MISSING_FIELD: &str = "missing field `";

/// Types as our reader names them, and as people do. The one number that may be negative is a priority.
const TYPES: [(&str, &str); 11] = [
    ("a map", "an object"),
    ("a sequence", "a list"),
    ("a string", "a text"),
    ("a boolean", "true or false"),
    ("i32", "a whole number from -1000 to 1000"),
    ("i64", "a whole number such as 10"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 on"),
    ("usize", "a whole number from 0 on"),
    ("f64", "a number"),
];

/// What is wrong with a value, from what a reader of JSON says of it: what is wanted in its place, without the names of our
/// types, and without what was sent.
fn plainly(said: &str) -> String {
    let Some((sent, wanted)) = said.rsplit_once(WANTED) else {
        return said.trim_end_matches('.').to_owned();
    };
    let wanted = wanted.replace('`', "");
    if sent.starts_with(UNKNOWN_FIELD) {
        return format!("there is no such field. Those there are: {}", wanted.trim_start_matches("one of "));
    }
    let plain = TYPES.iter().find(|(ours, _)| *ours == wanted).map(|(_, plain)| *plain);
    let plain = plain.unwrap_or(if wanted.starts_with("struct ") { "an object" } else { &wanted });
    format!("write {plain}")
}

/// Something that should be JSON is not: where to look.
pub fn not_json(what: &str, error: &serde_json::Error) -> Problem {
    let place = format!("line {}, column {}", error.line(), error.column());
    let said = error.to_string();
    let detail = if error.is_eof() {
        format!("{what} ends early, at {place}. Send all of its JSON.")
    } else if said.starts_with("recursion limit") {
        format!(
            "{what} is nested too deeply at {place}. Send it with fewer lists and objects inside each other."
        )
    } else if said.starts_with("number out of range") {
        format!("{what} holds a number that is too large, at {place}. Write it as a text.")
    } else {
        format!("{what} is not JSON that can be read. Look at {place}.")
    };
    Problem::invalid(detail)
}

/// What does not fit, with its path.
fn misfit(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    if !error.inner().is_data() {
        return not_json("The request", error.inner());
    }
    let said = error.inner().to_string();
    // Where it stands in the text helps nobody who knows its path.
    let said = said.rfind(" at line ").map_or(said.as_str(), |place| &said[..place]);
    let path = Some(error.path().to_string()).filter(|path| path != ".");
    if let Some(name) = said.strip_prefix(MISSING_FIELD).map(|name| name.trim_end_matches('`')) {
        let path = path.map_or_else(|| name.to_owned(), |parent| format!("{parent}.{name}"));
        return Problem::invalid(format!("{path} is missing.")).at(path);
    }
    match path {
        Some(path) => Problem::invalid(format!("{path}: {}.", plainly(said))).at(path),
        None => Problem::invalid(format!("The request does not fit: {}.", plainly(said))),
    }
}

/// Reads something that is written as text, or nothing; `form` says how it is written.
pub fn written<'de, T: FromStr, D: Deserializer<'de>>(reader: D, form: &str) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(reader).map_err(|_| D::Error::custom(form))?;
    text.map(|text| text.parse().map_err(|_| D::Error::custom(form))).transpose()
}

/// Refuses JSON in which a name stands twice in an object, at any depth. `root` is what its path begins with.
pub fn refuse_repeated(json: &[u8], root: &str) -> Result<(), Problem> {
    let Some(path) = repeated_name(json, root) else { return Ok(()) };
    Err(Problem::invalid(format!("{path}: this name stands more than once. Keep one of them.")).at(path))
}

/// Reads a JSON object. What does not fit is told with its path.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    refuse_repeated(json, "")?;
    parse_outline(json)
}

/// The same where parts of it are looked at one by one later, and each is refused by itself.
pub fn parse_outline<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    // Fields without their names would be taken in their order.
    if json.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::invalid(
            "The request is a list. Send a JSON object, with the names of its fields.",
        ));
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| misfit(&error))?;
    reader.end().map_err(|_| Problem::invalid("Something follows the JSON of the request. Remove it."))?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;

    #[derive(Debug, Deserialize)]
    struct Asked {
        #[expect(dead_code, reason = "only read")]
        priority: i32,
    }

    fn detail<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> (Option<String>, String) {
        let problem = parse::<T>(json.as_bytes()).unwrap_err().document();
        (problem.path, problem.detail)
    }

    #[test]
    fn a_text_in_the_wrong_place_is_not_repeated() {
        for sent in ["hunter2", "hunter2\", expected", "hunter2, expected i32", "{\"token\":\"hunter2\"}"] {
            let (_, detail) = detail::<Asked>(&serde_json::json!({ "priority": sent }).to_string());
            assert!(detail.starts_with("priority: write a whole number"), "{detail}");
            assert!(!detail.contains("hunter2"), "{detail}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_path_and_in_words() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only read")]
        struct Request {
            external_id: String,
            #[serde(default)]
            config: Option<String>,
            #[serde(default)]
            priority: i32,
        }
        fn check(json: &str, path: Option<&str>, says: &str) {
            let (at, detail) = detail::<Request>(json);
            assert_eq!(at.as_deref(), path, "{detail}");
            assert!(detail.contains(says) && detail.ends_with('.'), "{detail}");
            for ours in ["expected", "struct", "invalid type", "EOF", "i32", "`"] {
                assert!(!detail.contains(ours), "{detail}");
            }
        }
        check("5", None, "write an object");
        check("{}", Some("external_id"), "external_id is missing");
        check(r#"{"external_id":7}"#, Some("external_id"), "write a text");
        check(
            r#"{"external_id":"a","priority":99999999999}"#,
            Some("priority"),
            "a whole number from -1000 to 1000",
        );
        check(
            r#"{"external_id":"a","urgent":1}"#,
            Some("urgent"),
            "no such field. Those there are: external_id,",
        );
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place_in_the_text() {
        for (json, says) in [
            (r#"{ "priority": 1, "#, "ends early, at line 1, column"),
            ("nope", "not JSON that can be read. Look at line 1, column"),
            ("", "ends early"),
        ] {
            let (path, detail) = detail::<Asked>(json);
            assert_eq!(path, None);
            assert!(detail.starts_with("The request ") && detail.contains(says), "{detail}");
        }
    }

    #[test]
    fn json_that_is_too_much_is_told_as_such() {
        for (json, says) in
            [("[".repeat(200), "nested too deeply"), ("1e999".into(), "a number that is too large")]
        {
            let error = serde_json::from_str::<serde_json::Value>(&json).unwrap_err();
            let detail = not_json("config", &error).document().detail;
            assert!(detail.starts_with("config ") && detail.contains(says), "{detail}");
        }
    }
}
