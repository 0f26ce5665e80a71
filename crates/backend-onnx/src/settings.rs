//! Parameters of a model, read and checked.

use std::{collections::BTreeMap, path::PathBuf};

use galatea_backend::{LoadContext, Settings as Source};
use galatea_types::Result;

use crate::ort::{ExecutionMode, GlobalThreads, GraphLevel};

const INTRA_OP: &str = "intra_op_thread_count";
const INTER_OP: &str = "inter_op_thread_count";
const GLOBAL_THREADS: &str = "enable-global-threadpool";
const ARENA_SHRINKAGE: &str = "memory.enable_memory_arena_shrinkage";
/// Parameters with this prefix go to ONNX Runtime as they are.
const SESSION_PREFIX: &str = "session.";

/// What a model's configuration and the command line ask of its session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// `None`: not said, or 0, so the layout chooses.
    pub intra_op_threads: Option<i32>,
    pub inter_op_threads: Option<i32>,
    pub execution_mode: Option<ExecutionMode>,
    pub graph_level: Option<GraphLevel>,
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
        let parameters = Source::of(config.parameters()).or(&context.backend_config);
        let session_entries = config
            .parameters()
            .iter()
            .filter(|(key, _)| key.starts_with(SESSION_PREFIX))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Ok(Self {
            intra_op_threads: parameters.number(INTRA_OP)?.filter(|&n| n != 0),
            inter_op_threads: parameters.number(INTER_OP)?.filter(|&n| n != 0),
            execution_mode: parameters.number("execution_mode")?.map(|n| match n {
                0 => ExecutionMode::Sequential,
                _ => ExecutionMode::Parallel,
            }),
            graph_level: graph_level(context),
            memory_arena: parameters.boolean("enable_mem_arena")?,
            memory_pattern: parameters.boolean("enable_mem_pattern")?,
            session_entries,
            arena_shrinkage: config.parameters().get(ARENA_SHRINKAGE).cloned(),
            uses_global_threads: global_threads(&context.backend_config)?.is_some(),
            operator_libraries: operator_libraries(context),
        })
    }

    /// Settings of each run, by ONNX Runtime's names.
    pub fn run_entries(&self) -> Vec<(&str, &str)> {
        self.arena_shrinkage.iter().map(|devices| (ARENA_SHRINKAGE, devices.as_str())).collect()
    }
}

/// The thread pool shared by all models, if the command line asks for one.
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

/// `default-max-batch-size` of the command line; 4 where it is not given.
pub(crate) fn default_max_batch_size(config: &BTreeMap<String, String>) -> Result<i32> {
    let source = Source::of(config);
    Ok(source.number("default-max-batch-size")?.unwrap_or(4i32).max(0))
}

/// Levels of optimization as Triton numbers them: -1 basic, 1 extended, 2 none, anything else all.
fn graph_level(context: &LoadContext) -> Option<GraphLevel> {
    Some(match context.config.optimization().graph_level? {
        -1 => GraphLevel::Basic,
        1 => GraphLevel::Extended,
        2 => GraphLevel::Disabled,
        _ => GraphLevel::All,
    })
}

/// Relative paths are looked for in the version's folder, then the model's, then left to the loader.
fn operator_libraries(context: &LoadContext) -> Vec<PathBuf> {
    let find = |name: &String| {
        [&context.version_dir, &context.model_dir]
            .into_iter()
            .map(|dir| dir.join(name))
            .find(|path| path.exists())
            .unwrap_or_else(|| PathBuf::from(name))
    };
    context.config.operator_libraries().iter().map(find).collect()
}
