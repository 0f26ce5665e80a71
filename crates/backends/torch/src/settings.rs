//! The parameters of a model, read and checked.

use galatea_backend::{LoadContext, Settings as Source};
use galatea_config::ModelConfig;
use galatea_types::Result;

use crate::torch::{Library, RunSettings, Setting};

/// Settings from a model's parameters (Triton's names).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub switches: RunSettings,
    /// True if all instances on a device share a module that writes to its state. They then take turns.
    pub shares_state: bool,
    pub cleans_cache: bool,
}

impl Settings {
    /// Checks the parameters, and applies none.
    ///
    /// # Errors
    /// As [`Settings::apply`], except for errors of the library.
    pub fn check(config: &ModelConfig) -> Result<()> {
        let source = Source::of_model(config.parameters());
        Self::read(&source)?;
        SWITCHES.iter().try_for_each(|(key, _)| source.boolean(key).map(drop))?;
        source.boolean("DISABLE_CUDNN")?;
        thread_counts(&source).map(drop)
    }

    fn read(source: &Source<'_>) -> Result<Self> {
        let is_on = |key, default| source.boolean(key).map(|said| said.unwrap_or(default));
        Ok(Self {
            switches: RunSettings {
                inference_mode: is_on("INFERENCE_MODE", true)?,
                optimization: !is_on("DISABLE_OPTIMIZED_EXECUTION", false)?,
            },
            shares_state: is_on("ENABLE_WEIGHT_SHARING", false)?,
            cleans_cache: is_on("ENABLE_CACHE_CLEANING", false)?,
        })
    }

    /// Reads the parameters, and applies those for the whole process.
    pub fn apply(context: &LoadContext, library: &Library) -> Result<Self> {
        let source = Source::of_model(context.config.parameters());
        let settings = Self::read(&source)?;
        apply_switches(&source, library)?;
        apply_threads(&source, context.config.name(), library)?;
        Ok(settings)
    }
}

/// Parameters for the whole process.
const SWITCHES: [(&str, Setting); 3] = [
    ("ENABLE_JIT_EXECUTOR", Setting::JitExecutor),
    ("ENABLE_JIT_PROFILING", Setting::JitProfiling),
    ("ENABLE_TENSOR_FUSER", Setting::TensorFuser),
];

fn apply_switches(source: &Source<'_>, library: &Library) -> Result<()> {
    for (key, setting) in SWITCHES {
        if let Some(is_on) = source.boolean(key)? {
            library.set(setting, is_on);
        }
    }
    if let Some(is_off) = source.boolean("DISABLE_CUDNN")? {
        library.set(Setting::Cudnn, !is_off);
    }
    Ok(())
}

fn apply_threads(source: &Source<'_>, model: &str, library: &Library) -> Result<()> {
    let (intra_op, inter_op) = thread_counts(source)?;
    if intra_op.is_none() && inter_op.is_none() {
        return Ok(());
    }
    let (intra_op, inter_op) = library.choose_threads(intra_op, inter_op)?;
    log::info!("Intra op thread count is set to {intra_op} for model instance '{model}'");
    log::info!("Inter op thread count is set to {inter_op} for model instance '{model}'");
    Ok(())
}

/// Reads the number of threads within an operator, and of operators at a time.
fn thread_counts(source: &Source<'_>) -> Result<(Option<i32>, Option<i32>)> {
    let count = |key| source.number::<i32>(key).map(|said| said.filter(|&n| n > 0));
    Ok((count("INTRA_OP_THREAD_COUNT")?, count("INTER_OP_THREAD_COUNT")?))
}
