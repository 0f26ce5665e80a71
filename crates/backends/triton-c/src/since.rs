//! The versions of the interfaces in which functions came.

use std::fmt;

/// A version of an interface: major, minor.
pub type Version = [u32; 2];

/// A minor version, and the functions that it brought. Names leave the prefix out.
type Newer = (u32, &'static [&'static str]);

/// The interfaces, with the first version that was seen (older functions count as its own) and what the later ones brought.
const INTERFACES: [(&str, Version, &[Newer]); 4] = [
    ("TRITONBACKEND", [1, 10], BACKEND),
    ("TRITONSERVER", [1, 17], SERVER),
    ("TRITONCACHE", [0, 1], &[]),
    ("TRITONREPOAGENT", [0, 1], &[]),
];

const BACKEND: &[Newer] = &[
    (12, &["RequestParameter", "RequestParameterCount"]),
    (13, &["ModelInstanceReportMemoryUsage", "ModelReportMemoryUsage"]),
    (
        16,
        &[
            "BackendAttributeSetParallelModelInstanceLoading",
            "InferenceResponseOutput",
            "InferenceResponseOutputByName",
            "RequestIsCancelled",
            "RequestTrace",
            "ResponseFactoryIsCancelled",
        ],
    ),
    (17, &["InferenceRequestTimeoutMicroseconds"]),
    (
        19,
        &[
            "ModelInstanceReportResponseStatistics",
            "ModelInstanceResponseStatisticsDelete",
            "ModelInstanceResponseStatisticsNew",
            "ModelInstanceResponseStatisticsSetComputeOutputStart",
            "ModelInstanceResponseStatisticsSetError",
            "ModelInstanceResponseStatisticsSetModelInstance",
            "ModelInstanceResponseStatisticsSetResponseEnd",
            "ModelInstanceResponseStatisticsSetResponseFactory",
            "ModelInstanceResponseStatisticsSetResponseStart",
            "ResponseSetDoubleParameter",
        ],
    ),
];

const SERVER: &[Newer] = &[
    (
        22,
        &[
            "InferenceRequestSetBoolParameter",
            "InferenceRequestSetIntParameter",
            "InferenceRequestSetStringParameter",
            "InferenceTraceRequestId",
        ],
    ),
    (23, &["InferenceRequestPriorityUInt64", "InferenceRequestSetPriorityUInt64"]),
    (
        25,
        &["InferenceRequestCancel", "InferenceRequestIsCancelled", "InferenceTraceSpawnChildTrace"],
    ),
    (
        29,
        &[
            "InferenceRequestSetDoubleParameter",
            "InferenceTraceContext",
            "InferenceTraceSetContext",
        ],
    ),
    (31, &["ServerSetExitTimeout"]),
    (33, &["InferenceTraceReportActivity"]),
    (
        34,
        &[
            "GetMetricFamilyKind",
            "MetricArgsDelete",
            "MetricArgsNew",
            "MetricArgsSetHistogram",
            "MetricNewWithArgs",
            "MetricObserve",
        ],
    ),
];

/// Returns the version in which a function came, if that is newer than the first one seen of its interface.
pub fn newer_version(function: &str) -> Option<Version> {
    let (interface, name) = function.split_once('_')?;
    let (_, [major, _], newer) = INTERFACES.iter().find(|(known, ..)| *known == interface)?;
    let (minor, _) = newer.iter().find(|(_, names)| names.contains(&name))?;
    Some([*major, *minor])
}

/// The newest version of an interface with a function that a library calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalledVersion {
    /// The begin of the functions' names, such as `TRITONBACKEND`.
    pub interface: &'static str,
    /// The version.
    pub version: Version,
}

impl CalledVersion {
    /// Returns that of the functions with these names. Interfaces that are not known have version 0.0.
    pub fn of<'a>(
        interface: &'static str,
        functions: impl IntoIterator<Item = &'a String>,
    ) -> Self {
        let first = INTERFACES.iter().find(|(known, ..)| *known == interface);
        let own = functions
            .into_iter()
            .filter(|name| name.strip_prefix(interface).is_some_and(|rest| rest.starts_with('_')));
        let newest = own.filter_map(|name| newer_version(name)).max();
        let version = newest.or(first.map(|(_, first, _)| *first)).unwrap_or_default();
        Self { interface, version }
    }
}

impl fmt::Display for CalledVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor] = self.version;
        write!(f, "{} {major}.{minor}", self.interface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_function_decides() {
        let version = |interface, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            CalledVersion::of(interface, &names).to_string()
        };
        let called =
            ["TRITONBACKEND_RequestTrace", "TRITONBACKEND_RequestId", "TRITONSERVER_MetricArgsNew"];
        assert_eq!(version("TRITONBACKEND", &called), "TRITONBACKEND 1.16");
        assert_eq!(version("TRITONSERVER", &called), "TRITONSERVER 1.34");
        assert_eq!(version("TRITONBACKEND", &called[1..]), "TRITONBACKEND 1.10");
        assert_eq!(version("TRITONCACHE", &["TRITONCACHE_Copy"]), "TRITONCACHE 0.1");
        assert_eq!(newer_version("TRITONSERVER_ErrorNew"), None);
        assert_eq!(newer_version("other"), None);
    }
}
