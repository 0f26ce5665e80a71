//! The processors of the control group of this process: how many it may use, and how long it has used them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::machine::CpuTimes;

/// The use of processors by the control group of this process, workers included; by the whole machine if there is no group.
#[derive(Debug)]
pub struct GroupProcessors {
    places: Option<Places>,
}

/// The use of processors at one moment.
#[derive(Clone, Copy, Debug)]
pub enum ProcessorUse {
    /// The time that the group has used, and the processors that it may use at once.
    Group {
        /// The time of all processors together.
        used: Duration,
        /// The processors that it may use at once.
        processors: f64,
    },
    /// Those of the machine.
    Machine(CpuTimes),
}

impl ProcessorUse {
    /// Returns the used share since `earlier`, `elapsed` ago; it may exceed 1 a little. `None` if nothing can be said.
    pub fn share_since(self, earlier: Self, elapsed: Duration) -> Option<f64> {
        match (earlier, self) {
            (Self::Group { used: before, .. }, Self::Group { used, processors }) => {
                let could = elapsed.as_secs_f64() * processors;
                let share = used.saturating_sub(before).as_secs_f64() / could;
                share.is_finite().then_some(share)
            }
            (Self::Machine(before), Self::Machine(now)) => Some(now.busy_share_since(before)),
            _ => None,
        }
    }
}

impl GroupProcessors {
    /// Finds the group. A process rarely changes it, so it is looked up once.
    pub fn find() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let places = Places::of(&groups, &mounts).filter(|places| places.used().is_some());
        Self { places }
    }

    /// Reads the present use.
    pub fn read(&self) -> Option<ProcessorUse> {
        let of_group = self.places.as_ref().and_then(|places| {
            Some(ProcessorUse::Group { used: places.used()?, processors: places.processors() })
        });
        of_group.or_else(|| CpuTimes::read().map(ProcessorUse::Machine))
    }
}

/// The files of a group.
#[derive(Debug, PartialEq)]
struct Places {
    version: Version,
    /// The folder with the used time.
    used: PathBuf,
    /// The folders with limits, up to the mount: each limits the group.
    limits: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    One,
    Two,
}

impl Places {
    /// Returns the places by `/proc/self/cgroup` (`number:controllers:path`) and `/proc/self/mountinfo`. A group of version 1
    /// counts where there is one: version 2 then has no processors.
    fn of(groups: &str, mounts: &str) -> Option<Self> {
        let find = |controller: &str| {
            let path = groups.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|name| name == controller).then_some(path)
            })?;
            mounts.lines().find_map(|mount| Folder::of(mount, controller, path))
        };
        if let (Some(used), Some(limit)) = (find("cpuacct"), find("cpu")) {
            let limits = limit.up_to_mount();
            return Some(Self { version: Version::One, used: used.folder, limits });
        }
        let group = find("")?;
        let limits = group.up_to_mount();
        Some(Self { version: Version::Two, used: group.folder, limits })
    }

    fn used(&self) -> Option<Duration> {
        match self.version {
            Version::One => {
                let text = fs::read_to_string(self.used.join("cpuacct.usage")).ok()?;
                Some(Duration::from_nanos(text.trim().parse().ok()?))
            }
            Version::Two => {
                let text = fs::read_to_string(self.used.join("cpu.stat")).ok()?;
                let used = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                Some(Duration::from_micros(used.trim().parse().ok()?))
            }
        }
    }

    /// Returns the processors that the group may use at once.
    fn processors(&self) -> f64 {
        let quotas = self.limits.iter().filter_map(|folder| self.quota(folder));
        quotas.fold(allowed_processors(), f64::min)
    }

    /// Returns the limit in a folder, in processors.
    fn quota(&self, folder: &Path) -> Option<f64> {
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        let text = match self.version {
            Version::One => {
                format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?)
            }
            Version::Two => read("cpu.max")?,
        };
        quota_of(&text)
    }
}

/// Returns the processors of a text like `50000 100000`. `max` and negative numbers mean no limit.
fn quota_of(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Returns the processors on which this process may run.
fn allowed_processors() -> f64 {
    let count = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    f64::from(count.max(1))
}

/// The folder of a group, and the mount that it is in.
struct Folder {
    mount: PathBuf,
    folder: PathBuf,
}

impl Folder {
    /// Returns the folder of the group `path` if `line` of mountinfo is the mount of this controller; version 2 has no name. A
    /// container often sees its own group as the root of the mount.
    fn of(line: &str, controller: &str, path: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, mount) = (left.next()?, PathBuf::from(left.next()?));
        let mut right = right.split(' ');
        let kind = right.next()?;
        let is_wanted = match controller {
            "" => kind == "cgroup2",
            name => kind == "cgroup" && right.next_back()?.split(',').any(|option| option == name),
        };
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        is_wanted.then(|| Self { folder: mount.join(below), mount })
    }

    fn up_to_mount(&self) -> Vec<PathBuf> {
        let folders = self.folder.ancestors().take_while(|folder| folder.starts_with(&self.mount));
        folders.map(Path::to_path_buf).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
    const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn groups_of_both_versions_are_found() {
        let places = Places::of("0::/a/b\n", V2).expect("version 2");
        assert_eq!(places.used, Path::new("/sys/fs/cgroup/a/b"));
        let up = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(PathBuf::from);
        assert_eq!((places.version, &places.limits[..]), (Version::Two, &up[..]));
        let groups = "2:cpu,cpuacct:/c\n1:name=systemd:/\n0::/\n";
        let places = Places::of(groups, &format!("{V2}{V1}")).expect("version 1");
        assert_eq!(places.used, Path::new("/sys/fs/cgroup/cpu/c"));
        assert_eq!(places.version, Version::One);
        assert_eq!(Places::of("", ""), None);
    }

    #[test]
    fn limits_are_numbers_of_processors() {
        assert_eq!(quota_of("50000 100000\n"), Some(0.5));
        for no_limit in ["max 100000\n", "-1 100000", "", "1", "x y", "1 0"] {
            assert_eq!(quota_of(no_limit), None, "{no_limit}");
        }
    }

    #[test]
    fn the_share_is_that_of_the_processors_that_may_be_used() {
        let at =
            |millis| ProcessorUse::Group { used: Duration::from_millis(millis), processors: 2.0 };
        let share = at(1500).share_since(at(500), Duration::from_secs(1));
        assert_eq!(share, Some(0.5));
        assert_eq!(at(1).share_since(at(1), Duration::ZERO), None);
    }

    #[test]
    fn this_process_uses_processors() {
        assert!(GroupProcessors::find().read().is_some());
    }
}
