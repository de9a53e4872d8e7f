//! Payloads and results: whether they are right, and their secrets apart from the rest.

use crate::schema::{Invalid, Schema};
use crate::script::Script;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Stands where a secret was, with the secret's name.
const MARK: &str = "$secret";

/// The secrets of a payload or a result by name. A name is the secret's JSON pointer without its first slash:
/// `password`, `stripe/key`. What is in it is never shown.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secrets(BTreeMap<String, Value>);

impl Secrets {
    /// One secret.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Adds a secret.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.values()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        self.names().for_each(|name| {
            map.entry(&name, &"[redacted]");
        });
        map.finish()
    }
}

impl Script {
    /// Everything that is wrong with a payload.
    pub fn check(&self, payload: &Value) -> Result<(), Vec<Invalid>> {
        let mut found = self.payload.check(payload).err().unwrap_or_default();
        if !payload.is_object() {
            found.push(Invalid { path: String::new(), message: "must be an object".to_owned() });
        }
        refuse_marks(payload, "", &mut found);
        if found.is_empty() { Ok(()) } else { Err(found) }
    }

    /// Takes the secrets out of a payload. What remains may be stored and shown.
    pub fn split(&self, payload: Value) -> (Value, Secrets) {
        split(&self.payload, payload)
    }

    /// Whether a result's data is what the manifest promises, and its secrets apart from the rest.
    pub fn split_result(&self, data: Value) -> Result<(Value, Secrets), Vec<Invalid>> {
        let Some(schema) = &self.result else { return Ok((data, Secrets::default())) };
        schema.check(&data)?;
        Ok(split(schema, data))
    }
}

/// Puts secrets back where they were.
pub fn join(public: Value, secrets: &Secrets) -> Value {
    match public {
        Value::Object(fields) => match marked(&fields) {
            Some(name) => secrets.get(name).cloned().unwrap_or(Value::Null),
            None => fields.into_iter().map(|(name, value)| (name, join(value, secrets))).collect(),
        },
        Value::Array(items) => items.into_iter().map(|item| join(item, secrets)).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// The names of the secrets that were taken out of a payload.
pub fn secret_names(public: &Value) -> BTreeSet<String> {
    match public {
        Value::Object(fields) => match marked(fields) {
            Some(name) => BTreeSet::from([name.to_owned()]),
            None => fields.values().flat_map(secret_names).collect(),
        },
        Value::Array(items) => items.iter().flat_map(secret_names).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => BTreeSet::new(),
    }
}

fn split(schema: &Schema, mut value: Value) -> (Value, Secrets) {
    let mut secrets = Secrets::default();
    for pointer in schema.secrets(&value) {
        if let Some(place) = value.pointer_mut(&pointer) {
            let name = pointer.strip_prefix('/').unwrap_or(&pointer);
            secrets.insert(name, std::mem::replace(place, json!({ MARK: name })));
        }
    }
    (value, secrets)
}

/// Puts the names of secrets where they belong: a name may read like a secret itself, and have been hidden.
pub(crate) fn mark(mut data: Value, secrets: &Secrets) -> Value {
    for name in secrets.names() {
        if let Some(place) = data.pointer_mut(&format!("/{name}")) {
            *place = json!({ MARK: name });
        }
    }
    data
}

/// The name in `{"$secret": name}`.
fn marked(fields: &serde_json::Map<String, Value>) -> Option<&str> {
    fields.get(MARK).filter(|_| fields.len() == 1)?.as_str()
}

/// A payload from outside must not name a secret where it would then be put in.
fn refuse_marks(value: &Value, at: &str, found: &mut Vec<Invalid>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key(MARK) {
                let message = format!("must not have a field named {MARK}: secrets are given as they are");
                found.push(Invalid { path: at.to_owned(), message });
            }
            fields.iter().for_each(|(name, value)| refuse_marks(value, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, item)| refuse_marks(item, &format!("{at}/{index}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::tests::script;

    fn sample() -> Script {
        script(
            r#"{ "properties": {
                "email": { "type": "string" },
                "password": { "type": "string", "minLength": 4, "x-ode-secret": true },
                "stripe": { "properties": { "key": { "x-ode-secret": true } } }
            }, "required": ["password"] }"#,
        )
    }

    #[test]
    fn a_payload_is_split_and_joined_again() {
        let payload =
            json!({ "email": "a@b.c", "password": "hunter2", "stripe": { "key": ["k1"], "name": "n" } });
        let (public, secrets) = sample().split(payload.clone());
        let expected = json!({
            "email": "a@b.c",
            "password": { "$secret": "password" },
            "stripe": { "key": { "$secret": "stripe/key" }, "name": "n" },
        });
        assert_eq!(public, expected);
        assert_eq!(secrets.names().collect::<Vec<_>>(), ["password", "stripe/key"]);
        assert!(secret_names(&public).iter().eq(secrets.names()));
        assert_eq!(join(public, &secrets), payload);
    }

    #[test]
    fn secrets_are_not_shown() {
        let (_, secrets) = sample().split(json!({ "password": "hunter2" }));
        assert_eq!(format!("{secrets:?}"), r#"{"password": "[redacted]"}"#);
    }

    #[test]
    fn a_wrong_payload_is_explained_without_its_secret() {
        let found = sample().check(&json!({ "password": "abc", "email": 3 })).unwrap_err();
        let text = format!("{found:?}");
        assert!(text.contains("/email") && text.contains("at least 4") && !text.contains("abc"), "{text}");
        assert!(sample().check(&json!([])).is_err());
    }

    #[test]
    fn a_payload_cannot_name_a_secret() {
        let payload = json!({ "password": "hunter2", "stripe": { "note": [{ "$secret": "password" }] } });
        let found = sample().check(&payload).unwrap_err();
        assert_eq!(found[0].path, "/stripe/note/0");
    }
}
