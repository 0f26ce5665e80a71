//! The table itself, in perf_analyzer's groups and one of our own.

mod beyond;
mod general;
mod input;
mod measurement;
mod other;
mod server;

use super::spec::{Group, Spec};

pub fn groups() -> &'static [Group] {
    GROUPS
}

const GROUPS: &[Group] = &[
    Group { title: "General", specs: general::SPECS, is_ours: false },
    Group { title: "Measurement", specs: measurement::SPECS, is_ours: false },
    Group { title: "Input data", specs: input::SPECS, is_ours: false },
    Group { title: "Server", specs: server::SPECS, is_ours: false },
    Group { title: "Other", specs: other::SPECS, is_ours: false },
    Group { title: "Beyond perf_analyzer", specs: beyond::SPECS, is_ours: true },
];

/// Every option of every group.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    groups().iter().flat_map(|group| group.specs)
}

/// Of options that may be followed by a truth value.
pub fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}
