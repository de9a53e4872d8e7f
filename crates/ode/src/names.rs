//! Names on the command line that come from a closed set: pipelines, states, phases, codes. They are parsed once, offered by shell completions, and a wrong one is answered with those that are near it.

use crate::wire;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use ode_job::{ErrorCode, Phase, Pipeline, State};
use ode_pipeline::KnownCode;
use std::ffi::OsStr;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// A closed set of names.
pub(crate) trait Named: FromStr<Err: std::fmt::Display> + Copy + Send + Sync + 'static {
    /// Every one of them.
    fn all() -> impl Iterator<Item = Self> + Send;

    fn name(self) -> &'static str;

    /// The name as it would have been written, had it been typed with care.
    fn tidy(typed: &str) -> String {
        typed.trim().to_lowercase()
    }
}

macro_rules! named {
    ($($set:ty: $all:expr),+) => {
        $(impl Named for $set {
            fn all() -> impl Iterator<Item = Self> + Send { $all.iter().copied() }
            fn name(self) -> &'static str { self.as_str() }
        })+
    };
}

named!(Pipeline: ode_job::machines::pipelines(), State: ode_job::machines::states(), Phase: Phase::ALL);

/// What is looked up with `ode explain`: why something failed, or what is to be known about a result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Code {
    Error(ErrorCode),
    /// Of a pipeline's own.
    Known(&'static KnownCode),
}

impl Code {
    /// Its page in Markdown.
    pub(crate) fn page(self) -> &'static str {
        match self {
            Code::Error(code) => code.page(),
            Code::Known(code) => &code.page,
        }
    }
}

/// The codes that pipelines have of their own.
fn known_codes() -> impl Iterator<Item = &'static KnownCode> + Send {
    wire::codes().flat_map(|codes| &codes.codes)
}

/// Somebody named a code that does not exist.
#[derive(Debug)]
pub(crate) struct UnknownCode {
    unknown: <ErrorCode as FromStr>::Err,
    /// Whether it is written as scripts write theirs.
    may_be_a_scripts: bool,
}

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.unknown.fmt(f)?;
        if self.may_be_a_scripts {
            f.write_str(" What a script of your own means by its codes, that script alone knows.")?;
        }
        Ok(())
    }
}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if let Some(code) = known_codes().find(|code| code.name == name) {
            return Ok(Code::Known(code));
        }
        let may_be_a_scripts = name.contains('_');
        name.parse().map(Code::Error).map_err(|unknown| UnknownCode { unknown, may_be_a_scripts })
    }
}

impl Named for Code {
    fn all() -> impl Iterator<Item = Self> + Send {
        let errors = ErrorCode::ALL.iter().copied().map(Code::Error);
        errors.chain(known_codes().map(Code::Known))
    }

    fn name(self) -> &'static str {
        match self {
            Code::Error(code) => code.as_str(),
            Code::Known(code) => code.name,
        }
    }

    /// Scripts write theirs in small letters; all others are in capitals.
    fn tidy(typed: &str) -> String {
        let typed = typed.trim();
        if known_codes().any(|code| code.name == typed) { typed.to_owned() } else { typed.to_uppercase() }
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
        Some(Box::new(T::all().map(|known| PossibleValue::new(known.name()))))
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
    let names = T::all().map(Named::name).filter(|name| is_near(name));
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
    strsim::levenshtein(one, other)
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
        wire::declare(wire::PIPELINES.to_vec()).unwrap();
        fn check<T: Named>(typed: &str, expected: &str) {
            assert_eq!(near::<T>(&T::tidy(typed)), expected, "{typed}");
        }
        check::<State>("Queud", "queued");
        check::<State>("export", "pending_export or exporting or export_failed or export_complete");
        check::<Pipeline>("htlm", "");
        check::<Pipeline>("scripts", "script");
        check::<Code>("timeout", "GW_TIMEOUT or TIMED_OUT");
        check::<Code>("NOTPDF", "NOT_PDF");
        check::<Code>("derivd", "DERIVED");
        check::<Code>("ODE-1004", "");
        check::<Code>(&"x".repeat(10_000), "");
    }
}
