//! The findings of `galatea check --auth-policy` in a policy.

use std::path::Path;

use galatea_access::{MAX_POLICY, Policy, PolicyError};
use galatea_config::{Diagnostic, Place};
use galatea_engine::Finding;
use galatea_serve::authentication::{check_key_file, read_text};

/// Returns mistakes of the policy and of its key file. Without any, it returns settings that may not be intended.
pub(super) fn findings(path: &Path) -> Vec<Finding> {
    let file = path.display().to_string();
    let found = match read_text(path, MAX_POLICY) {
        Ok(text) => match Policy::parse(&file, &text) {
            Ok(policy) => of_policy(&policy, path, &file),
            Err(error) => vec![mistake(error, &text)],
        },
        Err(error) => vec![Diagnostic::error(format!("{error:#}")).at(Place::file(file))],
    };
    found.into_iter().map(Finding::of_file).collect()
}

fn of_policy(policy: &Policy, path: &Path, file: &str) -> Vec<Diagnostic> {
    let warnings = policy.warnings().into_iter().map(Diagnostic::warning);
    let keys = check_key_file(policy, path).err();
    let keys = keys.map(|error| Diagnostic::error(format!("{error:#}")));
    warnings.chain(keys).map(|found| found.at(Place::file(file))).collect()
}

fn mistake(error: PolicyError, text: &str) -> Diagnostic {
    let place = Place::in_text(error.file, text, (error.line, error.column));
    Diagnostic::error(error.text).with_advice(error.advice).at(place)
}
