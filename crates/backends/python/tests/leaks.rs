//! Nothing of a worker is left when it ends. Alone in its process, because it counts the process's resources.

#![allow(clippy::expect_used, reason = "a test fails by panicking, helpers included")]

#[allow(dead_code)]
#[path = "it/common.rs"]
mod common;

use std::fs;

use galatea_test_support::eventually;

use common::{IDENTITY, Written, bytes, output, run};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("readable").count()
}

/// Parent and group of every process that is not a zombie.
fn stats() -> impl Iterator<Item = Vec<String>> {
    let processes = fs::read_dir("/proc").expect("readable").flatten();
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    let fields = |stat: String| {
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        (fields[0] != "Z").then(|| vec![fields[1].to_owned(), fields[2].to_owned()])
    };
    processes.filter_map(stat).filter_map(fields)
}

/// Processes whose parent is this one.
fn children() -> usize {
    let own = std::process::id().to_string();
    stats().filter(|s| s.first() == Some(&own)).count()
}

/// Group of the only worker; empty when it is dead.
fn worker_group() -> String {
    let own = std::process::id().to_string();
    stats().find(|s| s.first() == Some(&own)).map(|s| s[1].clone()).unwrap_or_default()
}

fn members(group: &str) -> usize {
    stats().filter(|s| s.get(1).is_some_and(|g| g == group)).count()
}

fn mappings() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("readable");
    maps.lines().filter(|line| line.contains("memfd:galatea-")).count()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("readable").count()
}

#[test]
fn workers_leave_no_processes_memory_or_files() {
    workers_leave_nothing_behind_however_they_end();
    memory_of_an_idle_worker_is_freed();
}

fn workers_leave_nothing_behind_however_they_end() {
    let body = format!(
        r#"
        how = pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy()[0]
        if how == 1:
            os.kill(os.getpid(), 9)
        if how == 2 and os.fork() == 0:
            time.sleep(600)
            os._exit(0){IDENTITY}"#
    );
    let loaded = Written::execute(&body).load();
    drop(loaded.instance(0).expect("an instance"));
    let before = (descriptors(), children(), threads());
    assert_eq!((before.1, mappings()), (0, 0));
    for how in [0, 1, 2, 0, 1, 2] {
        let mut instance = loaded.instance(0).expect("an instance");
        let large = vec![how; 3 << 20];
        let answer = run(&mut *instance, bytes(&large));
        if how != 1 {
            assert_eq!(output(answer), large);
        }
        assert!(children() >= 1 || how == 1);
        let group = worker_group();
        drop(instance);
        // Also what the worker forked, which is no child of this process.
        eventually("no process of the group is left", || members(&group) == 0);
    }
    let failed = Written::class("    def initialize(self, args):\n        raise ValueError()\n");
    failed.start_error();
    let after = || (descriptors(), children(), threads());
    eventually("nothing is left", || after() == before && mappings() == 0);
}

fn memory_of_an_idle_worker_is_freed() {
    let (mut instance, _loaded) = Written::execute(IDENTITY).instance();
    let shared = || {
        let status = fs::read_to_string("/proc/self/smaps").expect("readable");
        let mut sizes = status.lines().scan(false, |is_ours, line| {
            if line.contains("memfd:") || line.contains('-') && line.contains(" r") {
                *is_ours = line.contains("memfd:galatea-");
            }
            let size = line.strip_prefix("Rss:").filter(|_| *is_ours);
            Some(size.and_then(|s| s.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()))
        });
        sizes.by_ref().flatten().sum::<u64>()
    };
    // It is given back after three seconds, which may pass before this thread looks: then the next batch takes it again.
    eventually("the memory of a worker at work is seen", || {
        assert_eq!(output(run(&mut *instance, bytes(&vec![1; 20 << 20]))), vec![1; 20 << 20]);
        shared() > 20 << 10
    });
    eventually("the memory is given back", || shared() < 4 << 10);
    assert_eq!(output(run(&mut *instance, bytes(&[7; 100_000]))), [7; 100_000]);
}
