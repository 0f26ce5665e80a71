//! Restricted calls, which need a header with a value that only some clients know.

use std::hint::black_box;

/// A group of calls that can be restricted. Every call of either protocol belongs to one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiCategory {
    /// Liveness and readiness of the server and of models.
    Health,
    /// Metadata of the server and of models.
    Metadata,
    /// Inference of every kind.
    Inference,
    /// System and CUDA shared memory regions.
    SharedMemory,
    /// Configurations of models.
    ModelConfig,
    /// Repository index, load and unload.
    ModelRepository,
    /// Statistics of models.
    Statistics,
    /// Trace settings.
    Trace,
    /// Log settings.
    Logging,
}

galatea_types::names! {
    /// Returns the name of the group on the command line.
    pub ApiCategory::name {
        Health = "health", Metadata = "metadata", Inference = "inference", SharedMemory = "shared-memory",
        ModelConfig = "model-config", ModelRepository = "model-repository", Statistics = "statistics",
        Trace = "trace", Logging = "logging",
    }
}

/// The header that a restricted call must send.
#[derive(Clone, PartialEq, Eq)]
pub struct Restriction {
    header: String,
    value: String,
}

impl Restriction {
    /// Returns the name of the header, as the operator wrote it.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Compares in constant time: an almost correct value takes as long as one that is wrong from its first byte.
    fn is_met_by(&self, given: &[u8]) -> bool {
        let expected = self.value.as_bytes();
        let differing = given.iter().zip(expected).fold(0, |found, (a, b)| found | (a ^ b));
        given.len() == expected.len() && black_box(differing) == 0
    }
}

impl std::fmt::Debug for Restriction {
    /// Omits the value, which is a secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Restriction").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The restricted groups of calls and their headers. By default no group is restricted.
#[derive(Clone, Debug, Default)]
pub struct RestrictedApis {
    restrictions: [Option<Restriction>; ApiCategory::ALL.len()],
}

/// The reason why a rule is refused. The texts about groups are Triton's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "their texts say what they are")]
pub enum RestrictionError {
    #[error("expected <groups>:<header>=<value>")]
    Malformed,
    #[error("unknown restricted {what} '{name}'")]
    Unknown { what: &'static str, name: String },
    #[error("restricted {what} '{name}' can not be specified in multiple config groups")]
    Repeated { what: &'static str, name: String },
    /// No client could send such a header, so these calls would be closed to everybody.
    #[error("'{0}' is not the name of a header")]
    NoHeaderName(String),
}

impl RestrictedApis {
    /// Adds a rule `group,group:header=value`. `what` is the protocol's word for a group. Clients send the header with
    /// `prefix` before its name.
    pub fn restrict(
        &mut self,
        rule: &str,
        what: &'static str,
        prefix: &str,
    ) -> Result<(), RestrictionError> {
        let (groups, pair) = rule.split_once(':').ok_or(RestrictionError::Malformed)?;
        let (header, value) = pair.split_once('=').ok_or(RestrictionError::Malformed)?;
        if groups.is_empty() || header.is_empty() || value.is_empty() {
            return Err(RestrictionError::Malformed);
        }
        if !header.bytes().all(is_of_header_name) {
            return Err(RestrictionError::NoHeaderName(header.to_owned()));
        }
        let restriction =
            Restriction { header: format!("{prefix}{header}"), value: value.to_owned() };
        for name in groups.split(',') {
            let category = ApiCategory::ALL
                .into_iter()
                .find(|known| known.name() == name)
                .ok_or_else(|| RestrictionError::Unknown { what, name: name.to_owned() })?;
            let slot = &mut self.restrictions[category as usize];
            if slot.is_some() {
                return Err(RestrictionError::Repeated { what, name: name.to_owned() });
            }
            *slot = Some(restriction.clone());
        }
        Ok(())
    }

    /// Returns the names of the restricted groups.
    pub fn restricted_names(&self) -> Vec<&'static str> {
        let restricted = ApiCategory::ALL.into_iter().filter(|&category| self.restricts(category));
        restricted.map(ApiCategory::name).collect()
    }

    /// Returns `true` if calls of this group need a header.
    pub fn restricts(&self, category: ApiCategory) -> bool {
        self.restrictions[category as usize].is_some()
    }

    /// Checks the headers of a call of this group. `value_of` looks up a header, whatever the case of its name. The
    /// error is the restriction that the call does not meet.
    pub fn check<'h>(
        &self,
        category: ApiCategory,
        value_of: impl FnOnce(&str) -> Option<&'h [u8]>,
    ) -> Result<(), &Restriction> {
        let Some(restriction) = &self.restrictions[category as usize] else { return Ok(()) };
        let is_met = value_of(&restriction.header).is_some_and(|v| restriction.is_met_by(v));
        if is_met { Ok(()) } else { Err(restriction) }
    }
}

/// Returns `true` for the characters of an HTTP token.
fn is_of_header_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restricted(rules: &[&str]) -> Result<RestrictedApis, RestrictionError> {
        let mut apis = RestrictedApis::default();
        rules.iter().try_for_each(|rule| apis.restrict(rule, "api", ""))?;
        Ok(apis)
    }

    #[test]
    fn a_restricted_call_needs_its_header_with_the_exact_value() {
        let apis = restricted(&["inference,health:key=a=b", "logging:other=x"]).expect("good");
        let check =
            |category, given: &'static str| apis.check(category, |_| Some(given.as_bytes()));
        assert!(check(ApiCategory::Inference, "a=b").is_ok());
        assert!(check(ApiCategory::Health, "a=b").is_ok());
        for wrong in ["", "a=", "a=c", "a=bb", "A=B", "x"] {
            let restriction = check(ApiCategory::Inference, wrong).expect_err(wrong);
            assert_eq!(restriction.header(), "key");
        }
        assert!(apis.check(ApiCategory::Inference, |_| None).is_err());
        assert!(apis.check(ApiCategory::Metadata, |_| None).is_ok());
        assert!(check(ApiCategory::Logging, "x").is_ok());
    }

    #[test]
    fn every_group_can_be_restricted_by_its_name() {
        for category in ApiCategory::ALL {
            let apis = restricted(&[&format!("{}:k=v", category.name())]).expect("good");
            for other in ApiCategory::ALL {
                assert_eq!(apis.check(other, |_| None).is_err(), other == category, "{other:?}");
            }
        }
    }

    #[test]
    fn the_prefix_is_part_of_the_header_name() {
        let mut apis = RestrictedApis::default();
        apis.restrict("health:k=v", "protocol", "triton-grpc-protocol-").expect("good");
        let restriction = apis.check(ApiCategory::Health, |name| {
            assert_eq!(name, "triton-grpc-protocol-k");
            None
        });
        assert_eq!(restriction.expect_err("no header").header(), "triton-grpc-protocol-k");
    }

    #[test]
    fn empty_rules_and_rules_that_lock_everyone_out_are_refused() {
        for rule in
            ["", "inference", "inference:k", "inference=k:v", ":k=v", "health:=v", "health:k="]
        {
            assert_eq!(restricted(&[rule]).expect_err(rule), RestrictionError::Malformed, "{rule}");
        }
        for (rules, text) in [
            (&["bogus:k=v"][..], "unknown restricted api 'bogus'"),
            (&["health,:k=v"], "unknown restricted api ''"),
            (&["Health:k=v"], "unknown restricted api 'Health'"),
            (
                &["health:k=v", "logging,health:x=y"],
                "restricted api 'health' can not be specified in multiple config groups",
            ),
            (&["health:a b=v"], "'a b' is not the name of a header"),
        ] {
            assert_eq!(restricted(rules).expect_err(text).to_string(), text);
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let apis = restricted(&["health:key=secret"]).expect("good");
        assert!(!format!("{apis:?}").contains("secret"));
    }
}
