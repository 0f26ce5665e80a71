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
fn only_listed_files_are_reached() {
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
fn other_processes_are_not_signalled() {
    let script = format!("kill -0 {}", std::process::id());
    check(&script, [false; 2], ALL);
    check("sleep 60 & kill $!", [true; 2], ALL);
    check("setsid true", [true, false], ALL);
    // Each wall alone.
    check(&script, [false; 2], KernelSupport { landlock: 0, has_filters: true });
    check(&script, [false; 2], KernelSupport { landlock: 6, has_filters: false });
}

#[test]
fn what_a_kernel_has_is_in_force_without_the_rest() {
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
    assert!(of(IsolationLevel::Strict, 42)[1].len() > standard[1].len());
    assert_ne!(of(IsolationLevel::Standard, 43)[1], standard[1]);
    // The kernel takes no longer ones.
    assert!(standard.iter().all(|filter| filter.len() < 4096));
}
