//! Variables and folders in, command lines out.

use tempfile::TempDir;

use super::*;
use crate::{flags, options::from_flags};

struct Container {
    root: TempDir,
    places: SageMakerFolders,
}

impl Container {
    fn with(models: &[&str]) -> Self {
        let root = tempfile::tempdir().expect("folder");
        let places =
            SageMakerFolders { single: root.path().join("model"), many: root.path().join("many") };
        fs::create_dir(&places.single).expect("folder");
        for model in models {
            fs::create_dir_all(places.single.join(model)).expect("folder");
        }
        Self { root, places }
    }

    fn launch(&self, variables: &[(&str, &str)]) -> Result<Launch, String> {
        let environment = Environment::of(variables.iter().copied());
        launch(&environment, &self.places, ["--id=x".to_owned()].into_iter())
            .map_err(|error| error.to_string())
    }
}

fn has(launch: &Launch, argument: &str) -> bool {
    launch.arguments.iter().any(|given| given == argument)
}

#[test]
fn the_only_model_is_served_with_sagemakers_defaults() {
    let container = Container::with(&["m"]);
    let launch = container.launch(&[]).expect("one model");
    let repository = format!("--model-repository={}", container.places.single.display());
    let expected = [
        "--allow-sagemaker=true",
        "--allow-http=false",
        "--model-control-mode=explicit",
        &repository,
        "--model-namespacing=true",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--log-verbose=true",
        "--backend-config=python,shm-default-byte-size=16777216",
        "--backend-config=python,shm-growth-byte-size=1048576",
        "--load-model=m",
        "--id=x",
    ];
    assert_eq!(launch.arguments, expected);
    assert_eq!(launch.environment.text(DEFAULT_MODEL).as_deref(), Some("m"));
    assert_eq!(launch.environment.text(PING_MODE).as_deref(), Some("ready"));
    assert!(
        launch.notes[0].starts_with("WARNING: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided")
    );
}

#[test]
fn environment_variables_become_flags() {
    let container = Container::with(&["a", "b"]);
    let variables = [
        ("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "b"),
        ("SAGEMAKER_BIND_TO_PORT", "8099"),
        ("SAGEMAKER_SAFE_PORT_RANGE", "8081-9000"),
        ("SAGEMAKER_TRITON_ALLOW_GRPC", "true"),
        ("SAGEMAKER_TRITON_GRPC_PORT", "8091"),
        ("SAGEMAKER_TRITON_ALLOW_METRICS", "true"),
        ("SAGEMAKER_TRITON_METRICS_PORT", "8092"),
        ("SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING", "false"),
        ("SAGEMAKER_TRITON_THREAD_COUNT", "3"),
        ("SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT", "2"),
        ("SAGEMAKER_TRITON_LOG_VERBOSE", "0"),
        ("SAGEMAKER_TRITON_LOG_INFO", "false"),
        ("SAGEMAKER_TRITON_LOG_WARNING", "false"),
        ("SAGEMAKER_TRITON_LOG_ERROR", "true"),
        ("SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE", "4096"),
        ("SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE", "8192"),
        ("SAGEMAKER_TRITON_TENSORFLOW_VERSION", "2"),
        ("SAGEMAKER_TRITON_INFERENCE_TYPE", "generate"),
        ("SAGEMAKER_TRITON_ADDITIONAL_ARGS", "--strict-readiness=false  --exit-on-error false"),
        ("SAGEMAKER_TRITON_OVERRIDE_PING_MODE", "live"),
    ];
    let launch = container.launch(&variables).expect("the named model");
    for argument in [
        "--load-model=b",
        "--sagemaker-port=8099",
        "--sagemaker-safe-port-range=8081-9000",
        "--allow-grpc=true",
        "--grpc-port=8091",
        "--allow-metrics=true",
        "--metrics-port=8092",
        "--model-namespacing=false",
        "--sagemaker-thread-count=3",
        "--buffer-manager-thread-count=2",
        "--log-verbose=0",
        "--log-info=false",
        "--log-warning=false",
        "--log-error=true",
        "--backend-config=python,shm-default-byte-size=4096",
        "--backend-config=python,shm-growth-byte-size=8192",
        "--backend-config=tensorflow,version=2",
        "--strict-readiness=false",
        "--exit-on-error",
    ] {
        assert!(has(&launch, argument), "{argument}: {:?}", launch.arguments);
    }
    assert_eq!(launch.environment.text(PING_MODE).as_deref(), Some("live"));
    assert!(launch.notes.is_empty());
    let parsed = flags::parse(launch.arguments, flags::Words::Refused).expect("known flags");
    let flags = parsed.expect("no help");
    assert!(from_flags(flags, &launch.environment).is_ok());
}

#[test]
fn multi_model_mode_needs_no_model_at_the_start() {
    let container = Container::with(&[]);
    let launch = container.launch(&[("SAGEMAKER_MULTI_MODEL", "true")]).expect("no model");
    let many = container.root.path().join("many");
    assert!(many.is_dir());
    assert!(has(&launch, &format!("--model-repository={}", many.display())));
    assert!(!launch.arguments.iter().any(|argument| argument.starts_with("--load-model")));
    assert_eq!(launch.environment.text(PING_MODE).as_deref(), Some("live"));
    assert!(container.launch(&[("SAGEMAKER_MULTI_MODEL", "TRUE")]).is_err(), "another word");
}

#[test]
fn an_environment_that_cannot_be_served_is_reported_at_once() {
    let none = Container::with(&[]);
    assert_eq!(none.launch(&[]).expect_err("no model"), "No model found in model repository");
    let two = Container::with(&["a", "b"]);
    let error = two.launch(&[]).expect_err("which one?");
    assert!(error.starts_with("More than 1 model directory found in model repository: a b."));
    let error = two.launch(&[(DEFAULT_MODEL, "c")]).expect_err("no such model");
    let text = "Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME c does not exist";
    assert_eq!(error, text);
    let error = two.launch(&[(INFERENCE_TYPE, "x"), (DEFAULT_MODEL, "a")]).expect_err("no type");
    assert!(error.starts_with("Invalid SAGEMAKER_TRITON_INFERENCE_TYPE 'x'"), "{error}");
    fs::write(two.places.single.join("config.pbtxt"), "").expect("written");
    let error = two.launch(&[(DEFAULT_MODEL, "a")]).expect_err("a model itself");
    assert!(error.starts_with("Incorrect directory structure"), "{error}");
}
