//! Parameters of a model, read and checked. Names and texts are Triton's, newer and older ones.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use galatea_backend::{CompletionContext, LoadContext, PathRules, Settings as Source};
use galatea_config::ModelConfig;
use galatea_types::Result;

use crate::wrong_value::{Expected, WrongValue};

/// How many runs of the model are computed at once, each by its share of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    Number(u32),
    /// As many as OpenVINO thinks best for throughput.
    Auto,
    /// One for each node of memory.
    Numa,
}

/// In which numbers a model of larger ones is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    F32,
    Bf16,
    F16,
}

impl Precision {
    /// As OpenVINO has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }
}

/// What a model's configuration and the command line ask for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub hint: Option<&'static str>,
    pub threads: Option<u32>,
    pub compilation_threads: Option<u32>,
    pub streams: Option<Streams>,
    pub precision: Precision,
    pub is_pinned: Option<bool>,
    /// A library with operations.
    pub extension: Option<PathBuf>,
    /// The model is compiled for batches of `max_batch_size` alone.
    pub has_fixed_batch: bool,
    /// Smaller batches are filled up to that.
    pub pads_batches: bool,
    /// The model gets the configuration's dims.
    pub reshapes: bool,
    /// Where compiled models are kept.
    pub cache: Option<PathBuf>,
}

/// What settings depend on beside the configuration.
pub(crate) struct Around<'a> {
    model_dir: &'a Path,
    version_dir: &'a Path,
    backend_config: &'a BTreeMap<String, String>,
    paths: &'a PathRules,
}

impl<'a> Around<'a> {
    pub fn load(context: &'a LoadContext) -> Self {
        Self {
            model_dir: &context.model_dir,
            version_dir: &context.version_dir,
            backend_config: &context.backend_config,
            paths: &context.paths,
        }
    }

    pub fn inspection(context: &CompletionContext<'a>) -> Self {
        let CompletionContext { model_dir, version_dir, backend_config, paths, .. } = *context;
        Self { model_dir, version_dir, backend_config, paths }
    }
}

impl Settings {
    pub fn read(config: &ModelConfig, around: &Around<'_>) -> Result<Self> {
        let parameters = Parameters(config.parameters());
        parameters.check_device()?;
        let pads_batches = parameters.is_on("ENABLE_BATCH_PADDING")?;
        let skips = parameters.first_of(["SKIP_OV_DYNAMIC_BATCHSIZE", "SKIP_DYNAMIC_BATCHSIZE"]);
        let skips_dynamic = skips.map_or(Ok(false), |key| parameters.is_on(key))?;
        Ok(Self {
            hint: parameters.hint()?,
            threads: parameters.number_of(["INFERENCE_NUM_THREADS", "CPU_THREADS_NUM"])?,
            compilation_threads: parameters.number("COMPILATION_NUM_THREADS")?,
            streams: parameters.streams()?,
            precision: parameters.precision()?,
            is_pinned: parameters.pinning()?,
            extension: extension(config, around)?,
            has_fixed_batch: config.has_batching() && (skips_dynamic || pads_batches),
            pads_batches,
            reshapes: parameters.is_on("RESHAPE_IO_LAYERS")?,
            cache: cache(around.backend_config),
        })
    }
}

/// `cache-dir` of the command line: no model may choose where the server writes.
fn cache(config: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folder = Source::of(config).get("cache-dir").filter(|folder| !folder.is_empty())?;
    Some(PathBuf::from(folder))
}

/// Relative paths are looked for in the version's folder, then the model's, then left to the loader where the
/// configuration may name libraries of the system.
fn extension(config: &ModelConfig, around: &Around<'_>) -> Result<Option<PathBuf>> {
    const KEY: &str = "CPU_EXTENSION_PATH";
    let Some(name) = Parameters(config.parameters()).get(KEY) else { return Ok(None) };
    let at = |folder: &Path| around.paths.resolve(KEY, folder, name);
    let (of_version, of_model) = (at(around.version_dir)?, at(around.model_dir)?);
    Ok(Some(match () {
        () if of_version.exists() => of_version,
        () if of_model.exists() => of_model,
        () if around.paths.trusts(name) => PathBuf::from(name),
        () => of_version,
    }))
}

/// Those of a model's configuration. Empty values count as not given, as in Triton.
struct Parameters<'a>(&'a BTreeMap<String, String>);

impl<'a> Parameters<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The newer name goes first.
    fn first_of<const N: usize>(&self, keys: [&'static str; N]) -> Option<&'static str> {
        keys.into_iter().find(|key| self.get(key).is_some())
    }

    fn number_of<const N: usize>(&self, keys: [&'static str; N]) -> Result<Option<u32>> {
        self.first_of(keys).map_or(Ok(None), |key| self.number(key))
    }

    fn number(&self, key: &'static str) -> Result<Option<u32>> {
        self.read(key, Expected::Number, |value| value.parse().ok())
    }

    fn is_on(&self, key: &'static str) -> Result<bool> {
        let read = |value: &str| match value.to_ascii_lowercase().as_str() {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        Ok(self.read(key, Expected::YesOrNo, read)?.unwrap_or(false))
    }

    fn read<T>(
        &self,
        key: &'static str,
        expected: Expected,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = || WrongValue { key, expected, value: value.to_owned() };
        Ok(Some(read(value).ok_or_else(wrong)?))
    }

    fn check_device(&self) -> Result<()> {
        let is_cpu = |value: &str| value.eq_ignore_ascii_case("CPU").then_some(());
        self.read("TARGET_DEVICE", Expected::Device, is_cpu).map(|_| ())
    }

    fn hint(&self) -> Result<Option<&'static str>> {
        const HINTS: [&str; 3] = ["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"];
        let known = |value: &str| HINTS.into_iter().find(|hint| hint.eq_ignore_ascii_case(value));
        self.read("PERFORMANCE_HINT", Expected::Hint, known)
    }

    fn streams(&self) -> Result<Option<Streams>> {
        let read = |value: &str| match value.to_ascii_lowercase().as_str() {
            "auto" => Some(Streams::Auto),
            "numa" => Some(Streams::Numa),
            number => number.parse().ok().map(Streams::Number),
        };
        let key = self.first_of(["NUM_STREAMS", "CPU_THROUGHPUT_STREAMS"]);
        key.map_or(Ok(None), |key| self.read(key, Expected::Streams, read))
    }

    /// Of the older name `NO` is a value as well; of the newer one there is none but `YES`.
    fn precision(&self) -> Result<Precision> {
        let named = |value: &str| match value.to_ascii_lowercase().as_str() {
            "f32" => Some(Precision::F32),
            "bf16" => Some(Precision::Bf16),
            "f16" => Some(Precision::F16),
            _ => None,
        };
        let chosen = self.read("INFERENCE_PRECISION_HINT", Expected::Precision, named)?;
        if let Some(precision) = chosen {
            return Ok(precision);
        }
        let only_yes = |value: &str| value.eq_ignore_ascii_case("yes").then_some(());
        let is_bf16 = match self.first_of(["HINT_BF16", "ENFORCE_BF16"]) {
            None => false,
            Some("HINT_BF16") => self.read("HINT_BF16", Expected::Yes, only_yes)?.is_some(),
            Some(older) => self.is_on(older)?,
        };
        Ok(if is_bf16 { Precision::Bf16 } else { Precision::F32 })
    }

    /// Threads that may move within a node of memory are not pinned to cores.
    fn pinning(&self) -> Result<Option<bool>> {
        let read = |value: &str| match value.to_ascii_lowercase().as_str() {
            "yes" => Some(true),
            "no" | "numa" => Some(false),
            _ => None,
        };
        self.read("CPU_BIND_THREAD", Expected::Binding, read)
    }
}

#[cfg(test)]
mod tests;
