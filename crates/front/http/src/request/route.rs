//! Routes: the meaning of a request path, and the methods that it allows.

use galatea_frontend::{Action, ApiCategory};
use galatea_protocol::parse_model_version;
use galatea_types::Result;
use http::Method;

use crate::response::answers::{JSON, TEXT};

/// The meaning of a path. Names and versions are as written, because Triton resolves no percent escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route<'p> {
    ServerMetadata,
    Live,
    Ready,
    Model(ModelAction, ModelPath<'p>),
    AllStatistics,
    RepositoryIndex,
    Load(&'p str),
    Unload(&'p str),
    /// Load or unload in a named repository, which is not supported. Its index is that of all repositories.
    NamedRepository,
    SharedMemory(SharedMemoryKind, SharedMemoryAction, Option<&'p str>),
    TraceSetting,
    Logging,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelPath<'p> {
    pub name: &'p str,
    /// The digits of the version.
    pub version: Option<&'p str>,
}

impl ModelPath<'_> {
    /// Returns the version as a number; `None` if the path names none.
    pub fn version(&self) -> Result<Option<i64>> {
        self.version.map_or(Ok(None), parse_model_version)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelAction {
    Metadata,
    Ready,
    Config,
    Statistics,
    Infer,
    Generate,
    GenerateStream,
    TraceSetting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedMemoryKind {
    System,
    Cuda,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedMemoryAction {
    Status,
    Register,
    Unregister,
}

/// Returns the route of `path`; `None` means 404.
pub(crate) fn parse(path: &str) -> Option<Route<'_>> {
    parse_relative(path.strip_prefix('/')?)
}

/// Returns the route of a path without its first slash.
pub(crate) fn parse_relative(path: &str) -> Option<Route<'_>> {
    let rest = path.strip_prefix("v2")?;
    if rest.is_empty() {
        return Some(Route::ServerMetadata);
    }
    let rest = rest.strip_prefix('/')?;
    match rest {
        "health/live" => return Some(Route::Live),
        "health/ready" => return Some(Route::Ready),
        "models/stats" => return Some(Route::AllStatistics),
        "repository/index" => return Some(Route::RepositoryIndex),
        "trace/setting" => return Some(Route::TraceSetting),
        "logging" => return Some(Route::Logging),
        _ => {}
    }
    let (group, rest) = rest.split_once('/')?;
    match group {
        "models" => model(rest),
        "repository" => repository(rest),
        "systemsharedmemory" => shared_memory(SharedMemoryKind::System, rest),
        "cudasharedmemory" => shared_memory(SharedMemoryKind::Cuda, rest),
        _ => None,
    }
}

/// Returns `true` if a request to `path` may bring a descriptor: one that registers a region of the system.
pub(crate) fn takes_descriptor(path: &str) -> bool {
    use SharedMemoryAction::Register;
    matches!(parse(path), Some(Route::SharedMemory(SharedMemoryKind::System, Register, Some(_))))
}

/// Parses `NAME[/versions/VERSION][/ACTION]`.
fn model(rest: &str) -> Option<Route<'_>> {
    let (name, mut rest) = split_segment(rest)?;
    let mut version = None;
    if let Some(versioned) = rest.and_then(|r| r.strip_prefix("versions/")) {
        let (digits, after) = split_segment(versioned)?;
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        (version, rest) = (Some(digits), after);
    }
    let action = match rest {
        None => ModelAction::Metadata,
        Some("ready") => ModelAction::Ready,
        Some("config") => ModelAction::Config,
        Some("stats") => ModelAction::Statistics,
        Some("infer") => ModelAction::Infer,
        Some("generate") => ModelAction::Generate,
        Some("generate_stream") => ModelAction::GenerateStream,
        Some("trace/setting") if version.is_none() => ModelAction::TraceSetting,
        Some(_) => return None,
    };
    Some(Route::Model(action, ModelPath { name, version }))
}

/// Parses `[REPOSITORY/]models/NAME/load`, the same with `unload`, or `REPOSITORY/index`.
fn repository(rest: &str) -> Option<Route<'_>> {
    let (repository, models) = match rest.strip_prefix("models/") {
        Some(models) => (None, models),
        None => {
            let (repository, rest) = rest.split_once('/')?;
            if rest == "index" {
                return Some(Route::RepositoryIndex);
            }
            (Some(repository), rest.strip_prefix("models/")?)
        }
    };
    let (name, action) = split_segment(models)?;
    let route = match action? {
        "load" => Route::Load(name),
        "unload" => Route::Unload(name),
        _ => return None,
    };
    Some(if repository.is_some() { Route::NamedRepository } else { route })
}

/// Parses `[region/NAME/]ACTION`.
fn shared_memory(kind: SharedMemoryKind, rest: &str) -> Option<Route<'_>> {
    let (region, action) = match rest.strip_prefix("region/") {
        Some(rest) => {
            let (region, action) = split_segment(rest)?;
            (Some(region), action?)
        }
        None => (None, rest),
    };
    let action = match action {
        "status" => SharedMemoryAction::Status,
        "register" => SharedMemoryAction::Register,
        "unregister" => SharedMemoryAction::Unregister,
        _ => return None,
    };
    Some(Route::SharedMemory(kind, action, region))
}

/// Returns the non-empty part before the next `/`, and the part after it.
fn split_segment(rest: &str) -> Option<(&str, Option<&str>)> {
    let (segment, after) = match rest.split_once('/') {
        Some((segment, after)) => (segment, Some(after)),
        None => (rest, None),
    };
    (!segment.is_empty()).then_some((segment, after))
}

/// The rules for the calls of a route.
pub(crate) struct Rules<'p> {
    /// The permission that a client needs for the call.
    pub access: Action<'p>,
    /// The group of calls by which it may be restricted.
    pub category: ApiCategory,
    pub methods: &'static [Method],
}

const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];
const BOTH: &[Method] = &[Method::GET, Method::POST];

impl<'p> Route<'p> {
    pub fn rules(&self) -> Rules<'p> {
        use ModelAction as Of;
        use SharedMemoryAction::Status;
        let (access, category, methods) = match *self {
            Self::Live | Self::Ready => (Action::Live, ApiCategory::Health, GET),
            Self::ServerMetadata => (Action::ServerMetadata, ApiCategory::Metadata, GET),
            Self::Model(action, ModelPath { name, .. }) => match action {
                Of::Metadata => (Action::Read(name), ApiCategory::Metadata, GET),
                Of::Ready => (Action::ModelReady(name), ApiCategory::Health, GET),
                Of::Config => (Action::Read(name), ApiCategory::ModelConfig, GET),
                Of::Statistics => (Action::Read(name), ApiCategory::Statistics, GET),
                Of::Infer | Of::Generate | Of::GenerateStream => {
                    (Action::Infer(name), ApiCategory::Inference, POST)
                }
                Of::TraceSetting => (Action::Control(name), ApiCategory::Trace, BOTH),
            },
            // These report on the models that the client may read.
            Self::AllStatistics => (Action::ReadSomething, ApiCategory::Statistics, GET),
            Self::RepositoryIndex => (Action::ReadSomething, ApiCategory::ModelRepository, POST),
            Self::Load(model) | Self::Unload(model) => {
                (Action::Control(model), ApiCategory::ModelRepository, POST)
            }
            Self::NamedRepository => (Action::ControlSomething, ApiCategory::ModelRepository, POST),
            Self::SharedMemory(_, Status, _) => {
                (Action::ControlServer, ApiCategory::SharedMemory, GET)
            }
            Self::SharedMemory(..) => (Action::ControlServer, ApiCategory::SharedMemory, POST),
            Self::TraceSetting => (Action::ControlServer, ApiCategory::Trace, BOTH),
            Self::Logging => (Action::ControlServer, ApiCategory::Logging, BOTH),
        };
        Rules { access, category, methods }
    }

    /// Returns `true` if the call changes the served models, the settings or the regions of the server.
    pub fn changes_server(&self, method: &Method) -> bool {
        match self {
            Self::Load(_) | Self::Unload(_) => true,
            Self::SharedMemory(_, action, _) => *action != SharedMemoryAction::Status,
            Self::Logging | Self::TraceSetting | Self::Model(ModelAction::TraceSetting, _) => {
                method == Method::POST
            }
            _ => false,
        }
    }

    /// Returns the content type of an error that is answered before the handler starts.
    pub fn early_error_type(&self) -> &'static str {
        match self {
            Self::Live | Self::Ready => TEXT,
            Self::Model(ModelAction::Ready | ModelAction::Infer, _) => TEXT,
            _ => JSON,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<Route<'_>>) {
        assert_eq!(parse(path), expected, "{path}");
    }

    fn model_route<'p>(
        action: ModelAction,
        name: &'p str,
        version: Option<&'p str>,
    ) -> Option<Route<'p>> {
        Some(Route::Model(action, ModelPath { name, version }))
    }

    #[test]
    fn known_paths_are_routed() {
        check("/v2", Some(Route::ServerMetadata));
        check("/v2/health/live", Some(Route::Live));
        check("/v2/health/ready", Some(Route::Ready));
        check("/v2/models/m", model_route(ModelAction::Metadata, "m", None));
        check("/v2/models/m/ready", model_route(ModelAction::Ready, "m", None));
        check("/v2/models/m/versions/3", model_route(ModelAction::Metadata, "m", Some("3")));
        check("/v2/models/m/versions/3/infer", model_route(ModelAction::Infer, "m", Some("3")));
        check("/v2/models/sim%70le/infer", model_route(ModelAction::Infer, "sim%70le", None));
        check(
            "/v2/models/versions/versions/1",
            model_route(ModelAction::Metadata, "versions", Some("1")),
        );
        check("/v2/models/m/trace/setting", model_route(ModelAction::TraceSetting, "m", None));
        check("/v2/models/stats", Some(Route::AllStatistics));
        check("/v2/models/stats/infer", model_route(ModelAction::Infer, "stats", None));
        check("/v2/repository/index", Some(Route::RepositoryIndex));
        check("/v2/repository/r/index", Some(Route::RepositoryIndex));
        check("/v2/repository/models/m/load", Some(Route::Load("m")));
        check("/v2/repository/models/m/unload", Some(Route::Unload("m")));
        check("/v2/repository/r/models/m/load", Some(Route::NamedRepository));
        let status = SharedMemoryAction::Status;
        let system = SharedMemoryKind::System;
        check("/v2/systemsharedmemory/status", Some(Route::SharedMemory(system, status, None)));
        check(
            "/v2/cudasharedmemory/region/r/status",
            Some(Route::SharedMemory(SharedMemoryKind::Cuda, status, Some("r"))),
        );
    }

    #[test]
    fn every_call_belongs_to_its_restriction_group() {
        use ApiCategory as C;
        for (category, paths) in [
            (C::Health, &["health/live", "health/ready", "models/m/ready"][..]),
            (C::Metadata, &["models/m", "models/m/versions/1"]),
            (C::Inference, &["models/m/infer", "models/m/generate", "models/m/generate_stream"]),
            (C::SharedMemory, &["systemsharedmemory/status", "cudasharedmemory/unregister"]),
            (C::ModelConfig, &["models/m/config", "models/m/versions/1/config"]),
            (C::ModelRepository, &["repository/index", "repository/r/index"]),
            (C::ModelRepository, &["repository/models/m/load", "repository/models/m/unload"]),
            (C::ModelRepository, &["repository/r/models/m/load"]),
            (C::Statistics, &["models/stats", "models/m/stats"]),
            (C::Trace, &["trace/setting", "models/m/trace/setting"]),
            (C::Logging, &["logging"]),
        ] {
            for path in paths {
                let full = format!("/v2/{path}");
                assert_eq!(
                    parse(&full).map(|route| route.rules().category),
                    Some(category),
                    "{path}"
                );
            }
        }
        assert_eq!(parse("/v2").map(|route| route.rules().category), Some(C::Metadata));
    }

    #[test]
    fn unknown_paths_have_no_route() {
        for path in [
            "/",
            "",
            "/v2/",
            "/v3",
            "/v2x",
            "/metrics",
            "/v2/models",
            "/v2/models/",
            "/v2/models/m/",
            "/v2/models//infer",
            "/v2/models/m/foo",
            "/v2/models/m/versions",
            "/v2/models/m/versions/",
            "/v2/models/m/versions/x",
            "/v2/models/m/versions/-1",
            "/v2/models/m/versions/1/foo",
            "/v2/models/m/versions/1/trace/setting",
            "/v2/health/ready/",
            "/v2/health",
            "/v2/repository",
            "/v2/repository/models/m",
            "/v2/repository/models/m/foo",
            "/v2/systemsharedmemory",
            "/v2/systemsharedmemory/region//status",
            "/v2/infer",
        ] {
            check(path, None);
        }
    }
}
