//! Warns once about all that a model loses when its instance groups for GPUs run on the CPU.

use super::has_cuda_settings;
use crate::{Diagnostic, FieldPath, InstanceGroup, ModelConfig};

/// Returns the warning when such a group runs on the CPU.
pub(super) fn find(config: &ModelConfig) -> Option<Diagnostic> {
    let moved: Vec<_> = config.instance_groups().iter().filter(|g| g.stands_for_gpus).collect();
    let first = config.instance_groups().iter().position(|g| g.stands_for_gpus)?;
    let ignored = ignored(config);
    let without = match ignored.is_empty() {
        true => String::new(),
        false => format!(", without {}", ignored.join(", ")),
    };
    let text = format!(
        "instance_group of model '{}' asks for GPUs that this server does not have: {} on the CPU{without}",
        config.name(),
        instances(&moved)
    );
    let field = FieldPath::from("instance_group").index(first);
    Some(Diagnostic::warning(text).about(field))
}

fn instances(groups: &[&InstanceGroup]) -> String {
    let count = groups.iter().fold(0_u32, |sum, group| sum.saturating_add(group.count));
    let names: Vec<_> = groups.iter().map(|group| format!("'{}'", group.name)).collect();
    let s = if names.len() == 1 { "" } else { "s" };
    let run =
        if count == 1 { "1 instance runs".to_owned() } else { format!("{count} instances run") };
    format!("{run} (group{s} {})", names.join(", "))
}

/// Returns the settings of the configuration that concern GPUs only.
fn ignored(config: &ModelConfig) -> Vec<String> {
    let names = config.optimization().gpu_accelerators.iter();
    let mut ignored: Vec<_> =
        names.map(|accelerator| format!("accelerator '{}'", accelerator.name)).collect();
    if has_cuda_settings(config) {
        ignored.push("optimization.cuda".to_owned());
    }
    if config.raw().instance_group.iter().any(|g| !g.secondary_devices.is_empty()) {
        ignored.push("secondary_devices".to_owned());
    }
    ignored
}
