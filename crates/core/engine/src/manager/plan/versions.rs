//! Selects the versions of a model that its configuration wants.

use galatea_config::{RawModelConfig, VersionPolicy};

/// Returns the versions of a model that an unfinished configuration wants. If none of them exists, returns the lowest version.
pub(crate) fn versions_to_load(raw: &RawModelConfig, all: &[i64]) -> Vec<i64> {
    let chosen = choose_versions(&VersionPolicy::of(raw), all);
    if chosen.is_empty() { all.first().copied().into_iter().collect() } else { chosen }
}

/// Returns the versions that a policy selects.
pub(crate) fn choose_versions(policy: &VersionPolicy, all: &[i64]) -> Vec<i64> {
    match policy {
        VersionPolicy::All => all.to_vec(),
        VersionPolicy::Latest(count) => {
            let skipped = all.len().saturating_sub(usize::try_from(*count).unwrap_or(usize::MAX));
            all.iter().skip(skipped).copied().collect()
        }
        VersionPolicy::Specific(wanted) => {
            all.iter().filter(|v| wanted.contains(v)).copied().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_the_version_policy() {
        for (policy, expected) in [
            (VersionPolicy::All, vec![1, 2, 5]),
            (VersionPolicy::Latest(1), vec![5]),
            (VersionPolicy::Latest(2), vec![2, 5]),
            (VersionPolicy::Latest(9), vec![1, 2, 5]),
            (VersionPolicy::Specific(vec![5, 1, 7]), vec![1, 5]),
        ] {
            assert_eq!(choose_versions(&policy, &[1, 2, 5]), expected, "{policy:?}");
        }
    }
}
