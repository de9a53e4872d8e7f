//! The words that are the same for every pipeline: phases and events, and the type of a state's name.
//!
//! Which state may follow which is data that pipelines bring ([`crate::machine`]).

use crate::machine::named_by_text;

/// Declares a fieldless enum whose variants have one stable name each, used in tables, JSON, logs and pages.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(::serde::Serialize, ::serde::Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every variant, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::state::UnknownName;

            fn from_str(name: &str) -> Result<Self, $crate::state::UnknownName> {
                let known = || Self::ALL.iter().map(|known| known.as_str());
                let found = Self::ALL.iter().copied().find(|known| known.as_str() == name);
                found.ok_or_else(|| $crate::state::UnknownName::new($what, name, known()))
            }
        }
    };
}

pub use crate::named;

/// A mistyped name is shown back to the person, but not more of it than fits on a line.
const NAME_SHOWN_MAX: usize = 60;

/// A name that is none of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("There is no {what} called \"{name}\". Use one of: {known}.")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

impl UnknownName {
    pub fn new(what: &'static str, name: &str, known: impl Iterator<Item = &'static str>) -> Self {
        let known = known.collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "(none is declared)".to_owned() } else { known };
        UnknownName { what, name: name.chars().take(NAME_SHOWN_MAX).collect(), known }
    }
}

/// Where a job stands, in its pipeline's own words. Two pipelines may use the same word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State(&'static str);

impl State {
    /// The state of this name. Only machines name states; all other code has them from there or parses them.
    pub const fn new(name: &'static str) -> Self {
        State(name)
    }

    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

named_by_text!(State, "state", crate::machines::states);

named! {
    /// Where a job stands, in the same words for every pipeline.
    Phase, "phase" {
        /// Stored, not yet (or no longer) waiting for a worker.
        Held = "held",
        /// Waits for a worker.
        Ready = "ready",
        /// A worker holds a lease on it.
        Running = "running",
        /// Ended well.
        Done = "done",
        /// Ended badly; a person may retry it.
        Failed = "failed",
        /// Called off before it started.
        Cancelled = "cancelled",
    }
}

named! {
    /// What happened to a job. The names are those of its history.
    Event, "event" {
        /// The job was accepted.
        Created = "created",
        /// It became eligible.
        Queued = "queued",
        /// A worker took it.
        Started = "processing",
        /// The attempt succeeded.
        Succeeded = "complete",
        /// The attempt failed, or the job was given up before one.
        Failed = "failed",
        /// The attempt ran out of time.
        TimedOut = "timed_out",
        /// It will be tried again: by policy, or because a person asked.
        Retried = "retry",
        /// It was called off before it started.
        Cancelled = "cancelled",
        /// A person ended it while it ran.
        Stopped = "stopped",
        /// Its worker handed it back unburned while shutting down.
        Released = "released",
        /// Its worker was lost; the attempt counts.
        Rescued = "rescued",
        /// The next stage was asked for.
        Advanced = "advanced",
        /// The provider confirmed delivery.
        Delivered = "delivered",
        /// Its result was fetched.
        Downloaded = "downloaded",
        /// Retention removed its files.
        Expired = "expired",
    }
}

impl Event {
    /// What was done to the job, as a sentence says it: the names in histories are not all of that form.
    pub(crate) const fn done(self) -> &'static str {
        match self {
            Event::Started => "started",
            Event::Succeeded => "completed",
            Event::TimedOut => "timed out",
            Event::Retried => "retried",
            Event::Expired => "removed",
            Event::Created
            | Event::Queued
            | Event::Failed
            | Event::Cancelled
            | Event::Stopped
            | Event::Released
            | Event::Rescued
            | Event::Advanced
            | Event::Delivered
            | Event::Downloaded => self.as_str(),
        }
    }
}
