//! Reads a schema into rules, and refuses what would not be checked.

use super::format::Format;
use super::{Fields, Items, Kind, Node, Others, Pattern, Place, Range, Rule, Schema, SchemaError};
use regex_automata::meta::Regex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Keywords that explain and do not check.
const NOTES: [&str; 13] = [
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
];
/// Marks a value as a secret.
const SECRET: &str = "x-ode-secret";
/// How our own keywords begin: one of them that is unknown is a mistake in typing, not a note.
const OURS: &str = "x-ode";
/// A schema with more parts than this was not written by hand.
const NODES_MAX: usize = 10_000;

pub(super) fn read(document: Value) -> Result<Schema, SchemaError> {
    let mut reader = Reader { document: &document, nodes: Vec::new(), known: HashMap::new() };
    reader.part(&document, String::new())?;
    let nodes = reader.nodes;
    Ok(Schema { nodes, document })
}

struct Reader<'a> {
    document: &'a Value,
    nodes: Vec<Node>,
    /// Parts by their place in the document, so that one that names itself ends.
    known: HashMap<String, Place>,
}

fn refuse<T>(place: &str, message: impl Into<String>) -> Result<T, SchemaError> {
    Err(SchemaError { place: place.to_owned(), message: message.into() })
}

impl<'a> Reader<'a> {
    fn part(&mut self, value: &'a Value, at: String) -> Result<Place, SchemaError> {
        if let Some(place) = self.known.get(&at) {
            return Ok(*place);
        }
        let place = self.nodes.len();
        if place == NODES_MAX {
            return refuse(&at, format!("the schema has more than {NODES_MAX} parts"));
        }
        self.nodes.push(Node::default());
        self.known.insert(at.clone(), place);
        let node = match value {
            Value::Bool(true) => Node::default(),
            Value::Bool(false) => Node { rules: vec![Rule::Never], is_secret: false },
            Value::Object(keywords) => self.node(keywords, &at)?,
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return refuse(&at, "a schema is an object, true or false");
            }
        };
        self.nodes[place] = node;
        Ok(place)
    }

    fn node(&mut self, keywords: &'a Map<String, Value>, at: &str) -> Result<Node, SchemaError> {
        let mut node = Node::default();
        for (keyword, value) in keywords {
            let here = below(at, keyword);
            if keyword == SECRET {
                let is_secret = value.as_bool();
                node.is_secret = is_secret.map_or_else(|| refuse(&here, "it is true or false"), Ok)?;
            } else if let Some(rule) = self.rule(keyword, value, keywords, &here)? {
                node.rules.push(rule);
            }
        }
        Ok(node)
    }

    /// The rule of a keyword. Where several keywords make one rule, the first that is there makes it.
    fn rule(
        &mut self,
        keyword: &str,
        value: &'a Value,
        all: &'a Map<String, Value>,
        at: &str,
    ) -> Result<Option<Rule>, SchemaError> {
        let is_first = |names: &[&str]| names.iter().find(|name| all.contains_key(**name)) == Some(&keyword);
        let parent = at.strip_suffix(&below("", keyword)).unwrap_or_default();
        let rule = match keyword {
            "type" => Rule::Kind(kinds(value, at)?),
            "enum" => Rule::OneOfValues(list(value, at)?.clone()),
            "const" => Rule::OneOfValues(vec![value.clone()]),
            "required" => Rule::Required(texts(value, at)?),
            "dependentRequired" => {
                let lists = object(value, at)?.iter();
                let lists = lists.map(|(name, list)| Ok((name.clone(), texts(list, at)?)));
                Rule::RequiredWith(lists.collect::<Result<BTreeMap<_, _>, SchemaError>>()?)
            }
            "properties" | "patternProperties" | "additionalProperties" => {
                if !is_first(&["properties", "patternProperties", "additionalProperties"]) {
                    return Ok(None);
                }
                Rule::Fields(self.fields(all, parent)?)
            }
            "propertyNames" => Rule::FieldNames(self.part(value, at.to_owned())?),
            "items" | "prefixItems" if is_first(&["items", "prefixItems"]) => {
                Rule::Items(self.items(all, parent)?)
            }
            "contains" => Rule::Contains(self.part(value, at.to_owned())?),
            "uniqueItems" if value == &Value::Bool(true) => Rule::Unique,
            "pattern" => Rule::Pattern(Box::new(pattern(text(value, at)?, at)?)),
            "format" => Rule::Format(Format::read(text(value, at)?).map_or_else(|why| refuse(at, why), Ok)?),
            "multipleOf" => Rule::MultipleOf(number(value, at)?),
            "allOf" => Rule::All(self.parts(value, at)?),
            "anyOf" => Rule::Any(self.parts(value, at)?),
            "oneOf" => Rule::One(self.parts(value, at)?),
            "not" => Rule::Not(self.part(value, at.to_owned())?),
            "if" => Rule::If {
                condition: self.part(value, at.to_owned())?,
                then: self.optional(all, "then", parent)?,
                otherwise: self.optional(all, "else", parent)?,
            },
            "$schema" => return dialect(text(value, at)?, at).map(|()| None),
            "$id" if !parent.is_empty() => {
                return refuse(at, "only the whole schema has an address; parts are named by their place");
            }
            "$ref" => Rule::Same(self.reference(text(value, at)?, at)?),
            _ => return range(keyword, all, parent),
        };
        Ok(Some(rule))
    }

    fn fields(&mut self, all: &'a Map<String, Value>, at: &str) -> Result<Fields, SchemaError> {
        let mut fields = Fields::default();
        if let Some(named) = all.get("properties") {
            let here = below(at, "properties");
            for (name, value) in object(named, &here)? {
                fields.named.insert(name.clone(), self.part(value, below(&here, name))?);
            }
        }
        if let Some(patterns) = all.get("patternProperties") {
            let here = below(at, "patternProperties");
            for (name, value) in object(patterns, &here)? {
                let there = below(&here, name);
                fields.patterns.push((pattern(name, &there)?, self.part(value, there)?));
            }
        }
        fields.others = match all.get("additionalProperties") {
            None => None,
            Some(Value::Bool(false)) => Some(Others::Refused),
            Some(value) => Some(Others::Like(self.part(value, below(at, "additionalProperties"))?)),
        };
        Ok(fields)
    }

    fn items(&mut self, all: &'a Map<String, Value>, at: &str) -> Result<Items, SchemaError> {
        let first = all.get("prefixItems");
        Ok(Items {
            first: first.map_or(Ok(Vec::new()), |value| self.parts(value, &below(at, "prefixItems")))?,
            others: self.optional(all, "items", at)?,
        })
    }

    fn parts(&mut self, value: &'a Value, at: &str) -> Result<Vec<Place>, SchemaError> {
        let parts = list(value, at)?.iter().enumerate();
        parts.map(|(index, part)| self.part(part, below(at, &index.to_string()))).collect()
    }

    fn optional(
        &mut self,
        all: &'a Map<String, Value>,
        keyword: &str,
        at: &str,
    ) -> Result<Option<Place>, SchemaError> {
        all.get(keyword).map(|value| self.part(value, below(at, keyword))).transpose()
    }

    fn reference(&mut self, target: &str, at: &str) -> Result<Place, SchemaError> {
        let Some(pointer) = target.strip_prefix('#') else {
            return refuse(at, "only references within the file are followed, such as #/$defs/tag");
        };
        match self.document.pointer(pointer) {
            Some(value) => self.part(value, pointer.to_owned()),
            None => refuse(at, format!("there is nothing at {target}")),
        }
    }
}

/// Refuses meta-schemas that give keywords a meaning of their own.
fn dialect(name: &str, at: &str) -> Result<(), SchemaError> {
    let is_official =
        ["https://json-schema.org/", "http://json-schema.org/"].iter().any(|host| name.starts_with(host));
    if is_official { Ok(()) } else { refuse(at, "only the keywords of json-schema.org are known here") }
}

/// A pair of keywords that bound something from both sides.
fn range(keyword: &str, all: &Map<String, Value>, at: &str) -> Result<Option<Rule>, SchemaError> {
    let pair = |min, max, make: fn(Range<u64>) -> Rule| {
        let bound = |name| all.get(name).map(|value| count(value, &below(at, name))).transpose();
        let range = Range { min: bound(min)?, max: bound(max)? };
        Ok((keyword == min || !all.contains_key(min)).then(|| make(range)))
    };
    let numbers = |min, max, make: fn(Range<f64>) -> Rule| {
        let bound = |name| all.get(name).map(|value| number(value, &below(at, name))).transpose();
        let range = Range { min: bound(min)?, max: bound(max)? };
        Ok((keyword == min || !all.contains_key(min)).then(|| make(range)))
    };
    match keyword {
        "minLength" | "maxLength" => pair("minLength", "maxLength", Rule::Length),
        "minItems" | "maxItems" => pair("minItems", "maxItems", Rule::ItemCount),
        "minProperties" | "maxProperties" => pair("minProperties", "maxProperties", Rule::FieldCount),
        "minimum" | "maximum" => numbers("minimum", "maximum", Rule::Number),
        "exclusiveMinimum" | "exclusiveMaximum" => {
            numbers("exclusiveMinimum", "exclusiveMaximum", Rule::NumberBeyond)
        }
        "then" | "else" | "items" | "prefixItems" | "uniqueItems" => Ok(None),
        ours if ours.to_ascii_lowercase().starts_with(OURS) => refuse(
            &below(at, ours),
            format!("`{ours}` is unknown; write `{SECRET}` where a value is a secret"),
        ),
        other if NOTES.contains(&other) || other.starts_with("x-") => Ok(None),
        other => refuse(&below(at, other), format!("`{other}` is not checked here; say it in another way")),
    }
}

fn kinds(value: &Value, at: &str) -> Result<Vec<Kind>, SchemaError> {
    let names = match value {
        Value::String(name) => vec![name.clone()],
        other => texts(other, at)?,
    };
    let kind = |name: &String| Kind::ALL.iter().find(|(known, _, _)| known == name).map(|(_, kind, _)| *kind);
    names.iter().map(|name| kind(name).map_or_else(|| refuse(at, format!("no type `{name}`")), Ok)).collect()
}

fn pattern(text: &str, at: &str) -> Result<Pattern, SchemaError> {
    match Regex::new(text) {
        Ok(regex) => Ok(Pattern { text: text.to_owned(), regex }),
        Err(error) => refuse(at, format!("the pattern is not understood: {error}")),
    }
}

fn list<'a>(value: &'a Value, at: &str) -> Result<&'a Vec<Value>, SchemaError> {
    value.as_array().map_or_else(|| refuse(at, "it is a list"), Ok)
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, SchemaError> {
    value.as_object().map_or_else(|| refuse(at, "it is an object"), Ok)
}

fn text<'a>(value: &'a Value, at: &str) -> Result<&'a str, SchemaError> {
    value.as_str().map_or_else(|| refuse(at, "it is text"), Ok)
}

fn texts(value: &Value, at: &str) -> Result<Vec<String>, SchemaError> {
    list(value, at)?.iter().map(|value| Ok(text(value, at)?.to_owned())).collect()
}

fn number(value: &Value, at: &str) -> Result<f64, SchemaError> {
    value.as_f64().map_or_else(|| refuse(at, "it is a number"), Ok)
}

fn count(value: &Value, at: &str) -> Result<u64, SchemaError> {
    // 2.0 is a whole number, too. What is beyond the exact range of floating point bounds nothing that can be sent.
    let float = || {
        value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0).map(|number| number as u64)
    };
    value.as_u64().or_else(float).map_or_else(|| refuse(at, "it is a whole number, 0 or more"), Ok)
}

/// The JSON pointer of what is below another.
pub(super) fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}
