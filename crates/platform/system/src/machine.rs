//! Processors and memory of the machine.

use std::{collections::HashSet, fs};

/// Clock ticks of all cores since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    busy: u64,
    total: u64,
}

impl CpuTimes {
    /// Reads the current times.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line of `/proc/stat`: `cpu user nice system idle iowait irq softirq steal guest guest_nice`
    /// (proc(5)). The guest times are contained in user and nice.
    fn parse(stat: &str) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            fields.split_whitespace().take(8).map_while(|t| t.parse().ok()).collect();
        let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
        let total: u64 = ticks.iter().sum();
        Some(Self { busy: total - idle, total })
    }

    /// Returns the share of the time since `earlier` in which cores were busy, 0 to 1.
    pub fn busy_share_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 {
            return 0.0;
        }
        let busy = self.busy.saturating_sub(earlier.busy).min(total);
        busy as f64 / total as f64
    }
}

/// The memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMemory {
    /// All of the memory.
    pub total: u64,
    /// The part that is not available to new programs.
    pub used: u64,
}

impl MachineMemory {
    /// Reads the current values.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/meminfo").ok()?)
    }

    fn parse(meminfo: &str) -> Option<Self> {
        let (total, available) = (kib_of(meminfo, "MemTotal:")?, kib_of(meminfo, "MemAvailable:")?);
        Some(Self { total, used: total.saturating_sub(available) })
    }
}

/// Returns the number behind `name` in a file of `/proc` whose lines end with `kB`, in bytes.
pub(crate) fn kib_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Counts the cores of the machine: hyper-threads of one core count once.
pub fn physical_cores() -> Option<usize> {
    let mut cores = HashSet::new();
    for entry in fs::read_dir("/sys/devices/system/cpu").ok()?.flatten() {
        let topology = entry.path().join("topology");
        let package = fs::read_to_string(topology.join("physical_package_id"));
        let core = fs::read_to_string(topology.join("core_id"));
        if let (Ok(package), Ok(core)) = (package, core) {
            cores.insert((package, core));
        }
    }
    (!cores.is_empty()).then_some(cores.len())
}

/// Counts the processors of the machine that are online, even if this process may not use all.
pub fn online_processors() -> Option<usize> {
    count_of_ranges(fs::read_to_string("/sys/devices/system/cpu/online").ok()?.trim())
}

/// Counts the numbers in ranges: `0-3,8` has five.
fn count_of_ranges(text: &str) -> Option<usize> {
    let count = |range: &str| match range.split_once('-') {
        None => range.parse::<usize>().ok().map(|_| 1),
        Some((from, to)) => {
            let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
            to.checked_sub(from)?.checked_add(1)
        }
    };
    text.split(',').map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_are_parsed() {
        let before =
            CpuTimes::parse("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3\n").expect("parsed");
        assert_eq!(before, CpuTimes { busy: 150, total: 1000 });
        let after = CpuTimes::parse("cpu  150 0 50 840 60 0 0 0 9 0\n").expect("parsed");
        assert_eq!(after.busy_share_since(before), 0.5);
        assert_eq!(after.busy_share_since(after), 0.0);
        assert_eq!(CpuTimes::parse("intr 1"), None);
        assert_eq!(CpuTimes::parse(""), None);
    }

    #[test]
    fn memory_size_is_parsed() {
        let text = "MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   23860000 kB\n";
        let expected = MachineMemory { total: 25_276_502_016, used: 843_862_016 };
        assert_eq!(MachineMemory::parse(text), Some(expected));
        assert_eq!(MachineMemory::parse("MemTotal: 5 kB\n"), None);
    }

    #[test]
    fn processor_ranges_are_counted() {
        assert_eq!(count_of_ranges("0-3,8"), Some(5));
        assert_eq!(count_of_ranges("0"), Some(1));
        assert_eq!(count_of_ranges("3-1"), None);
    }
}
