//! A shell behind the barriers, at each level and on kernels that lack a part. What it tries succeeds without them.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use super::*;

/// Whether a script of the shell succeeds; `None`: this kernel lacks what the barriers are made of.
fn succeeds(script: &str, sandbox: Option<&Sandbox>, kernel: KernelSupport) -> Option<bool> {
    let here = KernelSupport::detect();
    let lacks = kernel.landlock > here.landlock || kernel.has_filters && !here.has_filters;
    if sandbox.is_some() && lacks {
        eprintln!("skipped, as this kernel has no more than {here:?}: {script}");
        return None;
    }
    let barriers = sandbox.map(|sandbox| sandbox.prepare(kernel).expect("prepared"));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure only makes system calls, which is allowed between fork and exec.
    unsafe { command.pre_exec(move || barriers.as_ref().map_or(Ok(()), Barriers::raise)) };
    Some(command.status().expect("started").success())
}

const ALL: KernelSupport = KernelSupport { landlock: 6, has_filters: true };

fn sandbox(level: IsolationLevel, folder: &Path) -> Sandbox {
    Sandbox {
        level,
        readable: vec![folder.join("readable")],
        writable: vec![folder.join("writable")],
        secret: vec![folder.join("readable/secret")],
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    for (name, file) in
        [("readable", "open"), ("readable", "secret"), ("writable", "open"), ("other", "open")]
    {
        let inner = folder.path().join(name);
        fs::create_dir_all(&inner).expect("made");
        fs::write(inner.join(file), "").expect("written");
    }
    folder
}

/// What a script does at each level: `allowed` is whether it succeeds there.
#[track_caller]
fn check(script: &str, allowed: [bool; 2], kernel: KernelSupport) {
    let folder = folder();
    let script = script.replace("FOLDER", &folder.path().display().to_string());
    assert_eq!(succeeds(&script, None, kernel), Some(true), "without barriers: {script}");
    for (level, allowed) in
        [IsolationLevel::Standard, IsolationLevel::Strict].into_iter().zip(allowed)
    {
        let done = succeeds(&script, Some(&sandbox(level, folder.path())), kernel);
        assert!(done.is_none_or(|done| done == allowed), "{level:?}: {script}");
    }
}

#[test]
fn only_listed_files_are_accessible() {
    check("cat FOLDER/readable/open", [true; 2], ALL);
    check("cat FOLDER/readable/secret", [false; 2], ALL);
    check("cat FOLDER/other/open", [false; 2], ALL);
    check("echo x > FOLDER/readable/open", [false; 2], ALL);
    check(
        "echo x > FOLDER/writable/made && mv FOLDER/writable/made FOLDER/writable/moved",
        [true; 2],
        ALL,
    );
    check("mv FOLDER/writable/open FOLDER/other/moved", [false; 2], ALL);
    check(
        "ln -s FOLDER/other/open FOLDER/writable/link && cat FOLDER/writable/link",
        [false; 2],
        ALL,
    );
    check("echo x > /dev/null && cat /proc/self/status", [true; 2], ALL);
    check("chmod 600 FOLDER/other/open", [true, false], ALL);
    check("f=/dev/shm/galatea-test-$$; echo x > $f && rm $f", [true, false], ALL);
}

#[test]
fn other_processes_cannot_be_signalled() {
    let script = format!("kill -0 {}", std::process::id());
    check(&script, [false; 2], ALL);
    check("sleep 60 & kill $!", [true; 2], ALL);
    check("setsid true", [true, false], ALL);
    // Each wall alone.
    check(&script, [false; 2], KernelSupport { landlock: 0, has_filters: true });
    check(&script, [false; 2], KernelSupport { landlock: 6, has_filters: false });
}

#[test]
fn scheduling_of_other_processes_cannot_be_changed() {
    let server = std::process::id();
    for call in [
        format!("os.sched_setaffinity({server}, os.sched_getaffinity(0))"),
        format!(
            "os.sched_setscheduler({server}, os.sched_getscheduler({server}), os.sched_getparam({server}))"
        ),
        format!(
            "os.setpriority(os.PRIO_PROCESS, {server}, os.getpriority(os.PRIO_PROCESS, {server}))"
        ),
        "os.setpriority(os.PRIO_USER, os.getuid(), os.getpriority(os.PRIO_USER, os.getuid()))"
            .to_owned(),
        "os.setpriority(os.PRIO_PGRP, os.getpgrp(), 0)".to_owned(),
    ] {
        check_python(&call, [false; 2]);
    }
    check_python("os.sched_setaffinity(0, os.sched_getaffinity(0))", [true; 2]);
    check_python("os.setpriority(os.PRIO_PROCESS, 0, 1)", [true; 2]);
}

#[test]
fn sockets_that_reach_other_hosts_cannot_be_created() {
    check_python("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", [true, false]);
    check_python("socket.socket(socket.AF_UNIX, socket.SOCK_RAW)", [true, false]);
    check_python("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", [true, false]);
    check_python("socket.socketpair()", [true; 2]);
    check_python("socket.socket(socket.AF_INET)", [true, false]);
}

#[test]
fn unlisted_system_calls_do_not_exist() {
    // 135 is `personality` on x86-64, which changes nothing when asked so; -1 is no call.
    let script = "import ctypes; c = ctypes.CDLL(None, use_errno=True); \
                  c.syscall(135, 0xFFFFFFFF); assert ctypes.get_errno() != 38";
    if cfg!(target_arch = "x86_64") {
        check_python(script, [false; 2]);
    }
}

#[track_caller]
fn check_python(code: &str, allowed: [bool; 2]) {
    check(&format!("python3 -c 'import os, socket\n{code}'"), allowed, FILTERS);
}

/// Files stay accessible, because the interpreter may lie anywhere.
const FILTERS: KernelSupport = KernelSupport { landlock: 0, has_filters: true };

#[test]
fn available_kernel_features_are_used_without_the_others() {
    let no_landlock = KernelSupport { landlock: 0, has_filters: true };
    check("cat FOLDER/other/open", [true; 2], no_landlock);
    let no_filters = KernelSupport { landlock: 6, has_filters: false };
    check("cat FOLDER/other/open", [false; 2], no_filters);
}

#[test]
fn filters_exist_for_every_level_and_name_their_server() {
    let of = |level, process| {
        filters::filters(level, filters::Server { process, group: 7 }).expect("filters")
    };
    let standard = of(IsolationLevel::Standard, 42);
    assert!(of(IsolationLevel::Strict, 42)[2].len() > standard[2].len());
    assert_ne!(of(IsolationLevel::Standard, 43)[2], standard[2]);
    // The kernel takes no longer ones.
    assert!(standard.iter().all(|filter| filter.len() < 4096));
}
