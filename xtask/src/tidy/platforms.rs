//! Code for one operating system is only in `crates/platform`, so that every other crate compiles on others.

use super::{
    absent,
    source::{SourceFile, Workspace},
};

/// Crates that may depend on the operating system. `worker` is a protocol between processes with descriptors that only Linux has:
/// sealed memory, sockets for packets, processes as descriptors.
const HOMES: [&str; 2] = ["crates/platform/", "crates/backends/worker"];

/// Tokens that name the system, and calls of rustix that other systems lack.
const WORDS: [&[&str]; 14] = [
    &["target_os"],
    &["os", ":", ":", "linux"],
    &["libc"],
    &["memfd_create"],
    &["pidfd_open"],
    &["timerfd_create"],
    &["eventfd"],
    &["epoll"],
    &["inotify"],
    &["set_parent_process_death_signal"],
    &["set_no_new_privs"],
    &["sched_setaffinity"],
    &["SEQPACKET"],
    &["accept4"],
];

/// Prefixes of texts that are paths of Linux.
const PATHS: [&str; 2] = ["\"/proc/", "\"/sys/"];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_home = |file: &SourceFile| HOMES.iter().any(|home| file.path.starts_with(home));
    let files = workspace.rust().filter(|file| file.path.starts_with("crates/"));
    let files = files.filter(|file| file.is_in_src() && !is_home(file));
    files.filter(|file| !absent::is_test(workspace, file)).flat_map(file_faults).collect()
}

fn file_faults(file: &SourceFile) -> Vec<String> {
    let words = WORDS.iter().filter(|words| file.has_tokens_outside_tests(words));
    let words = words.map(|words| words.concat());
    let paths = PATHS.iter().filter(|path| file.before_tests().contains(**path));
    let paths = paths.map(|path| path.trim_matches('"').to_owned());
    words
        .chain(paths)
        .map(|found| format!("{}: {found} belongs in a crate of crates/platform", file.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn only_platform_crates_use_system_apis() {
        const LINUX: &str = "fn f() { read(\"/proc/self/stat\"); rustix::event::eventfd() }";
        let found = faults(&made_up(&[
            ("crates/core/src/lib.rs", LINUX),
            ("crates/platform/src/lib.rs", LINUX),
            ("crates/words/src/lib.rs", "// libc, \nfn f() { g(\"libc\") }"),
            ("crates/tested/src/lib.rs", "\n#[cfg(test)]\nmod tests {\n    use libc::c_int;\n}"),
        ]));
        assert_eq!(
            found,
            [
                "crates/core/src/lib.rs: eventfd belongs in a crate of crates/platform",
                "crates/core/src/lib.rs: /proc/ belongs in a crate of crates/platform",
            ]
        );
    }
}
