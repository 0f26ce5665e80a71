//! The system calls that a worker is refused, as filters of seccomp.
//!
//! A call is refused with an error and never ends the process, so that a library that only tries goes on.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::IsolationLevel;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused whatever their arguments are.
const REFUSED: &[i64] = &[
    // Memory and descriptors of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The tree of files; a handle opens a file without its path.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // The kernel: other ones, parts of it, programs in it, its keys, and calls that have often been its weak point.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_syslog,
    // A ring makes calls that no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Refused at the strict level, too.
const REFUSED_STRICTLY: &[i64] = &[
    // Also of local sockets: behind some of them are programs that do what they are told.
    libc::SYS_connect,
    // Modes, owners, times and attributes, which Landlock leaves alone whatever file it is.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    // Memory and queues that have numbers or names for all processes.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    // What leaves the worker's group does not end with it.
    libc::SYS_setsid,
    libc::SYS_setpgid,
];

/// The same on every architecture, and newer than the tables of some systems.
const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

#[cfg(target_arch = "x86_64")]
const REFUSED_STRICTLY_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_STRICTLY_HERE: &[i64] = &[];

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

/// Calls whose first argument is a process, which must not be the server.
const ABOUT_A_PROCESS: [i64; 6] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// Requests of `ioctl` that type into a terminal.
const TYPES_INTO_TERMINAL: [u64; 2] = [libc::TIOCSTI, 0x541C];

/// The process that started a worker, and its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub process: u32,
    pub group: u32,
}

/// The filters of a level, for a worker of `server`.
pub(super) fn filters(level: IsolationLevel, server: Server) -> io::Result<Vec<BpfProgram>> {
    // Its flags lie in memory, where no filter sees them. Libraries that find no such call use `clone`.
    let absent = Rules::from([(libc::SYS_clone3, Vec::new())]);
    let mut absent = compiled(absent, libc::ENOSYS)?;
    absent.splice(0..0, without_other_numbers());
    Ok(vec![absent, compiled(refused(level, server)?, libc::EPERM)?])
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
    for call in ABOUT_A_PROCESS {
        refuse(call, condition(0, SeccompCmpOp::Eq, server.process.into()))?;
    }
    // To every process there is, which is -1, and to the server's group.
    for group in [1, server.group] {
        let negative = group.wrapping_neg().into();
        refuse(libc::SYS_kill, condition(0, SeccompCmpOp::Eq, negative))?;
    }
    // Limits of other processes, which threads stand for too: only those of the caller.
    refuse(libc::SYS_prlimit64, condition(0, SeccompCmpOp::Ne, 0))?;
    for request in TYPES_INTO_TERMINAL {
        refuse(libc::SYS_ioctl, condition(1, SeccompCmpOp::Eq, request))?;
    }
    if level == IsolationLevel::Strict {
        let local = libc::AF_UNIX.cast_unsigned().into();
        refuse(libc::SYS_socket, condition(0, SeccompCmpOp::Ne, local))?;
        let all = REFUSED_STRICTLY.iter().chain(REFUSED_STRICTLY_HERE);
        rules.extend(all.map(|&call| (call, Vec::new())));
    }
    Ok(rules)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, Dword, operator, value).map_err(io::Error::other)
}

/// A program of the kernel's filter machine: what matches is refused with `errno`, all else is allowed.
fn compiled(rules: Rules, errno: i32) -> io::Result<BpfProgram> {
    let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let refusal = SeccompAction::Errno(errno.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch);
    filter.and_then(TryInto::try_into).map_err(io::Error::other)
}

/// On x86-64 every call has a second number (that of the x32 interface), which rules do not know: there are no such calls.
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
