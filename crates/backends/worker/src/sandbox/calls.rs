//! The numbers of the system calls that a worker may make, and of those that are refused.
//!
//! The kernel answers a call that is not allowed as unknown, so that a library falls back to an older one. The allowed calls
//! are those that interpreters, native libraries and shells use. A call of a later kernel is left out until somebody has
//! examined it.

use libc::*;

use super::IsolationLevel;

/// A list of calls by their names, several on a line.
macro_rules! calls {
    ($($call:ident)*) => { &[$($call),*] };
}

// The numbers are the same on every architecture. These calls are newer than the tables of some systems.
const SYS_CACHESTAT: i64 = 451;
const SYS_FCHMODAT2: i64 = 452;
const SYS_MAP_SHADOW_STACK: i64 = 453;
const SYS_FUTEX_WAKE: i64 = 454;
const SYS_FUTEX_WAIT: i64 = 455;
const SYS_FUTEX_REQUEUE: i64 = 456;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

/// Calls allowed at every level, on every architecture.
const ALLOWED: &[i64] = calls! {
    // Files and folders, which Landlock decides on.
    SYS_chdir SYS_close SYS_close_range SYS_copy_file_range SYS_dup SYS_dup3 SYS_faccessat SYS_faccessat2 SYS_fadvise64
    SYS_fallocate SYS_fchdir SYS_fcntl SYS_fdatasync SYS_fgetxattr SYS_flistxattr SYS_flock SYS_fstat SYS_fstatfs
    SYS_fsync SYS_ftruncate SYS_getcwd SYS_getdents64 SYS_getxattr SYS_inotify_add_watch SYS_inotify_init1
    SYS_inotify_rm_watch SYS_io_cancel SYS_io_destroy SYS_io_getevents SYS_io_setup SYS_io_submit SYS_ioctl
    SYS_lgetxattr SYS_linkat SYS_listxattr SYS_llistxattr SYS_lseek SYS_mkdirat SYS_mknodat SYS_newfstatat SYS_openat
    SYS_openat2 SYS_pipe2 SYS_pread64 SYS_preadv SYS_preadv2 SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_read
    SYS_readahead SYS_readlinkat SYS_readv SYS_renameat SYS_renameat2 SYS_sendfile SYS_splice SYS_statfs SYS_statx
    SYS_symlinkat SYS_sync_file_range SYS_syncfs SYS_tee SYS_truncate SYS_umask SYS_unlinkat SYS_vmsplice SYS_write
    SYS_writev SYS_CACHESTAT
    // Waiting.
    SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait
    SYS_epoll_pwait2 SYS_eventfd2 SYS_futex SYS_futex_waitv SYS_getitimer SYS_gettimeofday SYS_nanosleep SYS_ppoll
    SYS_pselect6 SYS_setitimer SYS_timer_create SYS_timer_delete SYS_timer_getoverrun SYS_timer_gettime
    SYS_timer_settime SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime SYS_FUTEX_WAKE SYS_FUTEX_WAIT
    SYS_FUTEX_REQUEUE
    // Memory of its own.
    SYS_brk SYS_get_mempolicy SYS_madvise SYS_mbind SYS_membarrier SYS_memfd_create SYS_memfd_secret SYS_mincore
    SYS_mlock SYS_mlock2 SYS_mlockall SYS_mmap SYS_move_pages SYS_mprotect SYS_mremap SYS_mseal SYS_msync SYS_munlock
    SYS_munlockall SYS_munmap SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_remap_file_pages SYS_set_mempolicy
    SYS_set_mempolicy_home_node SYS_MAP_SHADOW_STACK
    // Processes and threads; some of these only about the caller.
    SYS_capget SYS_capset SYS_clone SYS_clone3 SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_get_robust_list
    SYS_getcpu SYS_getegid SYS_geteuid SYS_getgid SYS_getgroups SYS_getpgid SYS_getpid SYS_getppid SYS_getpriority
    SYS_getrandom SYS_getresgid SYS_getresuid SYS_getrusage SYS_getsid SYS_gettid SYS_getuid SYS_ioprio_get
    SYS_ioprio_set SYS_kill SYS_landlock_add_rule SYS_landlock_create_ruleset SYS_landlock_restrict_self SYS_pidfd_open
    SYS_prctl SYS_prlimit64 SYS_restart_syscall SYS_rseq SYS_rt_sigaction SYS_rt_sigpending SYS_rt_sigprocmask
    SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo
    SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam
    SYS_sched_getscheduler SYS_sched_rr_get_interval SYS_sched_setaffinity SYS_sched_setattr SYS_sched_setparam
    SYS_sched_setscheduler SYS_sched_yield SYS_seccomp SYS_set_robust_list SYS_set_tid_address SYS_setfsgid SYS_setfsuid
    SYS_setgid SYS_setgroups SYS_setpriority SYS_setregid SYS_setresgid SYS_setresuid SYS_setreuid SYS_setuid
    SYS_sigaltstack SYS_signalfd4 SYS_sysinfo SYS_tgkill SYS_times SYS_tkill SYS_uname SYS_wait4 SYS_waitid
    // Sockets.
    SYS_accept SYS_accept4 SYS_bind SYS_getpeername SYS_getsockname SYS_getsockopt SYS_listen SYS_recvfrom SYS_recvmmsg
    SYS_recvmsg SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_setsockopt SYS_shutdown SYS_socket SYS_socketpair
};

/// Older forms of the calls above.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = calls! {
    SYS_access SYS_alarm SYS_arch_prctl SYS_creat SYS_dup2 SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_fork
    SYS_get_thread_area SYS_getdents SYS_getpgrp SYS_getrlimit SYS_inotify_init SYS_link SYS_lstat SYS_mkdir SYS_mknod
    SYS_open SYS_pause SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_rmdir SYS_select SYS_set_thread_area SYS_setrlimit
    SYS_signalfd SYS_stat SYS_symlink SYS_time SYS_unlink SYS_vfork
};
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];

/// Calls allowed, but not at the strict level.
const ALLOWED_AT_STANDARD: &[i64] = calls! {
    SYS_connect SYS_fchmod SYS_fchmodat SYS_FCHMODAT2 SYS_fchown SYS_fchownat SYS_fremovexattr SYS_fsetxattr
    SYS_lremovexattr SYS_lsetxattr SYS_mq_getsetattr SYS_mq_notify SYS_mq_open SYS_mq_timedreceive SYS_mq_timedsend
    SYS_mq_unlink SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_removexattr SYS_semctl SYS_semget SYS_semop
    SYS_semtimedop SYS_setpgid SYS_setsid SYS_setxattr SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget SYS_utimensat
};

/// Older forms of the calls above.
#[cfg(target_arch = "x86_64")]
const ALLOWED_AT_STANDARD_HERE: &[i64] = calls! {
    SYS_chmod SYS_chown SYS_futimesat SYS_lchown SYS_utime SYS_utimes
};
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_AT_STANDARD_HERE: &[i64] = &[];

/// Calls refused whatever their arguments are, with the error that libraries expect of these.
pub(super) const REFUSED: &[i64] = calls! {
    // Memory and descriptors of other processes.
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_pidfd_getfd SYS_kcmp
    // The tree of files; a handle opens a file without its path.
    SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_move_mount SYS_open_tree SYS_mount_setattr SYS_fsopen
    SYS_fsconfig SYS_fsmount SYS_fspick SYS_open_by_handle_at SYS_fanotify_init SYS_quotactl SYS_quotactl_fd
    // Namespaces.
    SYS_unshare SYS_setns
    // The kernel: other ones, parts of it, programs in it, its keys, and calls with a history of vulnerabilities.
    SYS_kexec_load SYS_init_module SYS_finit_module SYS_delete_module SYS_bpf SYS_perf_event_open SYS_userfaultfd
    SYS_add_key SYS_request_key SYS_keyctl SYS_syslog
    // A ring makes calls that no filter sees.
    SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
    // The machine.
    SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_settimeofday SYS_clock_settime SYS_sethostname SYS_setdomainname
    SYS_vhangup
};

/// Refused as the calls above.
#[cfg(target_arch = "x86_64")]
pub(super) const REFUSED_HERE: &[i64] = calls! {
    SYS_iopl SYS_ioperm SYS_kexec_file_load
};
#[cfg(not(target_arch = "x86_64"))]
pub(super) const REFUSED_HERE: &[i64] = &[];

/// Calls refused at the strict level, too.
pub(super) const REFUSED_STRICTLY: &[i64] = calls! {
    // Local sockets too: some of them lead to programs that do as they are told.
    SYS_connect
    // Modes, owners, times and attributes, which Landlock leaves alone whatever file it is.
    SYS_fchmod SYS_fchmodat SYS_FCHMODAT2 SYS_fchown SYS_fchownat SYS_utimensat SYS_setxattr SYS_lsetxattr SYS_fsetxattr
    SYS_removexattr SYS_lremovexattr SYS_fremovexattr SYS_SETXATTRAT SYS_REMOVEXATTRAT SYS_FILE_SETATTR
    // Memory and queues that have numbers or names for all processes.
    SYS_shmget SYS_shmat SYS_semget SYS_msgget SYS_mq_open
    // A process that leaves the worker's group does not end with it.
    SYS_setsid SYS_setpgid
};

/// Refused as the calls above.
#[cfg(target_arch = "x86_64")]
pub(super) const REFUSED_STRICTLY_HERE: &[i64] = calls! {
    SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat
};
#[cfg(not(target_arch = "x86_64"))]
pub(super) const REFUSED_STRICTLY_HERE: &[i64] = &[];

/// Calls whose first argument is a process, which must not be the server.
pub(super) const ABOUT_A_PROCESS: &[i64] = calls! {
    SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_pidfd_open
};

/// Calls whose first argument is the thread whose priority or processors change; 0 is the caller. The kernel lets a process
/// change all other processes of its user.
pub(super) const ABOUT_A_TURN: &[i64] = calls! {
    SYS_sched_setaffinity SYS_sched_setattr SYS_sched_setparam SYS_sched_setscheduler SYS_move_pages
};

/// Returns the calls of a level. Further rules check the arguments of some.
pub(super) fn allowed(level: IsolationLevel) -> impl Iterator<Item = i64> {
    let [more, more_here] = match level {
        IsolationLevel::Strict => [&[][..], &[]],
        _ => [ALLOWED_AT_STANDARD, ALLOWED_AT_STANDARD_HERE],
    };
    [ALLOWED, ALLOWED_HERE, more, more_here].into_iter().flatten().copied()
}
