//! The parameters of a model, read and checked. Names and texts are Triton's, newer and older ones.

use std::{collections::BTreeMap, path::PathBuf};

use galatea_backend::{CompletionContext, Settings as Source, misconfigured};
use galatea_config::{FieldPath, ModelConfig};
use galatea_types::{Code, Result};

/// The number of runs of the model that are computed at once. They share the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    Number(u32),
    /// The number that OpenVINO chooses for throughput.
    Auto,
    /// One for each node of memory.
    Numa,
}

/// Settings from the model's configuration and the command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub hint: Option<&'static str>,
    pub threads: Option<u32>,
    pub compilation_threads: Option<u32>,
    pub streams: Option<Streams>,
    /// Type for computing models of larger types, by OpenVINO's names: f32, bf16 or f16.
    pub precision: &'static str,
    pub is_pinned: Option<bool>,
    /// A library with custom operations.
    pub extension: Option<PathBuf>,
    /// True if the model is compiled for batches of `max_batch_size` only.
    pub has_fixed_batch: bool,
    /// True if smaller batches are filled up to that size.
    pub pads_batches: bool,
    /// True if the model gets the configuration's dims.
    pub reshapes: bool,
    /// Folder for compiled models.
    pub cache: Option<PathBuf>,
}

/// The expected form of a value, in Triton's words if it has the parameter, and advice.
#[derive(Clone, Copy)]
struct Expected(&'static str, &'static str);

const NUMBER: Expected =
    Expected("a non-negative number", "write a whole number, 0 or more; 0 leaves it to OpenVINO");
const YES_OR_NO: Expected = Expected("either YES or NO", "write `YES` or `NO`");
const YES: Expected = Expected("YES", "write `YES`, or remove the parameter");
const HINT: Expected = Expected(
    "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT",
    "write `LATENCY` for few clients at a time, `THROUGHPUT` for many",
);
const STREAMS: Expected = Expected(
    "either AUTO/NUMA/<int_value>",
    "write the number of runs to be computed at once, `AUTO` or `NUMA`; or remove the parameter for one per instance",
);
const PRECISION: Expected = Expected(
    "f32, bf16 or f16",
    "write `f32`, `bf16` or `f16`; int8 is a property of the model's file",
);
const BINDING: Expected = Expected("either YES/NUMA/NO", "write `YES`, `NUMA` or `NO`");
const DEVICE: Expected =
    Expected("CPU", "models of OpenVINO run on the CPU here: write `CPU`, or remove the parameter");

impl Settings {
    pub fn read(config: &ModelConfig, around: &CompletionContext<'_>) -> Result<Self> {
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

/// Returns `cache-dir` of the command line: no model may choose where the server writes.
fn cache(config: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folder = Source::of(config).get("cache-dir").filter(|folder| !folder.is_empty())?;
    Some(PathBuf::from(folder))
}

fn extension(config: &ModelConfig, around: &CompletionContext<'_>) -> Result<Option<PathBuf>> {
    const KEY: &str = "CPU_EXTENSION_PATH";
    let name = Parameters(config.parameters()).get(KEY);
    Ok(name.map(|name| around.find_library(KEY, name)).transpose()?)
}

/// The parameters of a model's configuration. Empty values count as not given, as in Triton.
struct Parameters<'a>(&'a BTreeMap<String, String>);

impl<'a> Parameters<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns the first given name. The newer one comes first.
    fn first_of<const N: usize>(&self, keys: [&'static str; N]) -> Option<&'static str> {
        keys.into_iter().find(|key| self.get(key).is_some())
    }

    fn number_of<const N: usize>(&self, keys: [&'static str; N]) -> Result<Option<u32>> {
        self.first_of(keys).map_or(Ok(None), |key| self.number(key))
    }

    fn number(&self, key: &'static str) -> Result<Option<u32>> {
        self.read(key, NUMBER, |value| value.parse().ok())
    }

    fn is_on(&self, key: &'static str) -> Result<bool> {
        let read = |value: &str| match value.to_ascii_lowercase().as_str() {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        Ok(self.read(key, YES_OR_NO, read)?.unwrap_or(false))
    }

    fn read<T>(
        &self,
        key: &'static str,
        expected: Expected,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let Expected(wanted, advice) = expected;
        let wrong = || {
            let text = format!("expected the parameter '{key}' to be {wanted}, got {value}");
            let field = FieldPath::from("parameters").named(key);
            misconfigured(
                Code::InvalidArg,
                text,
                field.field("value").field("string_value"),
                advice,
            )
        };
        read(value).ok_or_else(wrong).map(Some)
    }

    fn check_device(&self) -> Result<()> {
        let is_cpu = |value: &str| value.eq_ignore_ascii_case("CPU").then_some(());
        self.read("TARGET_DEVICE", DEVICE, is_cpu).map(|_| ())
    }

    fn hint(&self) -> Result<Option<&'static str>> {
        const HINTS: [&str; 3] = ["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"];
        let known = |value: &str| HINTS.into_iter().find(|hint| hint.eq_ignore_ascii_case(value));
        self.read("PERFORMANCE_HINT", HINT, known)
    }

    fn streams(&self) -> Result<Option<Streams>> {
        let read = |value: &str| match value.to_ascii_lowercase().as_str() {
            "auto" => Some(Streams::Auto),
            "numa" => Some(Streams::Numa),
            number => number.parse().ok().map(Streams::Number),
        };
        let key = self.first_of(["NUM_STREAMS", "CPU_THROUGHPUT_STREAMS"]);
        key.map_or(Ok(None), |key| self.read(key, STREAMS, read))
    }

    /// Reads the precision. The older name takes `NO` as well, the newer one only `YES`.
    fn precision(&self) -> Result<&'static str> {
        const NAMES: [&str; 3] = ["f32", "bf16", "f16"];
        let named = |value: &str| NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(value));
        let chosen = self.read("INFERENCE_PRECISION_HINT", PRECISION, named)?;
        if let Some(precision) = chosen {
            return Ok(precision);
        }
        let only_yes = |value: &str| value.eq_ignore_ascii_case("yes").then_some(());
        let is_bf16 = match self.first_of(["HINT_BF16", "ENFORCE_BF16"]) {
            None => false,
            Some("HINT_BF16") => self.read("HINT_BF16", YES, only_yes)?.is_some(),
            Some(older) => self.is_on(older)?,
        };
        Ok(if is_bf16 { "bf16" } else { "f32" })
    }

    /// Reads the pinning. Threads that may move within a node of memory are not pinned to cores.
    fn pinning(&self) -> Result<Option<bool>> {
        let read = |value: &str| match value.to_ascii_lowercase().as_str() {
            "yes" => Some(true),
            "no" | "numa" => Some(false),
            _ => None,
        };
        self.read("CPU_BIND_THREAD", BINDING, read)
    }
}

#[cfg(test)]
mod tests;
