//! Names that stand more than once in an object. A reader of JSON takes the last of them without a word, so that part of
//! what somebody wrote would not count.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// The path of the first name that stands in its object already. Nothing if there is none, and of what is not JSON, which is
/// told by whoever reads it.
pub fn repeated_name(json: &[u8], root: &str) -> Option<String> {
    let found = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(json);
    let looked = Look { place: &Place::Root(root), found: &found }.deserialize(&mut reader);
    found.into_inner().filter(|_| looked.is_err())
}

enum Place<'a> {
    Root(&'a str),
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root(name) => f.write_str(name),
            Place::Field(Place::Root(""), name) => f.write_str(name),
            Place::Field(parent, name) => write!(f, "{parent}.{name}"),
            Place::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Walks through a value and keeps nothing of it.
#[derive(Clone, Copy)]
struct Look<'a> {
    place: &'a Place<'a>,
    found: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items.next_element_seed(Look { place: &Place::Item(self.place, index), ..self })?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            let place = Place::Field(self.place, &name);
            if seen.contains(&name) {
                self.found.replace(Some(place.to_string()));
                return Err(A::Error::custom("a name stands twice"));
            }
            fields.next_value_seed(Look { place: &place, ..self })?;
            seen.insert(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_twice_in_an_object_is_found_with_its_path() {
        fn check(json: &str, expected: Option<&str>) {
            assert_eq!(repeated_name(json.as_bytes(), "").as_deref(), expected, "{json}");
        }
        check(r#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":null}]}"#, None);
        check(r#"{"a":1,"a":1}"#, Some("a"));
        check(r#"{"a":{"b":1.5,"c":true,"b":"x"}}"#, Some("a.b"));
        check(r#"{"a":[[],{"b":-1,"\u0062":-1}]}"#, Some("a[1].b"));
        check(r#"{"a":1,"a":"#, Some("a"));
        check(r#"{"a":1,"#, None);
        check(&"[".repeat(500), None);
    }

    #[test]
    fn a_path_begins_where_it_is_told_to() {
        assert_eq!(repeated_name(br#"{"a":1,"a":2}"#, "config").as_deref(), Some("config.a"));
    }
}
