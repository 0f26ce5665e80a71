//! Starts, watches and ends a worker's process.

use std::{
    fmt, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio},
    sync::Mutex,
};

use galatea_types::LockExt as _;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};

use crate::{
    program::Program,
    sandbox::{Barriers, KernelSupport},
};

pub(crate) struct OutputPipes {
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// A started process, in a process group of its own.
pub struct Process {
    pid: Pid,
    descriptor: OwnedFd,
    state: Mutex<State>,
}

enum State {
    Running(Child),
    Ended(ExitStatus),
}

impl Process {
    /// Starts the program. `descriptors`: the worker's ends: commands, events, inbox, outbox. The kernel kills the process
    /// when the calling thread ends.
    pub(crate) fn start(
        program: &Program,
        descriptors: [BorrowedFd<'_>; 4],
    ) -> io::Result<(Self, OutputPipes)> {
        let passed = descriptors.map(|d| d.as_raw_fd());
        let server = rustix::process::getpid();
        let mut command = Command::new(&program.path);
        if !program.inherits_variables {
            command.env_clear();
        }
        // Removed before the program's own variables are set, which may have the same names.
        for name in &program.withheld_variables {
            command.env_remove(name);
        }
        let memory_limit = program.memory_limit;
        let sandbox = program.sandbox.as_ref();
        let barriers = sandbox.map(|s| s.prepare(KernelSupport::detect())).transpose()?;
        command
            .args(&program.arguments)
            .args(passed.map(|d| d.to_string()))
            .envs(program.variables.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: the closure only makes system calls, which is allowed between fork and exec.
        unsafe {
            command.pre_exec(move || prepare(server, passed, memory_limit, barriers.as_ref()))
        };
        let mut child = command.spawn()?;
        match Self::watch(&mut child) {
            Ok((descriptor, output)) => {
                let (pid, state) = (Pid::from_child(&child), Mutex::new(State::Running(child)));
                Ok((Self { pid, descriptor, state }, output))
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn watch(child: &mut Child) -> io::Result<(OwnedFd, OutputPipes)> {
        // Not reaped yet, so the process id still means this process.
        let descriptor = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let (stdout, stderr) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        for pipe in [stdout.as_fd(), stderr.as_fd()] {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok((descriptor, OutputPipes { stdout, stderr }))
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Kills the rest of the process and its group, and reaps it. Returns how it ended.
    pub(crate) fn end(&self) -> Option<ExitReason> {
        let mut state = self.state.lock_unpoisoned();
        if let State::Running(child) = &mut *state {
            // Before it is reaped: until then the kernel gives its id, which is the group's, to no other process.
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
            let status = child.wait().ok()?;
            *state = State::Ended(status);
        }
        match &*state {
            State::Ended(status) => Some(ExitReason(*status)),
            State::Running(_) => None,
        }
    }
}

/// The descriptor becomes readable once the process has ended.
impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs in the child before it becomes the program.
fn prepare(
    server: Pid,
    passed: [RawFd; 4],
    memory_limit: Option<u64>,
    barriers: Option<&Barriers>,
) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(server) {
        // The server died before the signal was set.
        return Err(io::Error::from(io::ErrorKind::NotConnected));
    }
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: marks descriptors only. Kernels before 5.11 refuse. Then a descriptor that a library opened without the mark
    // stays open in the worker, no worse than before.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, flags) };
    for descriptor in passed {
        // SAFETY: clears the mark of a descriptor that is ours.
        if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if let Some(bytes) = memory_limit {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        rustix::process::setrlimit(Resource::Data, limit)?;
    }
    barriers.map_or(Ok(()), Barriers::raise)
}

/// The end of a process, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitReason(ExitStatus);

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => {
                write!(f, "was ended by signal {signal}")?;
                name_of(signal).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
            (None, None) => f.write_str("ended"),
        }
    }
}

fn name_of(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGKILL => "SIGKILL: killed, perhaps because memory ran out",
        libc::SIGSEGV => "SIGSEGV: it accessed invalid memory",
        libc::SIGABRT => "SIGABRT: it aborted",
        libc::SIGTERM => "SIGTERM",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGINT => "SIGINT",
        _ => return None,
    })
}
