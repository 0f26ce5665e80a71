//! Host policies: names on the command line for CPUs and NUMA nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::{
    cpus,
    system::{self, MAX_NODES},
};

/// Folder in which the system lists NUMA nodes.
const NODES: &str = "/sys/devices/system/node";

/// The CPUs and the memory of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPolicy {
    pub(crate) cpus: Option<BTreeSet<usize>>,
    pub(crate) node: Option<u32>,
    /// True if the CPUs were named, and are not just those of the node.
    has_own_cpus: bool,
}

/// The fault of a setting of a policy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Only two settings exist.
    #[error(
        "Unsupported host policy setting '{0}' is specified, supported settings are 'numa-node', 'cpu-cores'"
    )]
    Unknown(String),
    /// The value is not a list of ranges.
    #[error(
        "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got {0}"
    )]
    NoRange(String),
    /// The value is not a number.
    #[error("Parsing 'numa-node' value: Can't parse '{0}' to integer")]
    NoNumber(String),
    /// The CPUs do not exist on this machine: the value, and the existing ones.
    #[error(
        "host policy setting 'cpu-cores' names none of the CPUs that the server may use, which are {1}. Got {0}"
    )]
    NoCpu(String, String),
    /// The node does not exist on this machine: the value, and the existing ones.
    #[error(
        "host policy setting 'numa-node' names no NUMA node of this machine, which are {1}. Got {0}"
    )]
    NoNode(String, String),
    /// The node has only memory, or the server may not use its CPUs.
    #[error(
        "host policy setting 'numa-node' names a NUMA node without CPUs that the server may use: name some with \
         'cpu-cores' before it. Got {0}"
    )]
    NodeWithoutCpus(String),
}

impl HostPolicy {
    /// Changes one setting.
    ///
    /// # Errors
    /// For a setting or a value that this machine does not have.
    pub fn set(&mut self, setting: &str, value: &str) -> Result<(), PolicyError> {
        match setting {
            "cpu-cores" => self.set_cpus(value),
            "numa-node" => self.set_node(value, Path::new(NODES)),
            _ => Err(PolicyError::Unknown(setting.to_owned())),
        }
    }

    fn set_cpus(&mut self, value: &str) -> Result<(), PolicyError> {
        let given = value.to_owned();
        let Some(cpus) = cpus::parse(value, false) else { return Err(PolicyError::NoRange(given)) };
        let usable = system::usable();
        if !usable.is_empty() && usable.is_disjoint(&cpus) {
            return Err(PolicyError::NoCpu(given, cpus::listed(&usable)));
        }
        (self.cpus, self.has_own_cpus) = (Some(cpus), true);
        Ok(())
    }

    /// Sets the node. Threads run beside their memory, unless their CPUs are named.
    fn set_node(&mut self, value: &str, nodes: &Path) -> Result<(), PolicyError> {
        let given = value.to_owned();
        let number: i64 = value.parse().map_err(|_| PolicyError::NoNumber(given.clone()))?;
        let online = fs::read_to_string(nodes.join("online")).ok();
        let online = online.and_then(|text| cpus::parse(&text, true));
        // A system that lists no nodes counts as one node.
        let online = online.unwrap_or_else(|| BTreeSet::from([0]));
        let node = u32::try_from(number).ok().filter(|&node| node < MAX_NODES);
        let node = node.filter(|&node| online.contains(&(node as usize)));
        let node = node.ok_or_else(|| PolicyError::NoNode(given.clone(), cpus::listed(&online)))?;
        if !self.has_own_cpus {
            self.cpus = cpus_of(node, nodes, given)?;
        }
        self.node = Some(node);
        Ok(())
    }
}

/// Returns the CPUs of a node, or `None` if the system does not list them.
fn cpus_of(node: u32, nodes: &Path, given: String) -> Result<Option<BTreeSet<usize>>, PolicyError> {
    let list = fs::read_to_string(nodes.join(format!("node{node}/cpulist")));
    let Ok(list) = list else { return Ok(None) };
    let usable = system::usable();
    match cpus::parse(&list, true) {
        Some(cpus) if usable.is_empty() || !usable.is_disjoint(&cpus) => Ok(Some(cpus)),
        _ => Err(PolicyError::NodeWithoutCpus(given)),
    }
}

/// The policies of the command line, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPolicies(BTreeMap<String, HostPolicy>);

impl HostPolicies {
    /// Changes one setting of a policy, and adds the policy if it is new.
    ///
    /// # Errors
    /// Those of [`HostPolicy::set`].
    pub fn set(&mut self, name: &str, setting: &str, value: &str) -> Result<(), PolicyError> {
        let mut policy = self.0.get(name).cloned().unwrap_or_default();
        policy.set(setting, value)?;
        self.0.insert(name.to_owned(), policy);
        Ok(())
    }

    /// Returns the policy of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&HostPolicy> {
        self.0.get(name)
    }

    /// Returns the names of all policies.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(setting: &str, value: &str) -> String {
        HostPolicies::default().set("p", setting, value).expect_err(value).to_string()
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(
            error("foo", "1"),
            "Unsupported host policy setting 'foo' is specified, supported settings are 'numa-node', 'cpu-cores'"
        );
        assert_eq!(
            error("cpu-cores", "3"),
            "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 3"
        );
        assert_eq!(
            error("numa-node", "x"),
            "Parsing 'numa-node' value: Can't parse 'x' to integer"
        );
        assert!(
            error("cpu-cores", "1022-1023").contains("none of the CPUs that the server may use")
        );
        assert!(error("numa-node", "1023").contains("names no NUMA node of this machine"));
        assert!(error("numa-node", "-1").contains("names no NUMA node of this machine"));
    }

    /// A machine with two nodes, of which one has no CPUs.
    #[test]
    fn a_numa_node_implies_its_cpus_unless_others_are_given() {
        let usable = system::usable();
        let first = *usable.first().expect("a CPU");
        let root = std::env::temp_dir().join(format!("galatea-nodes-{}", std::process::id()));
        for (node, cpus) in [("node0", first.to_string()), ("node1", "\n".to_owned())] {
            fs::create_dir_all(root.join(node)).expect("a folder");
            fs::write(root.join(node).join("cpulist"), cpus).expect("a file");
        }
        fs::write(root.join("online"), "0-1\n").expect("a file");
        let mut policy = HostPolicy::default();
        policy.set_node("0", &root).expect("a node");
        assert_eq!((&policy.cpus, policy.node), (&Some(BTreeSet::from([first])), Some(0)));
        let found = HostPolicy::default().set_node("1", &root).expect_err("no CPUs");
        assert_eq!(found, PolicyError::NodeWithoutCpus("1".to_owned()));
        let mut policy = HostPolicy::default();
        policy.set_cpus(&format!("{first}-{first}")).expect("a CPU");
        policy.set_node("1", &root).expect("its memory alone");
        assert_eq!((&policy.cpus, policy.node), (&Some(BTreeSet::from([first])), Some(1)));
        fs::remove_dir_all(root).expect("removed");
    }
}
