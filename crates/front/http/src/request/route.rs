//! What the path of a request names, and which methods that allows.

use galatea_frontend::{Action, ApiCategory};
use galatea_protocol::parse_model_version;
use galatea_types::Result;
use http::Method;

use crate::response::answers::{JSON, TEXT};

/// What a path names. Names and versions are as written: Triton resolves no percent escapes.
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
    /// Load or unload in a named repository, which is not supported; its index is that of all.
    NamedRepository,
    SharedMemory(SharedMemoryKind, SharedMemoryAction, Option<&'p str>),
    TraceSetting,
    Logging,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelPath<'p> {
    pub name: &'p str,
    /// Digits.
    pub version: Option<&'p str>,
}

impl ModelPath<'_> {
    /// The version as a number; `None` where the path names none.
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

impl ModelAction {
    fn access(self, model: &str) -> Action<'_> {
        match self {
            Self::Metadata | Self::Config | Self::Statistics => Action::Read(model),
            Self::Ready => Action::ModelReady(model),
            Self::Infer | Self::Generate | Self::GenerateStream => Action::Infer(model),
            Self::TraceSetting => Action::Control(model),
        }
    }

    fn category(self) -> ApiCategory {
        match self {
            Self::Metadata => ApiCategory::Metadata,
            Self::Ready => ApiCategory::Health,
            Self::Config => ApiCategory::ModelConfig,
            Self::Statistics => ApiCategory::Statistics,
            Self::Infer | Self::Generate | Self::GenerateStream => ApiCategory::Inference,
            Self::TraceSetting => ApiCategory::Trace,
        }
    }
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

/// What `path` names; `None` is 404.
pub(crate) fn parse(path: &str) -> Option<Route<'_>> {
    parse_relative(path.strip_prefix('/')?)
}

/// The same, for a path without its first slash.
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

/// `NAME[/versions/VERSION][/ACTION]`
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

/// `[REPOSITORY/]models/NAME/load`, the same with `unload`, or `REPOSITORY/index`.
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

/// `[region/NAME/]ACTION`
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

/// The part before the next `/`, which is not empty, and what follows it.
fn split_segment(rest: &str) -> Option<(&str, Option<&str>)> {
    let (segment, after) = match rest.split_once('/') {
        Some((segment, after)) => (segment, Some(after)),
        None => (rest, None),
    };
    (!segment.is_empty()).then_some((segment, after))
}

impl<'p> Route<'p> {
    /// What a client must be allowed to make the call.
    pub fn access(&self) -> Action<'p> {
        match *self {
            Route::Live | Route::Ready => Action::Live,
            Route::ServerMetadata => Action::ServerMetadata,
            Route::Model(action, model) => action.access(model.name),
            // They tell of the models that the client may read.
            Route::AllStatistics | Route::RepositoryIndex => Action::ReadSomething,
            Route::Load(model) | Route::Unload(model) => Action::Control(model),
            Route::NamedRepository => Action::ControlSomething,
            Route::SharedMemory(..) | Route::TraceSetting | Route::Logging => Action::ControlServer,
        }
    }

    pub fn allows(&self, method: &Method) -> bool {
        match self.methods() {
            Methods::Get => method == Method::GET,
            Methods::Post => method == Method::POST,
            Methods::Both => method == Method::GET || method == Method::POST,
        }
    }

    fn methods(&self) -> Methods {
        use ModelAction::{Config, Generate, GenerateStream, Infer, Metadata, Ready, Statistics};
        match self {
            Route::ServerMetadata | Route::Live | Route::Ready | Route::AllStatistics => {
                Methods::Get
            }
            Route::Model(Metadata | Ready | Config | Statistics, _) => Methods::Get,
            Route::Model(Infer | Generate | GenerateStream, _) => Methods::Post,
            Route::Model(ModelAction::TraceSetting, _) => Methods::Both,
            Route::TraceSetting | Route::Logging => Methods::Both,
            Route::RepositoryIndex | Route::Load(_) | Route::Unload(_) => Methods::Post,
            Route::NamedRepository => Methods::Post,
            Route::SharedMemory(_, SharedMemoryAction::Status, _) => Methods::Get,
            Route::SharedMemory(..) => Methods::Post,
        }
    }

    /// Whether the call changes what is served, or how.
    pub fn changes_server(&self, method: &Method) -> bool {
        match self {
            Route::Load(_) | Route::Unload(_) => true,
            Route::Logging => method == Method::POST,
            _ => false,
        }
    }

    /// The group of calls it belongs to, by which it may be restricted.
    pub fn category(&self) -> ApiCategory {
        match self {
            Route::Live | Route::Ready => ApiCategory::Health,
            Route::ServerMetadata => ApiCategory::Metadata,
            Route::Model(action, _) => action.category(),
            Route::AllStatistics => ApiCategory::Statistics,
            Route::RepositoryIndex | Route::Load(_) | Route::Unload(_) | Route::NamedRepository => {
                ApiCategory::ModelRepository
            }
            Route::SharedMemory(..) => ApiCategory::SharedMemory,
            Route::TraceSetting => ApiCategory::Trace,
            Route::Logging => ApiCategory::Logging,
        }
    }

    /// Content type of an error that is answered before the handler starts.
    pub fn early_error_type(&self) -> &'static str {
        use ModelAction::{Infer, Ready};
        match self {
            Route::Live | Route::Ready => TEXT,
            Route::Model(Ready | Infer, _) => TEXT,
            _ => JSON,
        }
    }
}

enum Methods {
    Get,
    Post,
    Both,
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
    fn paths_that_name_something() {
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
    fn every_call_belongs_to_the_group_it_is_restricted_by() {
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
                assert_eq!(parse(&full).map(|route| route.category()), Some(category), "{path}");
            }
        }
        assert_eq!(parse("/v2").map(|route| route.category()), Some(C::Metadata));
    }

    #[test]
    fn paths_that_name_nothing() {
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
