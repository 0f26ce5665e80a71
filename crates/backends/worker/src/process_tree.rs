//! The memory of a process and of all its descendants.

use std::fs;

/// Most processes that are counted: a model that starts more has other troubles.
const MOST_PROCESSES: usize = 256;

/// Returns the bytes of memory that the process `pid` and its descendants take. A page that several share counts to each in
/// part. Processes that ended meanwhile count nothing.
pub(crate) fn memory_of_tree(pid: u32) -> u64 {
    let (mut left, mut seen, mut bytes) = (vec![pid], 0, 0_u64);
    while let Some(next) = left.pop() {
        if seen == MOST_PROCESSES {
            break;
        }
        seen += 1;
        bytes = bytes.saturating_add(memory_of(next));
        left.extend(children_of(next));
    }
    bytes
}

fn memory_of(pid: u32) -> u64 {
    let in_file = |file: &str, field: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    let kilobytes = in_file("smaps_rollup", "Pss:").or_else(|| in_file("status", "VmRSS:"));
    kilobytes.unwrap_or(0).saturating_mul(1024)
}

fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        text.split_whitespace().filter_map(|number| number.parse().ok()).collect::<Vec<u32>>()
    };
    threads.flatten().flat_map(of_thread).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn child_processes_count_to_their_parent() {
        let script = "import subprocess, sys\n\
                      held = b'x' * (32 << 20)\n\
                      print('ready', flush=True)\n\
                      sys.stdin.read()";
        // The shell waits for the interpreter, which holds the memory.
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "python3 -c \"$0\"; true", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let output = shell.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        let bytes = memory_of_tree(shell.id());
        assert!(bytes > 32 << 20, "{bytes}");
        drop(shell.stdin.take());
        shell.wait().expect("ended");
        assert_eq!(memory_of_tree(shell.id()), 0);
    }
}
