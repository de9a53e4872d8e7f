//! What can be made to go wrong, by name: a fault waits for the call it is meant for, strikes as often as it is told to,
//! and is counted.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Declares a fieldless enum with one name for each variant, for the command line and JSON alike.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every one of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl FromStr for $name {
            type Err = NotAFault;

            fn from_str(name: &str) -> Result<Self, NotAFault> {
                Self::ALL.iter().copied().find(|known| known.as_str() == name).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|known| known.as_str()).collect();
                    NotAFault(format!("There is no {} \"{name}\". Use one of: {}.", $what, known.join(", ")))
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// A fault was not written as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAFault(String);

named! {
    FaultKind, "fault" {
        /// The request is lost: nothing happens and nothing is answered.
        Lost = "lost",
        /// It is carried out, and nothing is answered.
        Hang = "hang",
        /// The connection ends before anything happened.
        ResetBefore = "reset-before",
        /// It is carried out, and the connection ends without an answer.
        ResetAfter = "reset-after",
        /// It is carried out, and half of the answer arrives.
        Truncated = "truncated",
        /// It is carried out, and the answer is no JSON.
        Garbage = "garbage",
        /// It is carried out, and a proxy says in HTML that it was not.
        Html502 = "html-502",
        /// A proxy says so in HTML, and is right.
        Html502Before = "html-502-before",
        /// It is carried out, and the answer comes under a wrong type.
        WrongType = "wrong-type",
        /// It is carried out, and the answer is an error under the status 200.
        ErrorIn200 = "error-in-200",
        /// Too many requests, and when to come back.
        TooMany = "429",
        /// Too many requests, without a word about when to come back.
        TooManyBare = "429-bare",
        /// The other status for too many requests.
        Expired419 = "419",
        /// A failure of the server before anything happened.
        Error500Before = "500-before",
        /// It is carried out, and then the server fails.
        Error500After = "500-after",
        /// The call is refused.
        Refused = "400",
        /// The token is not known.
        Unauthorized = "401",
        /// The token may not do this.
        Forbidden = "403",
        /// The caller hears nothing, and it is carried out later, after newer requests.
        Late = "late",
        /// It is delivered twice.
        Twice = "twice",
        /// What was just made cannot be seen for a while.
        Stale = "stale",
        /// A confirmed order falls back to a draft.
        BackToDraft = "back-to-draft",
        /// A confirmed order fails.
        Fails = "fails",
        /// A draft is called off by hand, elsewhere.
        Cancelled = "cancelled",
        /// The file is not fetched for a while.
        Waiting = "waiting",
        /// The file cannot be used.
        FileFailed = "file-failed",
        /// The order costs a hundred times as much.
        Dear = "dear",
        /// Somebody else's order has the external id already.
        Foreign = "foreign",
        /// An event is delivered twice.
        HookTwice = "hook-twice",
        /// Two events arrive in the wrong order.
        HookReordered = "hook-reordered",
        /// An event arrives under a wrong signature, and never under the right one.
        HookForged = "hook-forged",
        /// An event is never delivered.
        HookLost = "hook-lost",
        /// An event is delivered again, much later.
        HookReplayed = "hook-replayed",
    }
}

named! {
    /// Which call it strikes.
    On, "call" {
        /// Whichever comes next.
        Any = "any",
        /// A new order.
        Create = "create",
        /// A look at an order.
        Read = "read",
        /// A list of orders.
        List = "list",
        /// A change to an order.
        Edit = "edit",
        Confirm = "confirm",
        Cancel = "cancel",
        Estimate = "estimate",
        /// A look at shipments.
        Shipments = "shipments",
        /// A look at the catalogue.
        Catalog = "catalog",
        /// An event on its way to the shop.
        Hook = "hook",
    }
}

impl FaultKind {
    /// The call it strikes where none is named.
    fn usual_call(self) -> On {
        use FaultKind as F;
        match self {
            F::Stale | F::Cancelled | F::Waiting | F::FileFailed | F::Dear | F::Foreign => On::Create,
            F::BackToDraft | F::Fails => On::Confirm,
            F::HookTwice | F::HookReordered | F::HookForged | F::HookLost | F::HookReplayed => On::Hook,
            F::Lost
            | F::Hang
            | F::ResetBefore
            | F::ResetAfter
            | F::Truncated
            | F::Garbage
            | F::Html502
            | F::Html502Before
            | F::WrongType
            | F::ErrorIn200
            | F::TooMany
            | F::TooManyBare
            | F::Expired419
            | F::Error500Before
            | F::Error500After
            | F::Refused
            | F::Unauthorized
            | F::Forbidden
            | F::Late
            | F::Twice => On::Any,
        }
    }
}

/// Something that is to go wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: FaultKind,
    /// With which call.
    #[serde(default = "any")]
    pub on: On,
    /// How often.
    #[serde(default = "once")]
    pub times: u32,
    /// How long, for those that take a while.
    #[serde(default = "a_moment")]
    pub seconds: f64,
    /// Only with the order of this external id.
    #[serde(default)]
    pub external_id: Option<String>,
}

fn any() -> On {
    On::Any
}

fn once() -> u32 {
    1
}

fn a_moment() -> f64 {
    2.0
}

/// Nothing waits longer than a day.
const SECONDS_MAX: f64 = 86_400.0;

impl Fault {
    /// One that strikes once, where it usually does.
    #[must_use]
    pub fn new(kind: FaultKind) -> Self {
        Fault { kind, on: kind.usual_call(), times: once(), seconds: a_moment(), external_id: None }
    }

    /// The same with this call.
    #[must_use]
    pub fn on(self, on: On) -> Self {
        Fault { on, ..self }
    }

    /// The same for this long.
    #[must_use]
    pub fn lasting(self, seconds: f64) -> Self {
        Fault { seconds, ..self }
    }

    /// The same with this order only.
    #[must_use]
    pub fn with(self, external_id: &str) -> Self {
        Fault { external_id: Some(external_id.to_owned()), ..self }
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.0, SECONDS_MAX))
    }

    fn is_for(&self, on: On, external_id: Option<&str>) -> bool {
        let call = self.on == on || self.on == On::Any && on != On::Hook;
        let order = self.external_id.is_none() || self.external_id.as_deref() == external_id;
        self.times > 0 && call && order
    }
}

impl FromStr for Fault {
    type Err = NotAFault;

    /// Reads `kind[:call[:times]][@seconds]`, such as `hang:create`, `429:any:3` or `late:confirm@2.5`.
    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let number = |what: &str| NotAFault(format!("{what} in \"{text}\" is not a number."));
        let (head, seconds) = text.split_once('@').map_or((text, None), |(head, tail)| (head, Some(tail)));
        let mut parts = head.split(':');
        let mut fault = Fault::new(parts.next().unwrap_or_default().parse()?);
        if let Some(on) = parts.next() {
            fault.on = on.parse()?;
        }
        if let Some(times) = parts.next() {
            fault.times = times.parse().map_err(|_| number("How often"))?;
        }
        if let Some(seconds) = seconds {
            fault.seconds = seconds.parse().map_err(|_| number("How long"))?;
        }
        Ok(fault)
    }
}

/// Faults that wait for their call, and how often each kind has struck.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    waiting: Vec<Fault>,
    struck: BTreeMap<FaultKind, u64>,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.waiting.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(crate) fn waiting(&self) -> &[Fault] {
        &self.waiting
    }

    pub(crate) fn struck(&self) -> &BTreeMap<FaultKind, u64> {
        &self.struck
    }

    /// The fault that strikes this call, if one does: the one that has waited longest.
    pub(crate) fn strike(&mut self, on: On, external_id: Option<&str>) -> Option<Fault> {
        let at = self.waiting.iter().position(|fault| fault.is_for(on, external_id))?;
        self.waiting[at].times -= 1;
        let fault = self.waiting[at].clone();
        if fault.times == 0 {
            self.waiting.remove(at);
        }
        *self.struck.entry(fault.kind).or_default() += 1;
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_is_written_on_a_command_line() {
        fn check(text: &str, kind: FaultKind, on: On, times: u32, seconds: f64) {
            let fault = Fault { times, ..Fault::new(kind).on(on).lasting(seconds) };
            assert_eq!(text.parse::<Fault>(), Ok(fault), "{text}");
        }
        check("hang", FaultKind::Hang, On::Any, 1, 2.0);
        check("hang:create", FaultKind::Hang, On::Create, 1, 2.0);
        check("429:any:3", FaultKind::TooMany, On::Any, 3, 2.0);
        check("late:confirm@2.5", FaultKind::Late, On::Confirm, 1, 2.5);
        check("foreign", FaultKind::Foreign, On::Create, 1, 2.0);
        assert!("hung".parse::<Fault>().unwrap_err().to_string().contains("hang"));
        assert!("hang:create:often".parse::<Fault>().is_err());
    }

    #[test]
    fn a_fault_strikes_its_call_as_often_as_told() {
        let mut faults = Faults::default();
        faults.add(Fault { times: 2, ..Fault::new(FaultKind::Hang).on(On::Create) });
        faults.add(Fault::new(FaultKind::Twice).with("a"));
        assert_eq!(faults.strike(On::Read, None), None);
        assert_eq!(faults.strike(On::Create, Some("b")).map(|fault| fault.kind), Some(FaultKind::Hang));
        assert_eq!(faults.strike(On::Hook, Some("a")), None, "events have faults of their own");
        assert_eq!(faults.strike(On::Read, Some("a")).map(|fault| fault.kind), Some(FaultKind::Twice));
        assert_eq!(faults.strike(On::Create, None).map(|fault| fault.kind), Some(FaultKind::Hang));
        assert_eq!(faults.strike(On::Create, None), None);
        assert_eq!(faults.struck()[&FaultKind::Hang], 2);
    }
}
