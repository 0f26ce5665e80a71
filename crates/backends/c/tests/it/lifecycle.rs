//! Loading, completion, times, and what is offered.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use galatea_backend::{
    Batch, CompletionContext, Outcome, PathRules, ServerAccess,
    testing::{Loader, ModelFolder, pending, request},
};
use galatea_backend_c::{BACKEND, CBackend, CBackendOptions};
use galatea_config::{ConfigDraft, InstanceKind, PreferredGroup};
use galatea_triton_c::{
    newer_version,
    objects::{OBJECTS, errors},
};
use galatea_types::Code;

use crate::support::{BYTES_IN_AND_OUT, Backends, bytes, load, load_by};

#[test]
fn a_library_completes_a_configuration() {
    let backends = Backends::compile("completer");
    let loader = Loader { backend: backends.open(), file: "unused" };
    let folder = ModelFolder::with_file("unused", b"");
    let config = loader.configure(&folder, "backend: 'completer'").expect("completed");
    assert_eq!((config.max_batch_size(), &*config.inputs()[0].name), (4, "INPUT0"));
    assert_eq!(&**config.name(), "m", "a backend does not choose the name");
    let refused = loader.configure(&folder, "backend: 'completer' max_batch_size: 13");
    let error = refused.expect_err("the library refuses it");
    assert_eq!((error.code(), error.message()), (Code::InvalidArg, "13 is not a good size"));
}

#[test]
fn a_library_tells_the_instance_groups_that_it_prefers() {
    let backends = Backends::compile("completer");
    let folder = ModelFolder::with_file("unused", b"");
    let (backend, version_dir) = (backends.open(), folder.version_dir());
    let context = CompletionContext {
        model_name: "m",
        model_dir: folder.path(),
        version: 1,
        version_dir: &version_dir,
        backend_config: &BTreeMap::new(),
        paths: &PathRules::anywhere(),
    };
    let preferred =
        |kind, count, gpus: &[u32]| PreferredGroup { kind: Some(kind), count, gpus: gpus.to_vec() };
    assert_eq!(
        backend.preferred_groups(&ConfigDraft::default(), &context),
        [preferred(InstanceKind::Gpu, 1, &[0]), preferred(InstanceKind::Cpu, 3, &[])]
    );
}

#[test]
fn a_backend_that_needs_another_version_says_what_is_offered() {
    let backends = Backends::compile("picky");
    let error = CBackend::open(backends.options()).err().expect("refused");
    let text = error.message();
    assert!(text.contains("libtriton_picky.so' did not initialise"), "{text}");
    assert!(text.contains("version 1.19") && text.ends_with("version 2.0 is needed"), "{text}");
}

#[test]
fn the_times_that_a_library_reports_are_those_of_its_requests() {
    let backends = Backends::compile("mirror");
    let mut loaded = load(&backends, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads");
    let asked = [b"one", b"two"].map(|data| pending(request("m", 1, vec![bytes(data)])).0);
    let mut batch = Batch::new("m".into(), 1, asked);
    loaded.instance.execute(&mut batch);
    // The library begins to compute at once, and returns outputs at the end.
    let whole = *batch.execution();
    let (started, ended) = (whole.input_done.unwrap(), whole.output_start.unwrap());
    for (pending, outcome) in batch.into_outcomes() {
        assert!(matches!(outcome, Outcome::Answered(Ok(_))));
        let times = pending.context.timeline;
        let (from, to) = (times.input_done.unwrap(), times.output_start.unwrap());
        assert!(started <= from && from <= to && to <= ended);
    }
    assert!(loaded.model.may_answer_later());
}

#[test]
fn a_library_that_may_wait_for_the_server_keeps_to_its_thread() {
    let computes = |name, waits_for_answers, in_place: &str| {
        let backends = Backends::compile(name);
        let settings = [("in_place".to_owned(), in_place.to_owned())].into();
        let options = CBackendOptions { waits_for_answers, settings, ..backends.options() };
        let loaded = load_by(options, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads");
        loaded.model.computes_on_any_thread()
    };
    assert!(computes("mirror", false, "true"));
    assert!(!computes("mirror", false, "false"), "the settings say so");
    assert!(!computes("mirror", true, "true"), "an execution waits for threads of the library");
    assert!(!computes("caller", false, "true"), "it calls other models");
}

#[test]
fn nothing_is_left_when_a_model_is_unloaded() {
    let backends = Backends::compile("mirror");
    for _ in 0..50 {
        drop(load(&backends, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads"));
    }
    // Other tests may hold some at the same time.
    assert!(errors::count() < 50, "{}", errors::count());
}

#[test]
fn every_function_that_the_header_declares_is_offered() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/c-backend");
    let header = std::fs::read_to_string(folder.join("triton_backend.h")).unwrap();
    let declared: BTreeSet<&str> = header
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|name| name.starts_with("TRITON") && header.contains(&format!("*{name}(")))
        .collect();
    assert!(declared.len() > 15, "{declared:?}");
    for name in declared {
        let is_hook = name.ends_with("_Initialize") || name.ends_with("Execute");
        assert!(is_hook || BACKEND.has(name) || OBJECTS.has(name), "{name}");
    }
}

/// The kinds of objects that functions belong to, in the order of the page. A function belongs to the first whose prefix it has.
const GROUPS: [&str; 28] = [
    "TRITONBACKEND_BackendAttribute",
    "TRITONBACKEND_Backend",
    "TRITONBACKEND_MemoryManager",
    "TRITONBACKEND_ModelInstanceResponseStatistics",
    "TRITONBACKEND_ModelInstanceReport",
    "TRITONBACKEND_ModelInstance",
    "TRITONBACKEND_Model",
    "TRITONBACKEND_Request",
    "TRITONBACKEND_Input",
    "TRITONBACKEND_Output",
    "TRITONBACKEND_ResponseFactory",
    "TRITONBACKEND_Response",
    "TRITONBACKEND_State",
    "TRITONBACKEND_",
    "TRITONSERVER_ServerModel",
    "TRITONSERVER_Server",
    "TRITONSERVER_InferenceRequest",
    "TRITONSERVER_InferenceResponse",
    "TRITONSERVER_InferenceTrace",
    "TRITONSERVER_ResponseAllocator",
    "TRITONSERVER_BufferAttributes",
    "TRITONSERVER_Message",
    "TRITONSERVER_Metrics",
    "TRITONSERVER_Metric",
    "TRITONSERVER_Parameter",
    "TRITONSERVER_Error",
    "TRITONSERVER_Log",
    "TRITONSERVER_",
];

/// Returns true if a function belongs to a group: the rest of its name begins a word, so `MetricsDelete` is none of `Metric`.
fn is_of(prefix: &str, name: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(char::is_uppercase))
}

/// Returns the name of a function without its prefix, and the version that brought it if that is told.
fn with_version(prefix: &str, name: &str) -> String {
    let short = name.strip_prefix(prefix).unwrap();
    match newer_version(name) {
        Some([major, minor]) => format!("`{short}` ({major}.{minor})"),
        None => format!("`{short}`"),
    }
}

/// Returns the table of the page: a row for each kind of object.
fn function_table() -> String {
    let mut table = String::from("| functions | done | not supported |\n|---|---|---|\n");
    let all = BACKEND.functions.iter().chain(OBJECTS.functions);
    let group = |name: &str| GROUPS.iter().position(|prefix| is_of(prefix, name)).unwrap();
    for (number, prefix) in GROUPS.iter().enumerate() {
        let list = |is_supported: bool| {
            let of_group = all.clone().filter(|function| {
                function.is_supported == is_supported && group(function.name) == number
            });
            let names: BTreeSet<&str> = of_group.map(|function| function.name).collect();
            names.into_iter().map(|name| with_version(prefix, name)).collect::<Vec<_>>().join(", ")
        };
        table += &format!("| `{prefix}...` | {} | {} |\n", list(true), list(false));
    }
    table
}

#[test]
fn the_page_lists_every_function() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/c-backends.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = function_table();
    assert!(page.contains(&table), "docs/c-backends.md must end with:\n{table}");
}
