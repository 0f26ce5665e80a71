//! Backends whose models run in children of this test, and those children as processes.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    sync::{Arc, mpsc},
    time::Duration,
};

use galatea_backend::{
    Backend, InstanceAlarm, Model, ModelInstance,
    testing::{Fixture, instance_spec, load_context, model_config},
};
use galatea_backend_process::{ChildProgram, ProcessBackend};
use galatea_test_support::eventually;
use galatea_types::Error;
use serde_json::{Value, json};

use crate::support;

/// Limit for anything that must happen.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// `isolation=process`, and others beside it.
pub fn settings(others: &[(&str, &str)]) -> BTreeMap<String, String> {
    let all = others.iter().chain(&[("isolation", "process")]);
    all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A backend whose models all run in children, which are the program that was built.
pub fn isolated(name: &str, description: Value) -> Arc<dyn Backend> {
    let program = env!("CARGO_BIN_EXE_galatea");
    let child = ChildProgram::new(program, ["model-worker".into()], std::env::vars_os());
    let open = Box::new(|| -> galatea_types::Result<Arc<dyn Backend>> {
        panic!("an isolated model needs no backend in this process")
    });
    ProcessBackend::open(name, &settings(&[]), description, child, open).expect("opened")
}

pub fn built_in(name: &str) -> Arc<dyn Backend> {
    isolated(name, json!({ "built_in": name }))
}

pub fn onnx() -> Arc<dyn Backend> {
    isolated("onnxruntime", json!({ "onnx": { "library": support::library(), "settings": {} } }))
}

/// A model `m` of the built-in `identity`.
pub fn identity_fixture() -> Fixture {
    let config = model_config(
        "name: 'm' backend: 'identity' max_batch_size: 8
         input { name: 'INPUT0' data_type: TYPE_UINT8 dims: -1 }
         output { name: 'OUTPUT0' data_type: TYPE_UINT8 dims: -1 }",
    );
    Fixture { backend_config: settings(&[]), ..Fixture::new(config, "unused") }
}

pub fn load(backend: &dyn Backend, fixture: &Fixture) -> Box<dyn Model> {
    backend.load(load_context(fixture)).expect("it loads")
}

/// An instance, and what its alarm reports.
pub fn instance(
    model: &dyn Model,
    index: usize,
) -> (Box<dyn ModelInstance>, mpsc::Receiver<Error>) {
    let (raised, alarms) = mpsc::channel();
    let mut spec = instance_spec("m", index);
    spec.alarm = InstanceAlarm::new(move |reason| {
        let _ = raised.send(reason);
    });
    (model.new_instance(&spec).expect("an instance"), alarms)
}

/// Process ids of this test's children that run an instance of this name.
pub fn processes(instance: &str) -> Vec<u32> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").expect("readable").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| is_child(*id, &own) && has_argument(*id, instance)).collect()
}

/// A zombie is none any more.
fn is_child(id: u32, parent: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat"));
    let stat = stat.unwrap_or_default();
    let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    fields.next().is_some_and(|state| state != "Z") && fields.next() == Some(parent)
}

fn has_argument(id: u32, argument: &str) -> bool {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
}

/// Sends a signal to the only child that runs this instance. False: there is none.
///
/// SIGSEGV until it is gone: the first that no access caused only takes Rust's own handler away.
pub fn signal(instance: &str, name: &str) -> bool {
    let [id] = processes(instance)[..] else { return false };
    let send = || Command::new("kill").args(["-s", name, &id.to_string()]).output();
    let is_sent = send().expect("kill runs").status.success();
    if name == "SEGV" {
        eventually("the process has ended with SIGSEGV", || {
            send().is_ok() && processes(instance).is_empty()
        });
    }
    is_sent
}
