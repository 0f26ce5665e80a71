//! Seccomp filters: the system calls that a worker may make, and those that are refused.
//!
//! A refused call returns an error and never ends the process, so that a library that only tries it continues.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::{
    IsolationLevel,
    calls::{
        ABOUT_A_PROCESS, ABOUT_A_TURN, REFUSED, REFUSED_HERE, REFUSED_STRICTLY,
        REFUSED_STRICTLY_HERE, allowed,
    },
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Flags of `clone` that make namespaces. `unshare` is refused as a whole.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Calls that change a priority, with the kind of target that means the caller when the second argument is 0.
const ABOUT_A_PRIORITY: [(i64, u64); 2] =
    [(libc::SYS_setpriority, PRIO_PROCESS), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];
const PRIO_PROCESS: u64 = 0;
const IOPRIO_WHO_PROCESS: u64 = 1;

/// Option of `prctl` that shares a core with another process, or takes it away.
const PR_SCHED_CORE: u64 = 62;

/// Kinds of sockets that send to any address without `connect`. The kernel takes the second for the first.
const SENDS_ANYWHERE: [u64; 2] = [2, 3];
/// Bits of the argument that hold the kind.
const KIND_OF_SOCKET: u64 = 0xF;

/// Requests of `ioctl` that type into a terminal.
const TYPES_INTO_TERMINAL: [u64; 2] = [libc::TIOCSTI, 0x541C];

/// The process that started a worker, and its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub process: u32,
    pub group: u32,
}

/// Builds the filters of a level, for a worker of `server`.
pub(super) fn filters(level: IsolationLevel, server: Server) -> io::Result<Vec<BpfProgram>> {
    // The flags of `clone3` lie in memory, where no filter sees them. Libraries that find no such call use `clone`.
    let absent = Rules::from([(libc::SYS_clone3, Vec::new())]);
    let mut absent = compiled(absent, libc::ENOSYS)?;
    absent.splice(0..0, without_other_numbers());
    // If several filters refuse a call, the error of the filter installed last counts.
    Ok(vec![others(level)?, absent, compiled(refused(level, server)?, libc::EPERM)?])
}

fn refused(level: IsolationLevel, server: Server) -> io::Result<Rules> {
    let all = REFUSED.iter().chain(REFUSED_HERE);
    let mut rules: Rules = all.map(|&call| (call, Vec::new())).collect();
    let mut refuse = |call, condition: io::Result<SeccompCondition>| -> io::Result<()> {
        let rule = SeccompRule::new(vec![condition?]).map_err(io::Error::other)?;
        rules.entry(call).or_default().push(rule);
        Ok(())
    };
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        refuse(libc::SYS_clone, condition(0, SeccompCmpOp::MaskedEq(flag), flag))?;
    }
    for &call in ABOUT_A_PROCESS {
        refuse(call, condition(0, SeccompCmpOp::Eq, server.process.into()))?;
    }
    // Targets: every process, which is -1, and the server's group.
    for group in [1, server.group] {
        let negative = group.wrapping_neg().into();
        refuse(libc::SYS_kill, condition(0, SeccompCmpOp::Eq, negative))?;
    }
    // Limits of other processes and threads: only the caller's own are allowed.
    refuse(libc::SYS_prlimit64, condition(0, SeccompCmpOp::Ne, 0))?;
    for &call in ABOUT_A_TURN {
        refuse(call, condition(0, SeccompCmpOp::Ne, 0))?;
    }
    for (call, of_one) in ABOUT_A_PRIORITY {
        refuse(call, condition(0, SeccompCmpOp::Ne, of_one))?;
        refuse(call, condition(1, SeccompCmpOp::Ne, 0))?;
    }
    refuse(libc::SYS_prctl, condition(0, SeccompCmpOp::Eq, PR_SCHED_CORE))?;
    for request in TYPES_INTO_TERMINAL {
        refuse(libc::SYS_ioctl, condition(1, SeccompCmpOp::Eq, request))?;
    }
    if level == IsolationLevel::Strict {
        let local = libc::AF_UNIX.cast_unsigned().into();
        refuse(libc::SYS_socket, condition(0, SeccompCmpOp::Ne, local))?;
        for kind in SENDS_ANYWHERE {
            let sends_anywhere = SeccompCmpOp::MaskedEq(KIND_OF_SOCKET);
            refuse(libc::SYS_socket, condition(1, sends_anywhere.clone(), kind))?;
            refuse(libc::SYS_socketpair, condition(1, sends_anywhere, kind))?;
        }
        let all = REFUSED_STRICTLY.iter().chain(REFUSED_STRICTLY_HERE);
        rules.extend(all.map(|&call| (call, Vec::new())));
    }
    Ok(rules)
}

/// Makes every call outside the list fail as unknown (`ENOSYS`).
fn others(level: IsolationLevel) -> io::Result<BpfProgram> {
    let rules = allowed(level).map(|call| (call, Vec::new())).collect();
    filter(rules, SeccompAction::Errno(libc::ENOSYS.cast_unsigned()), SeccompAction::Allow)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, Dword, operator, value).map_err(io::Error::other)
}

/// Compiles a program for the kernel's filter machine: matching calls fail with `errno`, all others are allowed.
fn compiled(rules: Rules, errno: i32) -> io::Result<BpfProgram> {
    filter(rules, SeccompAction::Allow, SeccompAction::Errno(errno.cast_unsigned()))
}

fn filter(
    rules: Rules,
    otherwise: SeccompAction,
    matching: SeccompAction,
) -> io::Result<BpfProgram> {
    let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, otherwise, matching, arch);
    filter.and_then(TryInto::try_into).map_err(io::Error::other)
}

/// Refuses the second number that every call has on x86-64 (that of the x32 interface), which rules do not know.
#[cfg(target_arch = "x86_64")]
fn without_other_numbers() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let instruction = |code, jf, k| seccompiler::sock_filter { code, jt: 0, jf, k };
    vec![
        instruction(LOAD_WORD, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 1, X32),
        instruction(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn without_other_numbers() -> BpfProgram {
    BpfProgram::new()
}
