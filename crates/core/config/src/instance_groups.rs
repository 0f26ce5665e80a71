//! Configurations that differ only in their instance groups, which can change while a model runs.

use crate::RawModelConfig;

/// Returns whether the two differ at most in their instance groups.
pub fn differ_in_instances_only(one: &RawModelConfig, other: &RawModelConfig) -> bool {
    with_instances_of(one, other) == *other
}

/// Returns `config` with the instance groups of `other`.
pub fn with_instances_of(config: &RawModelConfig, other: &RawModelConfig) -> RawModelConfig {
    RawModelConfig { instance_group: other.instance_group.clone(), ..config.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_groups_are_compared_separately() {
        let parse = |more: &str| crate::parse_text(&format!("name: 'm' {more}")).expect("valid");
        let (one, two) =
            (parse("instance_group { count: 1 }"), parse("instance_group { count: 2 }"));
        assert!(differ_in_instances_only(&one, &two) && differ_in_instances_only(&one, &parse("")));
        let other = parse("max_batch_size: 4 instance_group { count: 1 }");
        assert!(!differ_in_instances_only(&one, &other));
        assert_eq!(with_instances_of(&one, &two), two);
    }
}
