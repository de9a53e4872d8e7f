//! Finds the parts of a value that its schema marks as secrets.

use super::check::DEPTH_MAX;
use super::read::below;
use super::{Others, Place, Rule, Schema};
use serde_json::Value;
use std::collections::BTreeSet;

impl Schema {
    /// The JSON pointers of all secrets in a value. A part that any branch of the schema calls a secret is one,
    /// whichever branch the value takes: to hide too much is the lesser mistake.
    pub fn secrets(&self, value: &Value) -> BTreeSet<String> {
        let mut search = Search { schema: self, found: BTreeSet::new(), depth: 0 };
        search.part(0, value, "");
        search.found
    }

    /// Whether a value may have a field at this path, as far as the schema names fields at all.
    pub fn knows(&self, path: &[&str]) -> bool {
        self.knows_below(0, path, 0)
    }

    fn knows_below(&self, place: Place, path: &[&str], depth: usize) -> bool {
        let Some((name, rest)) = path.split_first() else { return true };
        let rules = &self.nodes[place].rules;
        let names_none = |rule: &Rule| !matches!(rule, Rule::Fields(_)) && rule.branches().is_empty();
        let leads_there = |rule: &Rule| match rule {
            Rule::Fields(fields) => {
                let others = match &fields.others {
                    Some(Others::Like(place)) => Some(*place),
                    Some(Others::Refused) | None => None,
                };
                let places = fields.places(name).into_iter().chain(others);
                places.into_iter().any(|place| self.knows_below(place, rest, depth + 1))
            }
            other => other.branches().into_iter().any(|place| self.knows_below(place, path, depth + 1)),
        };
        depth < DEPTH_MAX && (rules.iter().all(names_none) || rules.iter().any(leads_there))
    }

    /// Whether any part of such a value can be a secret.
    pub fn has_secrets(&self) -> bool {
        self.nodes.iter().any(|node| node.is_secret)
    }
}

struct Search<'a> {
    schema: &'a Schema,
    found: BTreeSet<String>,
    depth: usize,
}

impl Search<'_> {
    fn part(&mut self, place: Place, value: &Value, at: &str) {
        let node = &self.schema.nodes[place];
        if node.is_secret && !value.is_null() {
            self.found.insert(at.to_owned());
        } else if self.depth < DEPTH_MAX {
            self.depth += 1;
            node.rules.iter().for_each(|rule| self.rule(rule, value, at));
            self.depth -= 1;
        }
    }

    fn rule(&mut self, rule: &Rule, value: &Value, at: &str) {
        match (rule, value) {
            (Rule::Fields(rules), Value::Object(fields)) => {
                for (name, value) in fields {
                    let mut places = rules.places(name);
                    if let (true, Some(Others::Like(place))) = (places.is_empty(), &rules.others) {
                        places.push(*place);
                    }
                    places.iter().for_each(|place| self.part(*place, value, &below(at, name)));
                }
            }
            (Rule::Items(rules), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(place) = rules.place(index) {
                        self.part(place, item, &below(at, &index.to_string()));
                    }
                }
            }
            _ => rule.branches().iter().for_each(|place| self.part(*place, value, at)),
        }
    }
}

impl Rule {
    /// The schemas that may hold for the same value.
    fn branches(&self) -> Vec<Place> {
        match self {
            Self::All(places) | Self::Any(places) | Self::One(places) => places.clone(),
            Self::Same(place) => vec![*place],
            Self::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            _ => Vec::new(),
        }
    }
}
