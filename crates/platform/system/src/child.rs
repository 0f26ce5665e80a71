//! Child processes of this one.

use std::{ffi::OsString, fs, process::Command};

/// Makes the kernel kill the command's process when the thread that started it ends. Systems other than Linux have no such
/// call.
pub fn end_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;

        use rustix::process::{Signal, set_parent_process_death_signal};

        // SAFETY: between fork and exec only `prctl` runs, which is a bare system call.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Names this process, and sets how early the kernel ends it when memory runs out (-1000 to 1000). Both help whoever looks
/// after the machine, so failures are ignored.
pub fn mark_process(name: &str, oom_score: &str) {
    let _ = fs::write("/proc/self/comm", name);
    let _ = fs::write("/proc/self/oom_score_adj", oom_score);
}

/// Returns the path of the running program: on Linux the program itself, even after its file was replaced.
pub fn own_program() -> OsString {
    const LINK: &str = "/proc/self/exe";
    match cfg!(target_os = "linux") {
        true => LINK.into(),
        false => std::env::current_exe().map_or_else(|_| LINK.into(), Into::into),
    }
}
