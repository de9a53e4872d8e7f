//! Orders under fire: `ode bench orders` with real processes that are killed, and an audit of the provider's ledger.

use crate::harness::{Ode, Ran, bare, on_both};

on_both!(every_single_fault_and_some_pairs_leave_one_order_and_one_charge);

/// Every single fault, and then pairs.
const RUNS: &str = "110";

fn every_single_fault_and_some_pairs_leave_one_order_and_one_charge(ode: &Ode) {
    let mut command = bare();
    command.args(["bench", "orders", "--runs", RUNS, "--seed", "7"]);
    if ode.url().starts_with("postgres") {
        command.args(["--on", &ode.url()]);
    }
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let found = ran.json();
    for what in ["duplicates", "lost", "illegal"] {
        assert_eq!(found[what], 0, "{found}");
    }
    assert!(found["struck"].as_object().unwrap().len() > 15, "too few faults struck: {found}");
    assert!(found["kills"].as_object().unwrap().len() > 10, "too few workers died: {found}");
    assert!(found["met_two_or_more"].as_u64().unwrap() > 20, "too few met two faults: {found}");
}

/// What nothing can be found with shows nothing: without the provider's guarantees, the same audit must fail.
fn without(guarantee: &str) {
    let mut command = bare();
    command.args(["bench", "orders", "--runs", "90", "--faults", "1", "--seed", "3", guarantee]);
    let ran = Ran::of(&mut command);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.json()["duplicates"].as_u64().unwrap() > 0, "{ran:?}");
    assert!(ran.stderr.contains("seed 3"), "{ran:?}");
}

#[test]
fn without_unique_ids_the_audit_finds_duplicates() {
    without("--not-unique");
}

#[test]
fn without_confirming_once_the_audit_finds_duplicates() {
    without("--confirm-often");
}
