//! JSON Schema (draft 2020-12), as far as payloads and results need it.
//!
//! A schema is read once, and a keyword that is not checked here is refused then: nobody believes in a rule that
//! nothing enforces. What is said about a wrong value never repeats the value, which may be a secret.

mod check;
mod format;
mod read;
mod secrets;

use format::Format;
use regex_automata::meta::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// A schema, ready to check values.
#[derive(Debug)]
pub struct Schema {
    /// The first is the whole schema; others are named by their place in this list.
    nodes: Vec<Node>,
    document: Value,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Invalid {
    /// Where, as a JSON pointer: `/itemTags/0/name`, or empty for the whole value.
    pub path: String,
    /// What it must be instead, to be read after the name of the field.
    pub message: String,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {place}: {message}", place = if self.place.is_empty() { "the top" } else { &self.place })]
pub struct SchemaError {
    /// Where in the schema, as a JSON pointer.
    pub place: String,
    pub message: String,
}

impl Schema {
    /// Reads a schema.
    pub fn read(document: Value) -> Result<Self, SchemaError> {
        read::read(document)
    }

    /// The schema as it was written.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Everything that is wrong with a value, at most [`INVALID_MAX`] things.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Invalid>> {
        check::check(self, value)
    }
}

/// More mistakes than this help nobody.
pub const INVALID_MAX: usize = 50;

/// Where in [`Schema::nodes`] a part of the schema is.
type Place = usize;

#[derive(Debug, Default)]
struct Node {
    rules: Vec<Rule>,
    /// Marked `"x-ode-secret": true`.
    is_secret: bool,
}

#[derive(Debug)]
enum Rule {
    Never,
    Kind(Vec<Kind>),
    OneOfValues(Vec<Value>),
    Required(Vec<String>),
    RequiredWith(BTreeMap<String, Vec<String>>),
    Fields(Fields),
    FieldNames(Place),
    FieldCount(Range<u64>),
    Items(Items),
    ItemCount(Range<u64>),
    Unique,
    Contains(Place),
    Length(Range<u64>),
    Pattern(Box<Pattern>),
    Format(Format),
    Number(Range<f64>),
    NumberBeyond(Range<f64>),
    MultipleOf(f64),
    All(Vec<Place>),
    Any(Vec<Place>),
    One(Vec<Place>),
    Not(Place),
    If { condition: Place, then: Option<Place>, otherwise: Option<Place> },
    Same(Place),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    Integer,
    String,
}

impl Kind {
    const ALL: [(&str, Self, &str); 7] = [
        ("null", Self::Null, "null"),
        ("boolean", Self::Boolean, "true or false"),
        ("object", Self::Object, "an object"),
        ("array", Self::Array, "a list"),
        ("number", Self::Number, "a number"),
        ("integer", Self::Integer, "a whole number"),
        ("string", Self::String, "text"),
    ];

    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::String => value.is_string(),
        }
    }

    fn in_words(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind, _)| *kind == self).map_or("", |(_, _, words)| words)
    }
}

#[derive(Debug, Default)]
struct Fields {
    named: BTreeMap<String, Place>,
    patterns: Vec<(Pattern, Place)>,
    others: Option<Others>,
}

#[derive(Debug)]
enum Others {
    Refused,
    Like(Place),
}

#[derive(Debug, Default)]
struct Items {
    first: Vec<Place>,
    others: Option<Place>,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    regex: Regex,
}

#[derive(Debug, Clone, Copy)]
struct Range<T> {
    min: Option<T>,
    max: Option<T>,
}

#[cfg(test)]
mod suite;
#[cfg(test)]
mod tests;
