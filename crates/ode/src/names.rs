//! Names on the command line that come from a closed set: pipelines, states, phases, error codes. They are
//! parsed once, offered by shell completions, and a wrong one is answered with those that are near it.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use ode_job::{ErrorCode, Phase, Pipeline, State};
use std::ffi::OsStr;
use std::marker::PhantomData;
use std::str::FromStr;

/// A closed set of names.
pub(crate) trait Named: FromStr<Err: std::fmt::Display> + Copy + Send + Sync + 'static {
    /// Every one of them.
    const ALL: &'static [Self];

    /// The name.
    fn name(self) -> &'static str;

    /// The name as it would have been written, had it been typed with care.
    fn tidy(typed: &str) -> String {
        typed.trim().to_lowercase()
    }
}

macro_rules! named {
    ($($set:ty),+) => {
        $(impl Named for $set {
            const ALL: &'static [Self] = <$set>::ALL;
            fn name(self) -> &'static str { self.as_str() }
        })+
    };
}

named!(Pipeline, State, Phase);

impl Named for ErrorCode {
    const ALL: &'static [Self] = ErrorCode::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }

    fn tidy(typed: &str) -> String {
        typed.trim().to_uppercase()
    }
}

/// A parser for one such set.
pub(crate) fn named<T: Named>() -> Names<T> {
    Names(PhantomData)
}

/// See [`named`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<T>(PhantomData<T>);

impl<T: Named> TypedValueParser for Names<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        typed: &OsStr,
    ) -> Result<T, clap::Error> {
        let typed = typed.to_string_lossy();
        T::tidy(&typed).parse().map_err(|error| {
            let near = near::<T>(&T::tidy(&typed));
            let near = if near.is_empty() { near } else { format!(" Did you mean {near}?") };
            clap::Error::raw(ErrorKind::ValueValidation, format!("{error}{near}\n")).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::ALL.iter().map(|known| PossibleValue::new(known.name()))))
    }
}

/// The names that somebody may have meant.
fn near<T: Named>(typed: &str) -> String {
    let is_near = |name: &str| {
        // One slip in three letters is a slip; more is another word. A part of a name is meant for it.
        let slips_max = typed.len().min(name.len()) / 3;
        let is_part = typed.len() >= PART_MIN && (name.contains(typed) || typed.contains(name));
        is_part || slips(typed, name) <= slips_max
    };
    let names = T::ALL.iter().map(|known| known.name()).filter(|name| is_near(name));
    names.collect::<Vec<_>>().join(" or ")
}

/// Shorter parts are found in too many names.
const PART_MIN: usize = 3;
/// No name is nearly as long; what is longer is not compared letter by letter.
const TYPED_MAX: usize = 60;

/// How many letters must be added, taken away or exchanged to make one of the other.
fn slips(one: &str, other: &str) -> usize {
    if one.len() > TYPED_MAX {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let exchanged = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        fn check(one: &str, other: &str, expected: usize) {
            assert_eq!(slips(one, other), expected, "{one} {other}");
            assert_eq!(slips(other, one), expected, "{other} {one}");
        }
        check("", "", 0);
        check("queued", "queued", 0);
        check("queud", "queued", 1);
        check("failed", "field", 3);
        check("", "abc", 3);
    }

    #[test]
    fn a_wrong_name_leads_to_those_near_it() {
        fn check<T: Named>(typed: &str, expected: &str) {
            assert_eq!(near::<T>(&T::tidy(typed)), expected, "{typed}");
        }
        check::<State>("Queud", "queued");
        check::<State>("export", "pending_export or exporting or export_failed or export_complete");
        check::<Pipeline>("htlm", "");
        check::<Pipeline>("scripts", "script");
        check::<ErrorCode>("timeout", "GW_TIMEOUT or TIMED_OUT");
        check::<ErrorCode>("NOTPDF", "NOT_PDF");
        check::<ErrorCode>("ODE-1004", "");
        check::<ErrorCode>(&"x".repeat(10_000), "");
    }
}
