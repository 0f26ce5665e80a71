//! Every seed through its target, and every target with seeds.

#![allow(clippy::unwrap_used)] // a test may stop where it stands

use std::{
    collections::BTreeSet,
    fs, panic,
    path::{Path, PathBuf},
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use galatea_fuzz::{TARGETS, Target, target};

/// Targets measure the memory of the whole process: one at a time.
static TURN: Mutex<()> = Mutex::new(());

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

fn replay(name: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Target { run, .. } = target(name).unwrap_or_else(|| panic!("no target '{name}'"));
    let mut seeds: Vec<PathBuf> =
        fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{name}: no seeds");
    // The server answers with an error where a request panics, so that panics of all threads count.
    let before = PANICS.load(Ordering::SeqCst);
    for seed in seeds {
        let bytes = fs::read(&seed).unwrap();
        let result = panic::catch_unwind(|| run(&bytes));
        let is_quiet = result.is_ok() && PANICS.load(Ordering::SeqCst) == before;
        assert!(is_quiet, "{}: see the panic above", seed.display());
    }
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            print(info);
        }));
    });
}

macro_rules! replayed {
    ($($name:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            count_panics();
            replay(stringify!($name));
        })*
    };
}

replayed! {
    access_credential
    access_key_set
    access_policy
    archive_elf
    archive_pt2
    archive_tar
    archive_triton_library
    call_spec
    certificate_name
    client_grpc_response
    client_http_response
    config_json
    config_text
    engine_sequence
    grpc_connection
    grpc_message
    grpc_request
    http_binary
    http_codec
    http_connection
    http_generate
    http_head
    http_json
    http_repository
    http_request
    hub_answer
    load_data
    load_overrides
    metrics_text
    onnx_header
    openvino_header
    perf_summary
    redis_reply
    response_cache_entry
    saved_model
    sequence_states
    tls_handshake
    tls_records
    trace_context
    trace_file
    worker_exchange
    worker_message
}

#[test]
fn every_fuzz_target_is_replayed() {
    let targets: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(targets, REPLAYED);
    let folders = fs::read_dir(folder("")).unwrap();
    let folders: BTreeSet<_> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders.into_iter().collect::<Vec<_>>(), targets);
}
