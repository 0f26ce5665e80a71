//! The names that families and labels may have.

use super::kind::CustomMetricKind;

/// Returns whether `name` can be a label. `le` is the histogram's own label.
pub(super) fn is_label_name(name: &str, kind: CustomMetricKind) -> bool {
    is_name(name, |_| false) && !(kind == CustomMetricKind::Histogram && name == "le")
}

/// Matches `[a-zA-Z_][a-zA-Z0-9_]*` with `extra` allowed anywhere; two leading underscores are Prometheus's own.
pub(super) fn is_name(name: &str, extra: fn(char) -> bool) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || extra(c);
    name.starts_with(is_start)
        && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
        && !name.starts_with("__")
}
