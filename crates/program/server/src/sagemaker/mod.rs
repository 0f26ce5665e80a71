//! `galatea sagemaker`: converts SageMaker's environment variables and folders to the command line of `serve`. Errors begin as
//! those of Triton's start script.

#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, bail};
use galatea_types::Environment;

/// SageMaker's folder of models, and an empty repository for the mode in which each model has its own.
pub struct SageMakerFolders {
    pub single: PathBuf,
    pub many: PathBuf,
}

/// A start in the way of SageMaker.
#[derive(Debug)]
pub struct Launch {
    /// Arguments of `serve`.
    pub arguments: Vec<String>,
    /// The variables of the process, and those that are set here.
    pub environment: Environment,
    /// Notes for readers of the container's log.
    pub notes: Vec<String>,
}

const MULTI_MODEL: &str = "SAGEMAKER_MULTI_MODEL";
const DEFAULT_MODEL: &str = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";
const PING_MODE: &str = "SAGEMAKER_TRITON_PING_MODE";
const OVERRIDE_PING_MODE: &str = "SAGEMAKER_TRITON_OVERRIDE_PING_MODE";
const INFERENCE_TYPE: &str = "SAGEMAKER_TRITON_INFERENCE_TYPE";
const INFERENCE_TYPES: [&str; 3] = ["infer", "generate", "generate_stream"];
const GPU_LIMIT: &str = "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT";
const ADDITIONAL: &str = "SAGEMAKER_TRITON_ADDITIONAL_ARGS";

/// Variables whose value becomes that of a flag, and the default value; without one the flag is left out.
const FLAGS: [(&str, &str, Option<&str>); 16] = [
    // Its name means the opposite of the flag; nevertheless its value is that of the flag.
    ("SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING", "--model-namespacing=", Some("true")),
    ("SAGEMAKER_BIND_TO_PORT", "--sagemaker-port=", None),
    ("SAGEMAKER_SAFE_PORT_RANGE", "--sagemaker-safe-port-range=", None),
    ("SAGEMAKER_TRITON_ALLOW_GRPC", "--allow-grpc=", Some("false")),
    ("SAGEMAKER_TRITON_ALLOW_METRICS", "--allow-metrics=", Some("false")),
    ("SAGEMAKER_TRITON_METRICS_PORT", "--metrics-port=", None),
    ("SAGEMAKER_TRITON_GRPC_PORT", "--grpc-port=", None),
    ("SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT", "--buffer-manager-thread-count=", None),
    ("SAGEMAKER_TRITON_THREAD_COUNT", "--sagemaker-thread-count=", None),
    ("SAGEMAKER_TRITON_LOG_VERBOSE", "--log-verbose=", Some("true")),
    ("SAGEMAKER_TRITON_LOG_INFO", "--log-info=", None),
    ("SAGEMAKER_TRITON_LOG_WARNING", "--log-warning=", None),
    ("SAGEMAKER_TRITON_LOG_ERROR", "--log-error=", None),
    (
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE",
        "--backend-config=python,shm-default-byte-size=",
        Some("16777216"),
    ),
    (
        "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE",
        "--backend-config=python,shm-growth-byte-size=",
        Some("1048576"),
    ),
    ("SAGEMAKER_TRITON_TENSORFLOW_VERSION", "--backend-config=tensorflow,version=", None),
];

/// Returns the start for the variables. `more`: further arguments, which have priority.
///
/// # Errors
/// If the model to serve does not exist, or there are several.
pub fn launch(
    environment: &Environment,
    places: &SageMakerFolders,
    more: impl Iterator<Item = String>,
) -> Result<Launch> {
    let has_many = environment.text(MULTI_MODEL).as_deref() == Some("true");
    let repository = if has_many { &places.many } else { &places.single };
    let mut arguments: Vec<String> = [
        "--allow-sagemaker=true".to_owned(),
        "--allow-http=false".to_owned(),
        "--model-control-mode=explicit".to_owned(),
        format!("--model-repository={}", repository.display()),
    ]
    .into();
    arguments.extend(FLAGS.iter().filter_map(|(variable, flag, default)| {
        let value = environment.text(variable).or(default.map(str::to_owned))?;
        Some(format!("{flag}{value}"))
    }));
    arguments.extend(gpu_limits(environment));
    let additional = environment.text(ADDITIONAL).unwrap_or_default();
    arguments.extend(additional.split_whitespace().map(str::to_owned));
    check_inference_type(environment)?;
    let mut launch = Launch { arguments, environment: environment.clone(), notes: Vec::new() };
    let ping_mode = environment.text(OVERRIDE_PING_MODE);
    if has_many {
        prepare_many(&mut launch, repository, ping_mode)?;
    } else {
        choose_model(&mut launch, repository)?;
        launch.set(PING_MODE, ping_mode.unwrap_or_else(|| "ready".to_owned()));
    }
    launch.arguments.extend(more);
    Ok(launch)
}

impl Launch {
    fn set(&mut self, variable: &str, value: String) {
        let variables = self.environment.variables();
        let others = variables.filter(|(name, _)| name.to_str() != Some(variable));
        self.environment = others.chain([(variable.into(), value.into())]).collect();
    }
}

/// Returns one limit for each GPU of the machine.
fn gpu_limits(environment: &Environment) -> Vec<String> {
    let Some(limit) = environment.text(GPU_LIMIT) else { return Vec::new() };
    let gpus = galatea_gpu::detect().unwrap_or_default();
    gpus.iter().map(|gpu| format!("--model-load-gpu-limit={}:{limit}", gpu.index)).collect()
}

fn check_inference_type(environment: &Environment) -> Result<()> {
    match environment.text(INFERENCE_TYPE) {
        Some(given) if !INFERENCE_TYPES.contains(&&*given) => {
            bail!(
                "Invalid {INFERENCE_TYPE} '{given}'. Must be one of: {}",
                INFERENCE_TYPES.join(", ")
            )
        }
        _ => Ok(()),
    }
}

/// Prepares the many-model mode. Models come with requests: the server is live before any is ready.
fn prepare_many(launch: &mut Launch, repository: &Path, ping_mode: Option<String>) -> Result<()> {
    fs::create_dir_all(repository).map_err(|error| unusable(repository, &error))?;
    let ping_mode = ping_mode.unwrap_or_else(|| "live".to_owned());
    launch.notes.push(format!(
        "SageMaker's many-model mode: models are loaded by its requests. /ping answers whether the server is '{ping_mode}'."
    ));
    launch.set(PING_MODE, ping_mode);
    Ok(())
}

/// Chooses the named model, or the only one.
fn choose_model(launch: &mut Launch, repository: &Path) -> Result<()> {
    if repository.join("config.pbtxt").is_file() {
        bail!(
            "Incorrect directory structure: '{}' is a model, and must be the folder that holds it",
            repository.display()
        );
    }
    let model = match launch.environment.text(DEFAULT_MODEL) {
        Some(model) if repository.join(&model).is_dir() => model,
        Some(model) => bail!("Directory with provided {DEFAULT_MODEL} {model} does not exist"),
        None => {
            let model = only_folder(repository)?;
            launch.notes.push(format!(
                "WARNING: No {DEFAULT_MODEL} provided. The only model there is, {model}, is served."
            ));
            launch.set(DEFAULT_MODEL, model.clone());
            model
        }
    };
    launch.arguments.push(format!("--load-model={model}"));
    Ok(())
}

fn only_folder(repository: &Path) -> Result<String> {
    let unusable = |error| unusable(repository, &error);
    let mut folders = Vec::new();
    for entry in fs::read_dir(repository).map_err(unusable)? {
        let entry = entry.map_err(unusable)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    match folders.as_slice() {
        [] => bail!("No model found in model repository"),
        [only] => Ok(only.clone()),
        _ => bail!(
            "More than 1 model directory found in model repository: {}. Name one with {DEFAULT_MODEL}",
            folders.join(" ")
        ),
    }
}

fn unusable(repository: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("the model repository '{}' cannot be used: {error}", repository.display())
}
