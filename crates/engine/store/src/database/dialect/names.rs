//! Parameters by name: a statement says `$worker`, and its numbers are counted here.

use super::{Dialect, rendered};
use crate::database::db::Param;

/// Values for the parameters of statements, by name.
#[derive(Debug, Clone, Default)]
pub struct Named(Vec<(&'static str, Param)>);

impl Named {
    /// The same with one more value.
    pub fn with(mut self, name: &'static str, value: impl Into<Param>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    pub fn extend(&mut self, values: impl IntoIterator<Item = (&'static str, Param)>) {
        self.0.extend(values);
    }

    /// Those values that the statement names.
    pub fn part(&self, dialect: Dialect, sql: &'static str) -> Named {
        let names = rendered(dialect, sql).names;
        Named(self.0.iter().filter(|(name, _)| names.iter().any(|known| known == name)).cloned().collect())
    }

    /// The values in the order in which the statement numbers them, without those that it does not name.
    pub fn order(mut self, dialect: Dialect, sql: &'static str) -> Vec<Param> {
        let take = |name: &String| {
            let place = self.0.iter().position(|(given, _)| given == name);
            let place = place.unwrap_or_else(|| panic!("the parameter ${name} has no value"));
            self.0.swap_remove(place).1
        };
        rendered(dialect, sql).names.iter().map(take).collect()
    }
}

impl FromIterator<(&'static str, Param)> for Named {
    fn from_iter<I: IntoIterator<Item = (&'static str, Param)>>(values: I) -> Self {
        Named(values.into_iter().collect())
    }
}

/// The statement with names replaced, where there is something to replace them with.
pub(crate) fn replace(sql: &str, mut with: impl FnMut(&str) -> Option<String>) -> String {
    let mut parts = sql.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        // What begins otherwise is a number, or the root of a document in JSON.
        let is_name = part.starts_with(|c: char| c.is_ascii_lowercase());
        match is_name.then(|| with(&part[..end])).flatten() {
            Some(with) => out.push_str(&with),
            None => {
                out.push('$');
                out.push_str(&part[..end]);
            }
        }
        out.push_str(&part[end..]);
    }
    out
}

/// The statement with numbers for the names of its parameters, and the names in the order of their numbers.
pub(super) fn number(sql: &str) -> (String, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let numbered = replace(sql, |name| {
        let place = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        Some(format!("${}", place + 1))
    });
    let has_numbers = || sql.as_bytes().windows(2).any(|pair| pair[0] == b'$' && pair[1].is_ascii_digit());
    assert!(
        names.is_empty() || !has_numbers(),
        "a statement's parameters have numbers or names, not both: {sql}"
    );
    (numbered, names)
}

/// Whether the statement names a parameter.
pub(super) fn has_names(sql: &str) -> bool {
    sql.as_bytes().windows(2).any(|pair| pair[0] == b'$' && pair[1].is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_in_the_order_in_which_they_come_first() {
        let (sql, names) = number("SELECT $id, $at::text || $id, x ->> '$.id', $atom");
        assert_eq!(sql, "SELECT $1, $2::text || $1, x ->> '$.id', $3");
        assert_eq!(names, ["id", "at", "atom"]);
        assert_eq!(number("SELECT $1, '$'"), ("SELECT $1, '$'".to_owned(), vec![]));
    }

    #[test]
    fn a_statement_gets_the_values_that_it_names() {
        let sql = "SELECT $b, $a, $b";
        let named = Named::default().with("a", 1_i64).with("c", 3_i64).with("b", 2_i64);
        let ordered = named.order(Dialect::Sqlite, sql);
        assert!(matches!(ordered[..], [Param::Int(Some(2)), Param::Int(Some(1))]), "{ordered:?}");
    }

    #[test]
    #[should_panic(expected = "the parameter $b has no value")]
    fn a_value_that_is_missing_is_named() {
        Named::default().with("a", 1_i64).order(Dialect::Sqlite, "SELECT $a, $b, 1");
    }
}
