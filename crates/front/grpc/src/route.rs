//! Maps the path of a call to its method and its group of calls.

use galatea_frontend::{Action, ApiCategory};

/// The path of every call of the inference service begins with this.
const INFERENCE: &str = "/inference.GRPCInferenceService/";
const HEALTH: &str = "/grpc.health.v1.Health/";
/// The stream of load reports for balancers.
const LOAD_REPORTS: &str = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics";
const REFLECTION: &str = "/grpc.reflection.";

/// A supported call, by the way in which it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    ModelInfer,
    ModelStreamInfer,
    RepositoryModelLoad,
    /// Any other call of the inference service.
    Inference(&'static ShortMethod),
    HealthCheck,
    HealthWatch,
    LoadReports,
    Reflection(ReflectionVersion),
}

/// A version of the reflection service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReflectionVersion {
    V1,
    V1Alpha,
}

/// A call with a short message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShortMethod {
    pub name: &'static str,
    category: ApiCategory,
    access: Action<'static>,
}

impl Route {
    /// Returns the route of a path; `None` if there is no such call.
    pub fn of(path: &str) -> Option<Self> {
        if let Some(name) = path.strip_prefix(INFERENCE) {
            return match name {
                "ModelInfer" => Some(Self::ModelInfer),
                "ModelStreamInfer" => Some(Self::ModelStreamInfer),
                "RepositoryModelLoad" => Some(Self::RepositoryModelLoad),
                name => SHORT.iter().find(|method| method.name == name).map(Self::Inference),
            };
        }
        match path.strip_prefix(REFLECTION) {
            Some("v1.ServerReflection/ServerReflectionInfo") => {
                return Some(Self::Reflection(ReflectionVersion::V1));
            }
            Some("v1alpha.ServerReflection/ServerReflectionInfo") => {
                return Some(Self::Reflection(ReflectionVersion::V1Alpha));
            }
            _ => {}
        }
        if path == LOAD_REPORTS {
            return Some(Self::LoadReports);
        }
        match path.strip_prefix(HEALTH)? {
            "Check" => Some(Self::HealthCheck),
            "Watch" => Some(Self::HealthWatch),
            _ => None,
        }
    }

    /// Returns the group of calls by which it may be restricted.
    pub fn category(self) -> ApiCategory {
        match self {
            Self::ModelInfer | Self::ModelStreamInfer => ApiCategory::Inference,
            Self::RepositoryModelLoad => ApiCategory::ModelRepository,
            Self::Inference(method) => method.category,
            Self::HealthCheck | Self::HealthWatch | Self::LoadReports => ApiCategory::Health,
            Self::Reflection(_) => ApiCategory::Metadata,
        }
    }

    /// Returns the permission that a client needs for the call, as far as it is known before the message is read.
    pub fn access(self) -> Action<'static> {
        match self {
            Self::ModelInfer | Self::ModelStreamInfer => Action::InferSomething,
            Self::RepositoryModelLoad => Action::ControlSomething,
            Self::HealthCheck | Self::HealthWatch => Action::Live,
            Self::LoadReports => Action::Metrics,
            Self::Reflection(_) => Action::Reflection,
            Self::Inference(method) => method.access,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::ModelInfer => "ModelInfer",
            Self::ModelStreamInfer => "ModelStreamInfer",
            Self::RepositoryModelLoad => "RepositoryModelLoad",
            Self::HealthCheck => "Check",
            Self::HealthWatch => "Watch",
            Self::LoadReports => "StreamCoreMetrics",
            Self::Reflection(_) => "ServerReflectionInfo",
            Self::Inference(method) => method.name,
        }
    }

    /// Returns `true` if the client may send any number of messages.
    pub fn is_stream(self) -> bool {
        matches!(self, Self::ModelStreamInfer | Self::Reflection(_))
    }
}

const fn short(name: &'static str, category: ApiCategory, access: Action<'static>) -> ShortMethod {
    ShortMethod { name, category, access }
}

static SHORT: [ShortMethod; 17] = [
    short("ServerLive", ApiCategory::Health, Action::Live),
    short("ServerReady", ApiCategory::Health, Action::Live),
    short("ModelReady", ApiCategory::Health, Action::SomethingReady),
    short("ServerMetadata", ApiCategory::Metadata, Action::ServerMetadata),
    short("ModelMetadata", ApiCategory::Metadata, Action::ReadSomething),
    short("ModelConfig", ApiCategory::ModelConfig, Action::ReadSomething),
    short("ModelStatistics", ApiCategory::Statistics, Action::ReadSomething),
    short("RepositoryIndex", ApiCategory::ModelRepository, Action::ReadSomething),
    short("RepositoryModelUnload", ApiCategory::ModelRepository, Action::ControlSomething),
    short("SystemSharedMemoryStatus", ApiCategory::SharedMemory, Action::ControlServer),
    short("SystemSharedMemoryRegister", ApiCategory::SharedMemory, Action::ControlServer),
    short("SystemSharedMemoryUnregister", ApiCategory::SharedMemory, Action::ControlServer),
    short("CudaSharedMemoryStatus", ApiCategory::SharedMemory, Action::ControlServer),
    short("CudaSharedMemoryRegister", ApiCategory::SharedMemory, Action::ControlServer),
    short("CudaSharedMemoryUnregister", ApiCategory::SharedMemory, Action::ControlServer),
    short("TraceSetting", ApiCategory::Trace, Action::ControlServer),
    short("LogSettings", ApiCategory::Logging, Action::ControlServer),
];

#[cfg(test)]
mod tests {
    use galatea_proto::FILE_DESCRIPTOR_SET;
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_grpc_method_has_a_route_and_a_group() {
        let files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
        let mut count = 0;
        for file in &files.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let route = Route::of(&path).unwrap_or_else(|| panic!("{path}"));
                    let name = method.name().to_lowercase();
                    let wanted = match route.category() {
                        ApiCategory::Health => {
                            ["live", "ready", "check", "watch", "metrics"].as_slice()
                        }
                        ApiCategory::Metadata => &["metadata"],
                        ApiCategory::Inference => &["infer"],
                        ApiCategory::SharedMemory => &["sharedmemory"],
                        ApiCategory::ModelConfig => &["config"],
                        ApiCategory::ModelRepository => &["repository"],
                        ApiCategory::Statistics => &["statistics"],
                        ApiCategory::Trace => &["trace"],
                        ApiCategory::Logging => &["log"],
                    };
                    assert!(wanted.iter().any(|part| name.contains(part)), "{path}: {route:?}");
                    assert_eq!(route.is_stream(), method.client_streaming(), "{path}");
                    assert_eq!(route.name(), method.name());
                    count += 1;
                }
            }
        }
        assert_eq!(count, 23);
        for version in ["v1", "v1alpha"] {
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let route = Route::of(&path).expect("a route");
            assert!(route.is_stream() && route.category() == ApiCategory::Metadata);
        }
        for path in ["", "/", "/x/ServerLive", "/inference.GRPCInferenceService/Nope"] {
            assert_eq!(Route::of(path), None, "{path}");
        }
    }
}
