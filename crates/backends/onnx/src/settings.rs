//! The parameters of a model, read and checked.

use std::{collections::BTreeMap, path::PathBuf};

use galatea_backend::{CompletionContext, LoadContext, Settings as Source};
use galatea_types::{Error, Result};

use crate::ort::{ExecutionMode, GlobalThreads, GraphOptimizationLevel};

const INTRA_OP: &str = "intra_op_thread_count";
const INTER_OP: &str = "inter_op_thread_count";
const GLOBAL_THREADS: &str = "enable-global-threadpool";
const ARENA_SHRINKAGE: &str = "memory.enable_memory_arena_shrinkage";
/// Parameter that asks for one session for all instances, which is always the case.
const SHARE_SESSION: &str = "share_session_between_instances";
/// Prefix of parameters that go to ONNX Runtime unchanged.
const SESSION_PREFIX: &str = "session.";

/// Settings of a session from the model's configuration and the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Number of threads. `None`: not configured, or 0, so the layout chooses.
    pub intra_op_threads: Option<i32>,
    pub inter_op_threads: Option<i32>,
    pub execution_mode: Option<ExecutionMode>,
    pub graph_level: Option<GraphOptimizationLevel>,
    pub memory_arena: Option<bool>,
    pub memory_pattern: Option<bool>,
    pub session_entries: Vec<(String, String)>,
    pub arena_shrinkage: Option<String>,
    pub uses_global_threads: bool,
    pub operator_libraries: Vec<PathBuf>,
}

impl Settings {
    pub fn read(context: &LoadContext) -> Result<Self> {
        let config = &context.config;
        let parameters = Source::of_model(config.parameters()).or(&context.backend_config);
        let session_entries = session_entries(context)?;
        if parameters.boolean(SHARE_SESSION)? == Some(false) {
            log::warn!(
                "model '{}': {SHARE_SESSION} = false has no effect: the instances on a device share one session, and run at \
                 the same time all the same",
                config.name()
            );
        }
        Ok(Self {
            intra_op_threads: parameters.number(INTRA_OP)?.filter(|&n| n != 0),
            inter_op_threads: parameters.number(INTER_OP)?.filter(|&n| n != 0),
            execution_mode: execution_mode(&parameters)?,
            graph_level: graph_level(context),
            memory_arena: parameters.boolean("enable_mem_arena")?,
            memory_pattern: parameters.boolean("enable_mem_pattern")?,
            session_entries,
            arena_shrinkage: config.parameters().get(ARENA_SHRINKAGE).cloned(),
            uses_global_threads: global_threads(&context.backend_config)?.is_some(),
            operator_libraries: operator_libraries(config.operator_libraries(), &context.files())?,
        })
    }

    /// Returns the settings of each run, by ONNX Runtime's names.
    pub fn run_entries(&self) -> Vec<(&str, &str)> {
        self.arena_shrinkage.iter().map(|devices| (ARENA_SHRINKAGE, devices.as_str())).collect()
    }
}

fn execution_mode(parameters: &Source<'_>) -> Result<Option<ExecutionMode>> {
    match parameters.number("execution_mode")? {
        None => Ok(None),
        Some(0) => Ok(Some(ExecutionMode::ORT_SEQUENTIAL)),
        Some(1) => Ok(Some(ExecutionMode::ORT_PARALLEL)),
        Some(mode) => Err(Error::invalid_arg(format!(
            "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got {mode} ."
        ))),
    }
}

/// Returns the thread pool shared by all models, if the command line asks for one.
pub(crate) fn global_threads(config: &BTreeMap<String, String>) -> Result<Option<GlobalThreads>> {
    let source = Source::of(config);
    if source.boolean(GLOBAL_THREADS)? != Some(true) {
        return Ok(None);
    }
    Ok(Some(GlobalThreads {
        intra_op: source.number(INTRA_OP)?.unwrap_or(0),
        inter_op: source.number(INTER_OP)?.unwrap_or(0),
    }))
}

/// Returns the level of optimization by Triton's numbers: -1 basic, 1 extended, 2 none, anything else all.
fn graph_level(context: &LoadContext) -> Option<GraphOptimizationLevel> {
    Some(match context.config.optimization().graph_level? {
        -1 => GraphOptimizationLevel::ORT_ENABLE_BASIC,
        1 => GraphOptimizationLevel::ORT_ENABLE_EXTENDED,
        2 => GraphOptimizationLevel::ORT_DISABLE_ALL,
        _ => GraphOptimizationLevel::ORT_ENABLE_ALL,
    })
}

/// Returns the entries for the session. Some name files that ONNX Runtime reads or writes, so paths are checked.
fn session_entries(context: &LoadContext) -> Result<Vec<(String, String)>> {
    let parameters = context.config.parameters().iter();
    let entries = parameters.filter(|(key, _)| key.starts_with(SESSION_PREFIX));
    entries
        .map(|(key, value)| {
            context.paths.check_setting(key, value)?;
            Ok((key.clone(), value.clone()))
        })
        .collect()
}

/// Returns the paths of the libraries of a model's operators.
pub(crate) fn operator_libraries(
    names: &[String],
    context: &CompletionContext<'_>,
) -> Result<Vec<PathBuf>> {
    let find = |name: &String| Ok(context.find_library("op_library_filename", name)?);
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use galatea_backend::{PathRules, ServerAccess, testing::Host};

    use super::*;

    fn read(folder: &Path, paths: &PathRules, text: &str) -> Result<Settings> {
        let config = Host::default().configure(&format!(
            "platform: \"onnxruntime_onnx\" input {{ name: \"X\" data_type: TYPE_FP32 dims: 1 }} \
             output {{ name: \"Y\" data_type: TYPE_FP32 dims: 1 }} {text}"
        ));
        Settings::read(&LoadContext {
            config: Arc::new(config.expect("valid")),
            version: 1,
            model_dir: folder.to_owned(),
            version_dir: folder.join("1"),
            backend_config: BTreeMap::new(),
            paths: paths.clone(),
            server: ServerAccess::default(),
            devices: galatea_backend::Devices::default(),
        })
    }

    #[test]
    fn files_named_by_a_request_must_lie_in_the_model_folder() {
        let folder = tempfile::tempdir().expect("folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("1")).expect("folder");
        fs::write(at("own.so"), "").expect("file");
        let of_request = PathRules::inside_model(vec!["/opt/known.so".to_owned()]);
        let library = |rules, name: &str| {
            let text = format!("model_operations {{ op_library_filename: '{name}' }}");
            read(folder.path(), rules, &text).map(|settings| settings.operator_libraries)
        };
        assert_eq!(library(&of_request, "own.so").expect("inside"), [at("own.so")]);
        assert_eq!(library(&of_request, "libc.so.6").expect("inside"), [at("1/libc.so.6")]);
        assert_eq!(
            library(&of_request, "/opt/known.so").expect("known"),
            [Path::new("/opt/known.so")]
        );
        library(&of_request, "/opt/evil.so").expect_err("outside");
        library(&of_request, "../evil.so").expect_err("outside");
        let anywhere = PathRules::anywhere();
        assert_eq!(library(&anywhere, "libc.so.6").expect("any"), [Path::new("libc.so.6")]);
        let statistics = "parameters { key: 'session.collect_node_memory_stats_to_file' \
                          value { string_value: '/etc/x' } }";
        read(folder.path(), &of_request, statistics).expect_err("it would be written");
        read(folder.path(), &anywhere, statistics).expect("the operator wants it");
    }
}
