//! Schemas table by table: what is accepted, what is said about the rest, what is refused when it is read.

use super::*;
use serde_json::json;

fn check(schema: &Value, value: &Value, expected: &[(&str, &str)]) {
    let found = Schema::read(schema.clone()).unwrap().check(value).err().unwrap_or_default();
    let found: Vec<_> = found.iter().map(|wrong| (wrong.path.as_str(), wrong.message.as_str())).collect();
    assert_eq!(found, expected, "{value} against {schema}");
}

fn refused(schema: Value, place: &str) {
    let error = Schema::read(schema).unwrap_err();
    assert_eq!(error.place, place, "{error}");
}

#[test]
fn kinds_and_bounds() {
    check(&json!({ "type": "string" }), &json!(1), &[("", "must be text")]);
    check(&json!({ "type": ["string", "null"] }), &json!(1), &[("", "must be text or null")]);
    check(&json!({ "type": "integer" }), &json!(2.0), &[]);
    check(&json!({ "type": "integer" }), &json!(2.5), &[("", "must be a whole number")]);
    check(&json!({ "minLength": 2, "maxLength": 3 }), &json!("ää"), &[]);
    check(&json!({ "maxLength": 3 }), &json!("abcd"), &[("", "must have at most 3 characters")]);
    check(&json!({ "minimum": 0, "maximum": 5 }), &json!(-1), &[("", "must be 0 or more")]);
    check(&json!({ "exclusiveMaximum": 5 }), &json!(5), &[("", "must be less than 5")]);
    check(&json!({ "multipleOf": 0.01 }), &json!(2.34), &[]);
    check(&json!({ "multipleOf": 0.01 }), &json!(2.345), &[("", "must be a multiple of 0.01")]);
    check(&json!({ "enum": ["a", 1] }), &json!(1.0), &[]);
    check(&json!({ "enum": [[1], { "a": 1, "b": 2 }] }), &json!([1.0]), &[]);
    check(&json!({ "enum": [[1], { "a": 1, "b": 2 }] }), &json!({ "b": 2.0, "a": 1 }), &[]);
    check(
        &json!({ "enum": [9007199254740993_u64] }),
        &json!(9007199254740992_u64),
        &[("", "must be 9007199254740993")],
    );
    check(&json!({ "minLength": 2.0 }), &json!("ab"), &[]);
    check(&json!({ "enum": ["a", 1] }), &json!("b"), &[("", "must be \"a\" or 1")]);
    check(&json!({ "const": 1 }), &json!(2), &[("", "must be 1")]);
    check(&json!({ "pattern": "^#[0-9A-F]{6}$" }), &json!("#FF0000"), &[]);
    check(&json!(false), &json!(1), &[("", "must not be given")]);
    check(&json!(true), &json!(1), &[]);
}

#[test]
fn objects_and_lists() {
    let tags = json!({
        "type": "object",
        "required": ["tags"],
        "additionalProperties": false,
        "properties": {
            "tags": {
                "type": "array",
                "minItems": 1,
                "uniqueItems": true,
                "items": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } },
            },
        },
    });
    check(&tags, &json!({ "tags": [{ "name": "Vegan" }] }), &[]);
    check(&tags, &json!({}), &[("/tags", "is missing")]);
    check(
        &tags,
        &json!({ "tags": [{ "name": 1 }, {}], "a/b": 1 }),
        &[
            ("/tags/0/name", "must be text"),
            ("/tags/1/name", "is missing"),
            ("/a~1b", "is not known here; there are tags"),
        ],
    );
    check(&tags, &json!({ "tags": [] }), &[("/tags", "must have at least 1 entries")]);
    check(
        &tags,
        &json!({ "tags": [{ "name": "a" }, { "name": "a" }] }),
        &[("/tags", "must not have the same entry twice")],
    );
    check(
        &json!({ "uniqueItems": true }),
        &json!([{ "a": 1, "b": 2 }, { "b": 2, "a": 1 }]),
        &[("", "must not have the same entry twice")],
    );
    check(&json!({ "uniqueItems": true }), &json!([[1, 11], [11, 1], ["1"], [1], [true], "1,"]), &[]);
    check(
        &json!({ "additionalProperties": { "type": "number" } }),
        &json!({ "a": "b" }),
        &[("/a", "must be a number")],
    );
    check(
        &json!({ "patternProperties": { "^x": { "type": "number" } } }),
        &json!({ "xa": "b", "y": "b" }),
        &[("/xa", "must be a number")],
    );
    check(
        &json!({ "prefixItems": [{ "type": "string" }], "items": false }),
        &json!(["a", 1]),
        &[("/1", "must not be given")],
    );
    check(&json!({ "contains": { "const": 1 } }), &json!([2]), &[("", "lacks an entry that it must have")]);
    check(&json!({ "dependentRequired": { "a": ["b"] } }), &json!({ "a": 1 }), &[("/b", "is missing")]);
    check(
        &json!({ "propertyNames": { "maxLength": 1 } }),
        &json!({ "ab": 1 }),
        &[("/ab", "must have at most 1 characters")],
    );
}

#[test]
fn schemas_made_of_schemas() {
    let either = json!({ "anyOf": [{ "type": "string" }, { "minimum": 5 }] });
    check(&either, &json!(7), &[]);
    check(&either, &json!(3), &[("", "is none of the things that it may be")]);
    let one = json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 5 }] });
    check(&one, &json!(3), &[]);
    check(&one, &json!(7), &[("", "can be read in more than one way; leave out what makes it unclear")]);
    check(&json!({ "not": { "const": 1 } }), &json!(1), &[("", "must not be like this")]);
    let depends = json!({
        "if": { "properties": { "mode": { "const": "replace" } }, "required": ["mode"] },
        "then": { "required": ["confirm"] },
        "else": { "properties": { "confirm": false } },
    });
    check(&depends, &json!({ "mode": "replace" }), &[("/confirm", "is missing")]);
    check(&depends, &json!({ "confirm": 1 }), &[("/confirm", "must not be given")]);
    let tree = json!({ "properties": { "left": { "$ref": "#" }, "value": { "$ref": "#/$defs/number" } },
        "$defs": { "number": { "type": "number" } } });
    check(
        &tree,
        &json!({ "left": { "left": { "value": "x" } } }),
        &[("/left/left/value", "must be a number")],
    );
}

#[test]
fn a_schema_that_only_names_itself_ends() {
    let schema = Schema::read(json!({ "$ref": "#" })).unwrap();
    assert!(schema.check(&json!(1)).is_err());
    assert!(schema.secrets(&json!(1)).is_empty());
}

#[test]
fn formats() {
    for (format, right, wrong) in [
        ("email", "owner@restaurant.com", "owner at restaurant"),
        ("uri", "http://127.0.0.1:8080/", "menu.csv"),
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T12:00:00+01:00", "2026-02-28"),
        ("uuid", "018f4e1c-0000-7000-8000-000000000000", "018f"),
        ("uuid", "018F4E1C-0000-7000-8000-000000000000", "018f4e1c000070008000000000000000"),
        ("email", "\"joe \\\"b\"@[127.0.0.1]", "te..st@example.com"),
        ("email", "jörg@bücher.de", "joe@-example.com"),
        ("uri", "mailto:a@b.c", "https://example.com/a b"),
        ("uri", "https://example.com/%C3%BC?a=b#c", "https://example.com/%zz"),
        ("date-time", "1998-12-31t23:59:60.999999999999z", "1998-12-31T22:59:60Z"),
        ("date-time", "1998-12-31T15:59:60-08:00", "1998-12-31T15:59:59+08"),
    ] {
        let schema = Schema::read(json!({ "format": format })).unwrap();
        assert!(schema.check(&json!(right)).is_ok(), "{format} {right}");
        let found = schema.check(&json!(wrong)).unwrap_err();
        assert!(!found[0].message.contains(wrong), "{}", found[0].message);
    }
}

#[test]
fn what_would_not_be_checked_is_refused() {
    refused(
        json!({ "properties": { "a": { "unevaluatedItems": false } } }),
        "/properties/a/unevaluatedItems",
    );
    refused(json!({ "type": "text" }), "/type");
    refused(json!({ "format": "hostname" }), "/format");
    refused(json!({ "pattern": "(" }), "/pattern");
    refused(json!({ "$ref": "other.json" }), "/$ref");
    refused(json!({ "$ref": "#/$defs/none" }), "/$ref");
    refused(json!({ "$schema": "https://example.com/own" }), "/$schema");
    refused(json!({ "$defs": { "a": { "$id": "a" } }, "$ref": "#/$defs/a" }), "/$defs/a/$id");
    refused(json!({ "minLength": 2.5 }), "/minLength");
    refused(json!({ "properties": [] }), "/properties");
    refused(json!({ "x-ode-secret": "yes" }), "/x-ode-secret");
    refused(json!({ "x-ode-secrets": true }), "/x-ode-secrets");
    refused(json!({ "items": { "x-ODE-secret": true } }), "/items/x-ODE-secret");
    refused(json!(3), "");
}

#[test]
fn secrets_are_found_wherever_they_are() {
    let secret = json!({ "type": "string", "x-ode-secret": true });
    let schema = Schema::read(json!({
        "properties": {
            "password": secret,
            "stripe": { "properties": { "key": { "$ref": "#/properties/password" } } },
            "users": { "items": { "allOf": [{ "additionalProperties": secret }] } },
            "login": { "anyOf": [{ "type": "null" }, { "type": "object", "x-ode-secret": true }] },
        },
    }));
    let schema = schema.unwrap();
    assert!(schema.has_secrets());
    let value = json!({
        "name": "a", "password": "b", "stripe": { "key": "c", "name": "d" },
        "users": [{ "pin": "e" }], "login": { "token": "f" },
    });
    let found: Vec<_> = schema.secrets(&value).into_iter().collect();
    assert_eq!(found, ["/login", "/password", "/stripe/key", "/users/0/pin"]);
    assert!(schema.secrets(&json!({ "password": null })).is_empty());
}
