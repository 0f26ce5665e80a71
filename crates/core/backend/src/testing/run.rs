//! Runs all conformance tests.

use galatea_types::DataType;

use crate::testing::{Clause, Subject, clauses};

/// Checks every clause with every model the subject offers.
///
/// # Panics
/// If a clause is violated, with all violations; also if the subject offers nothing to check.
#[track_caller]
pub fn run(subject: &dyn Subject) {
    let kept = || Clause::ALL.into_iter().filter(|c| !subject.ignores().contains(c));
    let mut checked = 0;
    let mut violations = Vec::new();
    for data_type in DataType::ALL {
        for clause in kept() {
            match clauses::check(subject, clause, data_type) {
                Some(Ok(())) => checked += 1,
                Some(Err(reason)) => violations.push(format!("{clause:?} ({data_type}): {reason}")),
                None => {}
            }
        }
    }
    assert!(violations.is_empty(), "violated:\n{}", violations.join("\n"));
    assert!(checked > 0, "the subject offers no model");
}
