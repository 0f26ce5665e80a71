//! Nothing of an isolated model is left when it ends. Alone in its process, because it counts the process's resources.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, helpers included"
)]

#[allow(dead_code)]
#[path = "isolation/children.rs"]
mod children;
#[path = "../../../backends/onnx/tests/it/support/mod.rs"]
mod support;

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use galatea_backend::{
    ModelInstance,
    testing::{instance_spec, request, run_batch},
};
use galatea_test_support::eventually;
use galatea_types::{DataType, Tensor};

use children::{built_in, identity_fixture, instance, load, processes, signal};

fn count(folder: &str) -> usize {
    fs::read_dir(folder).expect("readable").count()
}

fn mappings() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("readable");
    maps.lines().filter(|line| line.contains("memfd:galatea-")).count()
}

/// Bytes that shared memory takes of the machine's.
fn shared() -> u64 {
    let descriptors = fs::read_dir("/proc/self/fd").expect("readable").flatten();
    let is_ours = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|target| target.to_string_lossy().contains("memfd:galatea-"))
    };
    let ours = descriptors.map(|entry| entry.path()).filter(is_ours);
    ours.filter_map(|path| fs::metadata(path).ok()).map(|memory| memory.blocks() * 512).sum()
}

#[test]
fn an_isolated_model_leaves_no_processes_files_or_memory() {
    processes_leave_nothing_behind_however_they_end();
    memory_of_an_idle_model_is_freed();
}

fn memory_of_an_idle_model_is_freed() {
    let model = load(&*built_in("identity"), &identity_fixture());
    let (mut idle, _alarms) = instance(&*model, 1);
    let echo = |idle: &mut dyn ModelInstance, size: i64| {
        let input = Tensor::new("INPUT0", DataType::Uint8, [1, size], vec![7; size as usize]);
        let answer = run_batch(idle, vec![request("m", 1, vec![input.clone()])]).remove(0);
        let answer = answer.expect("a response");
        assert_eq!(answer.outputs[0].host().expect("host"), input.host().expect("host"));
        shared()
    };
    assert!(echo(&mut *idle, 20 << 20) >= 40 << 20, "it went through both arenas");
    eventually("the memory is given back", || shared() < 1 << 20);
    echo(&mut *idle, 100_000);
}

fn processes_leave_nothing_behind_however_they_end() {
    let model = load(&*built_in("identity"), &identity_fixture());
    let name = instance_spec("m", 0).name;
    drop(instance(&*model, 0));
    let resources = || (count("/proc/self/fd"), count("/proc/self/task"), mappings());
    let before = resources();
    for how in ["", "KILL", "SEGV", ""] {
        let (mut kept, _alarms) = instance(&*model, 0);
        let large = Tensor::new("INPUT0", DataType::Uint8, [1, 3 << 20], vec![9; 3 << 20]);
        let answers = run_batch(&mut *kept, vec![request("m", 1, vec![large])]);
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(processes(&name).len(), 1);
        if !how.is_empty() {
            assert!(signal(&name, how));
        }
        drop((kept, answers));
        assert_eq!(processes(&name), [0; 0]);
        eventually("nothing of the process is left", || resources() == before);
    }
}
