//! Computes the supply of the resources that executions hold, and the demand of each instance.

use std::{collections::BTreeMap, sync::Arc};

use galatea_config::{Diagnostic, FieldPath, RateLimiterResource};
use galatea_types::Error;

/// Copies of a resource that the operator provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceSupply {
    /// The name used in configurations.
    pub name: String,
    /// The number of copies.
    pub count: u64,
    /// The device with the copies; `None` if each device has this many. Ignored for a global resource.
    pub device: Option<i64>,
}

/// Copies of one resource that executions share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pool {
    pub name: Arc<str>,
    /// `None` is one pool for the whole server.
    pub device: Option<u32>,
}

/// The copies that an execution of an instance holds, by pool.
pub(crate) type Demand = BTreeMap<Pool, u64>;

/// Returns the demand of an instance on this device. If a resource is named twice, its last entry counts.
pub(crate) fn demand(resources: &[RateLimiterResource], device: u32) -> Demand {
    let entry = |resource: &RateLimiterResource| {
        let device = (!resource.is_global).then_some(device);
        (Pool { name: resource.name.clone(), device }, u64::from(resource.count))
    };
    resources.iter().map(entry).collect()
}

/// The reason why instances with these demands cannot be served.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SupplyError {
    #[error(
        "Resource \"{name}\" is present as both global and device-specific resource in the model configuration."
    )]
    BothKinds { name: Arc<str> },
    #[error(
        "Resource count for \"{name}\" is limited to {count} which will prevent scheduling of one or more model \
         instances, the minimum required count is {needed}"
    )]
    TooLittle { name: Arc<str>, count: u64, needed: u64 },
}

impl SupplyError {
    fn advice(&self) -> String {
        match self {
            Self::BothKinds { name } => {
                format!("set 'global' of \"{name}\" to the same in all models, or use two names")
            }
            Self::TooLittle { name, needed, .. } => format!(
                "start the server with --rate-limit-resource={name}:{needed} or more, or ask for less in the instance \
                 group"
            ),
        }
    }

    /// Returns the error of a model whose instance group of this number has the demand.
    pub fn of_group(&self, group: usize) -> Error {
        let field = FieldPath::from("instance_group").index(group).field("rate_limiter");
        let text = self.to_string();
        let found = Diagnostic::error(text.as_str()).with_advice(self.advice()).about(field);
        Error::invalid_arg(text).with_source(found)
    }
}

/// Returns the number of copies in each pool: the number that the operator provides, else the largest of these demands.
pub(crate) fn supply<'a>(
    provided: &[ResourceSupply],
    demands: impl Iterator<Item = &'a Demand>,
) -> Result<Demand, SupplyError> {
    let mut supply = Demand::new();
    for (pool, &count) in demands.flatten() {
        let most = supply.entry(pool.clone()).or_default();
        *most = count.max(*most);
    }
    if !provided.is_empty() {
        for (pool, needed) in &mut supply {
            *needed = provided_for(provided, pool, *needed)?;
        }
    }
    match supply.keys().find(|pool| is_of_both_kinds(pool, &supply)) {
        Some(Pool { name, .. }) => Err(SupplyError::BothKinds { name: name.clone() }),
        None => Ok(supply),
    }
}

fn provided_for(provided: &[ResourceSupply], pool: &Pool, needed: u64) -> Result<u64, SupplyError> {
    let is_of_pool = |supply: &&ResourceSupply| {
        let is_there = match (pool.device, supply.device) {
            (None, _) | (_, None) => true,
            (Some(device), Some(there)) => i64::from(device) == there,
        };
        *supply.name == *pool.name && is_there
    };
    let count = provided.iter().filter(is_of_pool).map(|s| s.count).max().unwrap_or(0);
    match count < needed {
        true => Err(SupplyError::TooLittle { name: pool.name.clone(), count, needed }),
        false => Ok(count),
    }
}

fn is_of_both_kinds(pool: &Pool, supply: &Demand) -> bool {
    pool.device.is_some() && supply.contains_key(&Pool { device: None, ..pool.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str, is_global: bool, count: u32) -> (Pool, u64) {
        (Pool { name: name.into(), device: (!is_global).then_some(0) }, count.into())
    }

    fn on_device(name: &str, device: u32, count: u64) -> Demand {
        Demand::from([(Pool { name: name.into(), device: Some(device) }, count)])
    }

    fn provided(name: &str, count: u64, device: Option<i64>) -> ResourceSupply {
        ResourceSupply { name: name.to_owned(), count, device }
    }

    #[test]
    fn the_default_supply_is_the_largest_demand() {
        let demands = [
            Demand::from([resource("a", false, 4)]),
            Demand::from([resource("a", false, 2), resource("b", true, 3)]),
            on_device("a", 1, 7),
        ];
        let expected: Demand =
            [resource("a", false, 4), resource("b", true, 3)].into_iter().collect();
        let expected = expected.into_iter().chain(on_device("a", 1, 7)).collect();
        assert_eq!(supply(&[], demands.iter()), Ok(expected));
    }

    #[test]
    fn configured_supply_counts_per_device_or_for_all_devices() {
        let demands = [on_device("a", 0, 2), on_device("a", 1, 2)];
        let all = supply(&[provided("a", 5, None), provided("a", 9, Some(1))], demands.iter());
        let expected: Demand =
            on_device("a", 0, 5).into_iter().chain(on_device("a", 1, 9)).collect();
        assert_eq!(all, Ok(expected));
        let one = supply(&[provided("a", 9, Some(1))], demands.iter());
        let error = one.expect_err("device 0 has none").to_string();
        assert_eq!(
            error,
            "Resource count for \"a\" is limited to 0 which will prevent scheduling of one or more model instances, \
             the minimum required count is 2"
        );
    }

    #[test]
    fn the_device_of_a_global_resource_is_ignored() {
        let demands = [Demand::from([resource("g", true, 2)])];
        let found = supply(&[provided("g", 3, Some(10))], demands.iter());
        assert_eq!(found, Ok(Demand::from([resource("g", true, 3)])));
    }

    #[test]
    fn a_resource_is_either_global_or_per_device() {
        let demands =
            [Demand::from([resource("r", true, 2)]), Demand::from([resource("r", false, 2)])];
        let error = supply(&[], demands.iter()).expect_err("both kinds").to_string();
        assert_eq!(
            error,
            "Resource \"r\" is present as both global and device-specific resource in the model configuration."
        );
    }
}
