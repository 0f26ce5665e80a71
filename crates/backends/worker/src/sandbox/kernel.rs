//! The running kernel's means to confine processes.

use super::IsolationLevel;

/// The isolation features of the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSupport {
    /// Version of Landlock; 0: there is none.
    pub(super) landlock: u32,
    /// True if system calls can be filtered (seccomp).
    pub(super) has_filters: bool,
}

/// Versions of Landlock that first cover these operations.
const TRUNCATION: u32 = 3;
pub(super) const TCP: u32 = 4;
const SIGNALS: u32 = 6;

/// Flag of `landlock_create_ruleset` that asks for the version.
const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;

impl KernelSupport {
    /// Asks the kernel for its features.
    pub fn detect() -> Self {
        Self { landlock: landlock_version(), has_filters: has_filters() }
    }

    /// Lists the parts of a level that are not in force, for the log. Empty: all parts are.
    pub fn gaps(self, level: IsolationLevel) -> Vec<&'static str> {
        let Self { landlock, has_filters } = self;
        let is_strict = level == IsolationLevel::Strict;
        let all = [
            (
                landlock == 0,
                "without Landlock, models can read and change every file that the server's user can",
            ),
            (
                landlock == 0 && !has_filters,
                "without Landlock and seccomp, models can trace and signal the server and other processes of its user",
            ),
            (
                (1..TRUNCATION).contains(&landlock),
                "Landlock of this kernel does not keep files from being truncated",
            ),
            (
                landlock < SIGNALS && has_filters,
                "Landlock of this kernel does not cover signals: only those to the server are refused, those to other \
                 processes of its user are not",
            ),
            (
                (1..SIGNALS).contains(&landlock) && !has_filters,
                "neither Landlock of this kernel nor seccomp refuses signals to other processes",
            ),
            (
                !has_filters,
                "without seccomp, system calls that administer the machine are not refused",
            ),
            (
                is_strict && !has_filters && landlock < TCP,
                "without seccomp, models can reach the network",
            ),
            (
                is_strict && !has_filters && landlock >= TCP,
                "without seccomp, only TCP is refused, not the rest of the network",
            ),
        ];
        all.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, gap)| gap).collect()
    }
}

fn landlock_version() -> u32 {
    let flags = LANDLOCK_CREATE_RULESET_VERSION;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag nothing is read from memory and nothing is made.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, flags) };
    u32::try_from(version).unwrap_or(0)
}

fn has_filters() -> bool {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    let asks = libc::SECCOMP_GET_ACTION_AVAIL;
    // SAFETY: reads the action only.
    unsafe { libc::syscall(libc::SYS_seccomp, asks, 0, &raw const action) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(landlock: u32, has_filters: bool, level: IsolationLevel) -> String {
        KernelSupport { landlock, has_filters }.gaps(level).join("; ")
    }

    #[test]
    fn missing_kernel_features_are_named() {
        for level in [IsolationLevel::Standard, IsolationLevel::Strict] {
            assert_eq!(gaps(6, true, level), "");
            assert!(gaps(0, true, level).contains("without Landlock, models can read and change"));
            assert!(gaps(5, true, level).contains("signals"));
            assert!(gaps(2, true, level).contains("truncated"));
            assert!(gaps(7, false, level).contains("system calls"));
            assert!(gaps(0, false, level).contains("trace and signal"));
        }
        assert!(gaps(3, false, IsolationLevel::Strict).contains("reach the network"));
        assert!(gaps(7, false, IsolationLevel::Strict).contains("only TCP"));
        assert!(!gaps(7, false, IsolationLevel::Standard).contains("TCP"));
    }
}
