//! Which findings a person is told in the terminal. All of them are in the result; here each is told once, in its
//! clearest words, and what is only good to know is not.

use crate::Finding;
use ode_invoice::{FindingCode, terms};

/// What to look at before the result is used.
pub fn worth_telling(all: &[Finding]) -> Vec<&Finding> {
    let mut told: Vec<&Finding> = Vec::new();
    for finding in all.iter().filter(|finding| finding.severity != "info") {
        match told.iter_mut().find(|other| **other == finding || is_same_gap(other, finding)) {
            None => told.push(finding),
            // The mapping, the rules and the writer each tell of what is missing, one more clearly than the other.
            Some(other) if !is(other, FindingCode::DemandedTermMissing) => *other = finding,
            Some(_) => {}
        }
    }
    told.iter().filter(|finding| !is_told_by_a_rule(finding, &told)).copied().collect()
}

/// What was worked out because the standard demands it, in one line: UBL and CII have no place to say so themselves.
pub fn worked_out(all: &[Finding]) -> Option<String> {
    let derived = all.iter().filter(|finding| is(finding, FindingCode::Derived));
    let fields = derived.filter_map(|finding| finding.field.as_deref());
    let label = |name| match name {
        "lines" => "lines",
        "vat" => "tax by rate",
        _ => terms::header(name).map_or(name, |term| term.label),
    };
    let labels: Vec<&str> = fields.map(label).collect();
    let code = FindingCode::Derived;
    (!labels.is_empty()).then(|| format!("info: Worked out, not printed: {}. ({code})", labels.join(", ")))
}

fn is(finding: &Finding, code: FindingCode) -> bool {
    finding.code == code.as_str()
}

/// Whether both say that the same field is not there.
fn is_same_gap(one: &Finding, other: &Finding) -> bool {
    let is_gap =
        |finding| is(finding, FindingCode::FieldMissing) || is(finding, FindingCode::DemandedTermMissing);
    is_gap(one) && is_gap(other) && one.field == other.field
}

/// Whether a mapping's check fails for a sum that a rule has told with its figures.
fn is_told_by_a_rule(finding: &Finding, told: &[&Finding]) -> bool {
    let is_about =
        |rule: &&&Finding| rule.field.as_ref().is_some_and(|field| finding.message.contains(field.as_str()));
    is(finding, FindingCode::CheckFailed)
        && finding.severity == "review"
        && told.iter().filter(|rule| rule.code.ends_with("_MISMATCH")).any(|rule| is_about(&rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: &str, code: FindingCode, field: &str, message: &str) -> Finding {
        let field = Some(field.to_owned());
        Finding { severity: severity.into(), code: code.to_string(), field, message: message.into() }
    }

    #[test]
    fn a_gap_is_told_once_and_a_failed_sum_by_its_figures() {
        use FindingCode::{CheckFailed, DemandedTermMissing, Derived, FieldMissing, TotalMismatch};
        fn check(all: &[Finding], expected: &[usize]) {
            let told = worth_telling(all);
            assert_eq!(told, expected.iter().map(|at| &all[*at]).collect::<Vec<_>>());
        }
        let by_mapping = finding("review", FieldMissing, "issue_date", "No date of issue was found.");
        let by_rule = finding("review", FieldMissing, "issue_date", "No day of issue was found.");
        let by_writer = finding("review", DemandedTermMissing, "issue_date", "The document states no day.");
        let other = finding("review", FieldMissing, "currency", "No currency was found.");
        let sum = finding("review", CheckFailed, "net_total", "… net_total + tax_total == gross_total.");
        let strict = finding("error", CheckFailed, "net_total", "… net_total + tax_total == gross_total.");
        let total = finding("review", TotalMismatch, "gross_total", "Net 1 and tax 2 …");
        let known = finding("info", Derived, "type_code", "…");
        check(&[], &[]);
        check(&[by_mapping.clone(), by_rule.clone(), other.clone()], &[1, 2]);
        check(&[by_mapping.clone(), by_rule.clone(), by_writer.clone()], &[2]);
        check(&[by_writer, by_rule, by_mapping], &[0]);
        check(&[sum.clone(), known, total.clone()], &[2]);
        check(&[strict, total], &[0, 1]);
        check(&[sum.clone(), sum, other], &[0, 2]);
    }

    #[test]
    fn what_was_worked_out_is_told_in_a_line() {
        use FindingCode::{Derived, FieldMissing};
        let gap = finding("review", FieldMissing, "issue_date", "No date of issue was found.");
        assert_eq!(worked_out(std::slice::from_ref(&gap)), None);
        let derived = ["gross_total", "vat"].map(|field| finding("info", Derived, field, "…"));
        let told = worked_out(&[derived.to_vec(), vec![gap]].concat());
        assert_eq!(
            told.as_deref(),
            Some("info: Worked out, not printed: gross total, tax by rate. (DERIVED)")
        );
    }
}
