//! Holds a value against the rules of a schema.

use super::read::below;
use super::{Fields, INVALID_MAX, Invalid, Items, Others, Place, Range, Rule, Schema};
use serde_json::{Map, Value};

/// A schema may name itself for ever; no payload is this deep.
pub(super) const DEPTH_MAX: usize = 64;

pub(super) fn check(schema: &Schema, value: &Value) -> Result<(), Vec<Invalid>> {
    let mut checker = Checker { schema, found: Vec::new(), depth: 0 };
    checker.part(0, value, "");
    if checker.found.is_empty() { Ok(()) } else { Err(checker.found) }
}

struct Checker<'a> {
    schema: &'a Schema,
    found: Vec<Invalid>,
    depth: usize,
}

impl Checker<'_> {
    fn refuse(&mut self, at: &str, message: impl Into<String>) {
        if self.found.len() < INVALID_MAX {
            self.found.push(Invalid { path: at.to_owned(), message: message.into() });
        }
    }

    fn part(&mut self, place: Place, value: &Value, at: &str) {
        if self.depth == DEPTH_MAX {
            return self.refuse(at, format!("must not be nested more than {DEPTH_MAX} levels deep"));
        }
        self.depth += 1;
        let schema = self.schema;
        for rule in &schema.nodes[place].rules {
            self.rule(rule, value, at);
        }
        self.depth -= 1;
    }

    /// Whether a value would be accepted, without saying why not.
    fn accepts(&self, place: Place, value: &Value) -> bool {
        let mut checker = Checker { schema: self.schema, found: Vec::new(), depth: self.depth };
        checker.part(place, value, "");
        checker.found.is_empty()
    }

    fn rule(&mut self, rule: &Rule, value: &Value, at: &str) {
        match (rule, value) {
            (Rule::Never, _) => self.refuse(at, "must not be given"),
            (Rule::Kind(kinds), _) if !kinds.iter().any(|kind| kind.holds(value)) => {
                let words: Vec<_> = kinds.iter().map(|kind| kind.in_words()).collect();
                self.refuse(at, format!("must be {}", words.join(" or ")));
            }
            (Rule::OneOfValues(values), _) if !values.iter().any(|allowed| is_same(allowed, value)) => {
                let words: Vec<_> = values.iter().map(Value::to_string).collect();
                self.refuse(at, format!("must be {}", words.join(" or ")));
            }
            (Rule::Required(names), Value::Object(fields)) => self.required(names, fields, at),
            (Rule::RequiredWith(lists), Value::Object(fields)) => {
                for (_, names) in lists.iter().filter(|(name, _)| fields.contains_key(*name)) {
                    self.required(names, fields, at);
                }
            }
            (Rule::Fields(rules), Value::Object(fields)) => self.fields(rules, fields, at),
            (Rule::FieldNames(place), Value::Object(fields)) => {
                for name in fields.keys() {
                    self.part(*place, &Value::String(name.clone()), &below(at, name));
                }
            }
            (Rule::FieldCount(range), Value::Object(fields)) => {
                self.count(*range, fields.len(), "fields", at)
            }
            (Rule::Items(rules), Value::Array(items)) => self.items(rules, items, at),
            (Rule::ItemCount(range), Value::Array(items)) => self.count(*range, items.len(), "entries", at),
            (Rule::Unique, Value::Array(items)) if has_twins(items) => {
                self.refuse(at, "must not have the same entry twice");
            }
            (Rule::Contains(place), Value::Array(items))
                if !items.iter().any(|item| self.accepts(*place, item)) =>
            {
                self.refuse(at, "lacks an entry that it must have");
            }
            (Rule::Length(range), Value::String(text)) => {
                self.count(*range, text.chars().count(), "characters", at);
            }
            (Rule::Pattern(pattern), Value::String(text)) if !pattern.regex.is_match(text) => {
                self.refuse(at, format!("must be written as the pattern {} says", pattern.text));
            }
            (Rule::Format(format), Value::String(text)) if !format.holds(text) => {
                self.refuse(at, format!("must be {}", format.in_words()));
            }
            (Rule::Number(_) | Rule::NumberBeyond(_) | Rule::MultipleOf(_), Value::Number(number)) => {
                self.number(rule, number.as_f64().unwrap_or(f64::NAN), at);
            }
            _ => self.combined(rule, value, at),
        }
    }

    /// The rules that are made of other schemas.
    fn combined(&mut self, rule: &Rule, value: &Value, at: &str) {
        match rule {
            Rule::All(places) => places.iter().for_each(|place| self.part(*place, value, at)),
            Rule::Any(places) if !places.iter().any(|place| self.accepts(*place, value)) => {
                self.refuse(at, "is none of the things that it may be");
            }
            Rule::One(places) => match places.iter().filter(|place| self.accepts(**place, value)).count() {
                0 => self.refuse(at, "is none of the things that it may be"),
                1 => {}
                _ => self.refuse(at, "can be read in more than one way; leave out what makes it unclear"),
            },
            Rule::Not(place) if self.accepts(*place, value) => self.refuse(at, "must not be like this"),
            Rule::If { condition, then, otherwise } => {
                let next = if self.accepts(*condition, value) { then } else { otherwise };
                if let Some(place) = next {
                    self.part(*place, value, at);
                }
            }
            Rule::Same(place) => self.part(*place, value, at),
            // A rule about another kind of value, or one that holds.
            _ => {}
        }
    }

    fn required(&mut self, names: &[String], fields: &Map<String, Value>, at: &str) {
        for name in names.iter().filter(|name| !fields.contains_key(*name)) {
            self.refuse(&below(at, name), "is missing");
        }
    }

    fn fields(&mut self, rules: &Fields, fields: &Map<String, Value>, at: &str) {
        for (name, value) in fields {
            let here = below(at, name);
            let places = rules.places(name);
            for place in &places {
                self.part(*place, value, &here);
            }
            match &rules.others {
                Some(Others::Like(place)) if places.is_empty() => self.part(*place, value, &here),
                Some(Others::Refused) if places.is_empty() => {
                    let known: Vec<_> = rules.named.keys().map(String::as_str).collect();
                    self.refuse(&here, format!("is not known here; there are {}", known.join(", ")));
                }
                Some(Others::Like(_) | Others::Refused) | None => {}
            }
        }
    }

    fn items(&mut self, rules: &Items, items: &[Value], at: &str) {
        for (index, item) in items.iter().enumerate() {
            if let Some(place) = rules.place(index) {
                self.part(place, item, &below(at, &index.to_string()));
            }
        }
    }

    fn count(&mut self, range: Range<u64>, count: usize, what: &str, at: &str) {
        let count = count as u64;
        if let Some(min) = range.min.filter(|min| count < *min) {
            self.refuse(at, format!("must have at least {min} {what}"));
        }
        if let Some(max) = range.max.filter(|max| count > *max) {
            self.refuse(at, format!("must have at most {max} {what}"));
        }
    }

    fn number(&mut self, rule: &Rule, number: f64, at: &str) {
        match rule {
            Rule::Number(range) => {
                if let Some(min) = range.min.filter(|min| number < *min) {
                    self.refuse(at, format!("must be {min} or more"));
                }
                if let Some(max) = range.max.filter(|max| number > *max) {
                    self.refuse(at, format!("must be {max} or less"));
                }
            }
            Rule::NumberBeyond(range) => {
                if let Some(min) = range.min.filter(|min| number <= *min) {
                    self.refuse(at, format!("must be more than {min}"));
                }
                if let Some(max) = range.max.filter(|max| number >= *max) {
                    self.refuse(at, format!("must be less than {max}"));
                }
            }
            Rule::MultipleOf(unit) if !is_multiple(number, *unit) => {
                self.refuse(at, format!("must be a multiple of {unit}"));
            }
            _ => {}
        }
    }
}

impl Fields {
    /// The schemas that a field by this name is held against, other than that of all others.
    pub(super) fn places(&self, name: &str) -> Vec<Place> {
        let matching = self.patterns.iter().filter(|(pattern, _)| pattern.regex.is_match(name));
        self.named.get(name).copied().into_iter().chain(matching.map(|(_, place)| *place)).collect()
    }
}

impl Items {
    pub(super) fn place(&self, index: usize) -> Option<Place> {
        self.first.get(index).copied().or(self.others)
    }
}

/// Decimal fractions such as 0.01 are not exact in binary.
fn is_multiple(number: f64, unit: f64) -> bool {
    let times = number / unit;
    (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

fn is_same(one: &Value, other: &Value) -> bool {
    canonical(one) == canonical(other)
}

fn has_twins(items: &[Value]) -> bool {
    let mut texts: Vec<String> = items.iter().map(canonical).collect();
    texts.sort_unstable();
    texts.windows(2).any(|pair| pair[0] == pair[1])
}

/// A text that equal values share, and no others: fields are sorted by name, and 1.0 is written as 1.
fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Number(number) => match number.as_f64() {
            // Without a fraction it is written as a whole number is, however large.
            Some(float) if number.is_f64() && float.fract() == 0.0 => {
                text.push_str(&format!("{:.0}", float + 0.0))
            }
            _ => text.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}
