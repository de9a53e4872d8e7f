//! What can be made to go wrong: a fault waits for the request it is meant for and strikes as often as it is told to.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Every answer takes this many `milliseconds` longer.
    Slow,
    /// Something sent is answered with status 500, and nothing is stored.
    Error,
    /// Something sent is stored, and answered with status 500.
    ErrorAfter,
    /// The session ends just before something sent is looked at.
    Expire,
    /// The buttons have other names.
    Rename,
    /// This `row` of an imported file is rejected.
    RejectRow,
    /// Whatever has this `value` is refused.
    Refuse,
    /// The right password is not enough: a code is asked for.
    TwoFactor,
    /// Something sent is never answered, and nothing is stored.
    Endless,
}

impl FaultKind {
    /// How often it strikes where nobody says: what interrupts does so once, what is so stays so.
    fn usual_times(self) -> u32 {
        match self {
            FaultKind::Error | FaultKind::ErrorAfter | FaultKind::Expire | FaultKind::Endless => 1,
            FaultKind::Slow
            | FaultKind::Rename
            | FaultKind::RejectRow
            | FaultKind::Refuse
            | FaultKind::TwoFactor => u32::MAX,
        }
    }
}

/// Something that is to go wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: FaultKind,
    /// Only for the owner with this e-mail address.
    #[serde(default)]
    pub owner: Option<String>,
    /// Only at addresses that contain this.
    #[serde(default)]
    pub path: Option<String>,
    /// How often.
    #[serde(default)]
    pub times: Option<u32>,
    /// How many requests it would strike are spared first.
    #[serde(default)]
    pub after: u32,
    /// How long, for a slow answer.
    #[serde(default)]
    pub milliseconds: u64,
    /// Which row of a file, counted from 1 without its heading.
    #[serde(default)]
    pub row: usize,
    /// Which value is refused.
    #[serde(default)]
    pub value: String,
}

impl Fault {
    fn is_for(&self, owner: &str, path: &str) -> bool {
        self.owner.as_deref().is_none_or(|named| named == owner)
            && self.path.as_deref().is_none_or(|part| path.contains(part))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn waiting(&self) -> &[Fault] {
        &self.0
    }

    /// The fault of this kind that strikes here and now, if one does.
    pub(crate) fn strike(&mut self, kind: FaultKind, owner: &str, path: &str) -> Option<Fault> {
        self.strike_if(|fault| fault.kind == kind && fault.is_for(owner, path))
    }

    /// Whether something with this value is refused.
    pub(crate) fn refuses(&mut self, owner: &str, path: &str, value: &str) -> bool {
        let is_meant = |fault: &Fault| {
            fault.kind == FaultKind::Refuse && fault.value == value && fault.is_for(owner, path)
        };
        self.strike_if(is_meant).is_some()
    }

    /// Whether this row of a file is rejected.
    pub(crate) fn rejects_row(&mut self, owner: &str, row: usize) -> bool {
        let is_meant =
            |fault: &Fault| fault.kind == FaultKind::RejectRow && fault.row == row && fault.is_for(owner, "");
        self.strike_if(is_meant).is_some()
    }

    fn strike_if(&mut self, is_meant: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let at = self.0.iter().position(is_meant)?;
        let fault = &mut self.0[at];
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        let left = fault.times.unwrap_or(fault.kind.usual_times());
        if left == u32::MAX {
            return Some(fault.clone());
        }
        fault.times = Some(left.saturating_sub(1));
        Some(if left > 1 { fault.clone() } else { self.0.remove(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_error_strikes_once_where_it_is_meant_to() {
        let mut faults = Faults::default();
        faults.add(fault(r#"{"kind":"error","owner":"a@b.c","path":"/tags","after":1}"#));
        let mut strike = |owner, path| faults.strike(FaultKind::Error, owner, path).is_some();
        assert!(!strike("x@y.z", "/r/one/tags"), "another owner");
        assert!(!strike("a@b.c", "/r/one/menu"), "another page");
        assert!(!strike("a@b.c", "/r/one/tags"), "the first is spared");
        assert!(strike("a@b.c", "/r/one/tags"));
        assert!(!strike("a@b.c", "/r/one/tags"), "it has struck");
    }

    #[test]
    fn what_is_refused_stays_refused() {
        let mut faults = Faults::default();
        faults.add(fault(r#"{"kind":"refuse","value":"Vegan"}"#));
        assert!(faults.refuses("a@b.c", "/r/one/tags", "Vegan"));
        assert!(faults.refuses("a@b.c", "/r/one/tags", "Vegan"));
        assert!(!faults.refuses("a@b.c", "/r/one/tags", "Spicy"));
    }
}
