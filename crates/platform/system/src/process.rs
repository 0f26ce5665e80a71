//! Metrics of processes.

use std::{ffi::CStr, fs, sync::OnceLock};

use crate::machine::kib_of;

/// The moment of the machine's start. The file that has it is long where there are many processors, so it is read once.
static BOOTED: OnceLock<Option<u64>> = OnceLock::new();

/// The metrics of this process. Its children are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessFigures {
    /// User and system time, in seconds.
    pub cpu_seconds: Option<f64>,
    /// The moment of its start, in seconds since 1970.
    pub start_seconds: Option<f64>,
    /// Bytes in the machine's memory.
    pub resident_bytes: Option<u64>,
    /// Bytes of its address space in use.
    pub virtual_bytes: Option<u64>,
    /// Open descriptors of files.
    pub open_files: Option<u64>,
    /// Most descriptors that it may have open.
    pub most_open_files: Option<u64>,
}

impl ProcessFigures {
    /// Reads the current values.
    pub fn read() -> Self {
        let mut figures = Self {
            open_files: open_files(),
            most_open_files: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            ..Self::default()
        };
        let stat = fs::read_to_string("/proc/self/stat").ok();
        if let Some(stat) = stat.as_deref().and_then(Stat::parse) {
            let ticks = rustix::param::clock_ticks_per_second() as f64;
            let booted = *BOOTED.get_or_init(|| boot_time(&fs::read_to_string("/proc/stat").ok()?));
            figures.cpu_seconds = Some(stat.cpu_ticks as f64 / ticks);
            figures.start_seconds =
                booted.map(|booted| booted as f64 + stat.start_ticks as f64 / ticks);
            let page = rustix::param::page_size() as u64;
            figures.resident_bytes = Some(stat.resident_pages.saturating_mul(page));
            figures.virtual_bytes = Some(stat.virtual_bytes);
        }
        figures
    }
}

/// Returns the bytes of another process in the machine's memory.
pub fn resident_bytes_of(process: u32) -> Option<u64> {
    kib_of(&fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS:")
}

/// Sets an environment variable, unless it is set already or this process has threads that could read it meanwhile.
pub fn set_variable_while_alone(name: &CStr, value: &CStr) {
    const KEEP: i32 = 0;
    if has_one_thread() {
        // SAFETY: both texts are terminated, and no thread reads the environment meanwhile, as the caller is the only one
        // that could.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), KEEP) };
    }
}

/// Returns true if this process has one thread, besides one of the allocator, which does not read the environment.
fn has_one_thread() -> bool {
    fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() <= 2)
}

/// Counts descriptors. Since Linux 6.2 the size of the folder is their number; on older kernels its entries are counted.
fn open_files() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    match fs::metadata(FOLDER).ok()?.len() {
        0 => fs::read_dir(FOLDER).ok().map(|entries| entries.count() as u64),
        number => Some(number),
    }
}

/// The fields of `/proc/self/stat` (proc(5)) that are shown.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    /// Parses a line. The name of the program, in parentheses, may contain any text.
    fn parse(stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(") ")?;
        // Field 3 follows the name.
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)?.saturating_add(field(15)?),
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// Returns the seconds since the epoch, from `/proc/stat`.
fn boot_time(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_is_parsed() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 3 4 20 0 5 0 1234 4096000 77 18446744073709551615";
        let expected = Stat {
            cpu_ticks: 300,
            start_ticks: 1234,
            virtual_bytes: 4_096_000,
            resident_pages: 77,
        };
        assert_eq!(Stat::parse(stat), Some(expected));
        assert_eq!(Stat::parse("7 (a) S"), None);
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000));
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(resident_bytes_of(std::process::id()).is_some_and(|bytes| bytes > 1 << 20));
    }
}
