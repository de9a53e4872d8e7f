//! The key that keeps jobs apart which would disturb each other, such as two that sign in to the same account.

use crate::script::Script;
use serde_json::Value;
use sha2::{Digest, Sha256};

impl Script {
    /// The key of a job with this payload, secrets included; none if the manifest asks for none, or if the payload
    /// has none of its fields. It is a digest, so that it may be stored: nobody reads an address from it.
    pub fn concurrency_key(&self, owner: &str, payload: &Value) -> Option<String> {
        let template = self.manifest.concurrency_key.as_deref()?;
        let fields = fields(template).ok()?;
        let values: Vec<&Value> =
            fields.iter().filter_map(|field| payload.pointer(&pointer(field))).collect();
        if values.is_empty() && !fields.is_empty() {
            return None;
        }
        let mut digest = Sha256::new();
        let parts = [owner.to_owned(), template.to_owned()];
        for part in parts.into_iter().chain(values.iter().map(ToString::to_string)) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        Some(hex::encode(digest.finalize()))
    }
}

/// The fields that a template names: `{restaurantName}`, `{login.email}`.
pub(crate) fn fields(template: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some((head, tail)) = rest.split_once('{') {
        let field = tail.split_once('}').filter(|(field, _)| !head.contains('}') && !field.is_empty());
        let Some((field, after)) = field else { return Err(wrong()) };
        found.push(field);
        rest = after;
    }
    if rest.contains('}') || template.is_empty() { Err(wrong()) } else { Ok(found) }
}

fn wrong() -> String {
    "a concurrency key is text with {field} for a field of the payload, such as \"{restaurantName}\""
        .to_owned()
}

fn pointer(field: &str) -> String {
    field.split('.').map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::tests::script_with;
    use serde_json::json;

    #[test]
    fn templates_name_fields() {
        assert_eq!(fields("{a}:{b.c}"), Ok(vec!["a", "b.c"]));
        assert_eq!(fields("one at a time"), Ok(vec![]));
        for wrong in ["", "{", "}", "{}", "{a", "a}{b}"] {
            assert!(fields(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn equal_fields_of_one_owner_make_equal_keys() {
        let script = script_with("concurrency_key = \"{login.email}\"", "{}");
        let key = |owner, email: &str| script.concurrency_key(owner, &json!({ "login": { "email": email } }));
        assert_eq!(key("o", "a@b.c"), key("o", "a@b.c"));
        assert_ne!(key("o", "a@b.c"), key("o", "b@b.c"));
        assert_ne!(key("o", "a@b.c"), key("p", "a@b.c"));
        assert!(!key("o", "a@b.c").unwrap().contains('@'));
        assert_eq!(script.concurrency_key("o", &json!({})), None);
        assert_eq!(script_with("", "{}").concurrency_key("o", &json!({})), None);
    }
}
