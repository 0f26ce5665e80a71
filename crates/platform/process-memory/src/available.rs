//! The memory that this process may use: the machine's, or less if a control group limits it.
//!
//! Each group above a control group limits it too, so all are read. Both versions may be mounted at once. Only one has the
//! memory controller, and the other has no such file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::kib_of;

/// Returns the bytes that the machine and its control groups allow this process, or `None` if nothing can be read.
pub fn available() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kib_of(&text, "MemTotal:"));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let limits = group_folders(&groups, &mounts);
    let group = limits.iter().filter_map(|(folder, file)| lowest_limit(folder, file)).min();
    machine.into_iter().chain(group).min()
}

/// A control group's folder, and the root of its mount.
#[derive(Debug, PartialEq, Eq)]
struct GroupFolder {
    mount: PathBuf,
    folder: PathBuf,
}

/// The file with the limit in each folder of a group.
const LIMIT_V1: &str = "memory.limit_in_bytes";
const LIMIT_V2: &str = "memory.max";

/// Returns the folders of this process's groups, from `/proc/self/cgroup` (`number:controllers:path`) and
/// `/proc/self/mountinfo`.
fn group_folders(groups: &str, mounts: &str) -> Vec<(GroupFolder, &'static str)> {
    let folder = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let has_memory = controllers.split(',').any(|name| name == "memory");
        let (kind, option, file) = match controllers {
            "" => ("cgroup2", "", LIMIT_V2),
            _ if has_memory => ("cgroup", "memory", LIMIT_V1),
            _ => return None,
        };
        let found = mounts.lines().find_map(|mount| place(mount, kind, option, path))?;
        Some((found, file))
    };
    groups.lines().filter_map(folder).collect()
}

/// Returns the folder of the group `path` if `line` of mountinfo is the mount of that kind. A container often sees its own
/// group as the root of the mount, while `/proc/self/cgroup` has the whole path.
fn place(line: &str, kind: &str, option: &str, path: &str) -> Option<GroupFolder> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, mount) = (left.next()?, PathBuf::from(left.next()?));
    let mut right = right.split(' ');
    let is_kind = right.next()? == kind;
    let has_option = option.is_empty() || right.next_back()?.split(',').any(|o| o == option);
    if !is_kind || !has_option {
        return None;
    }
    let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    Some(GroupFolder { folder: mount.join(below), mount })
}

/// Returns the lowest limit of the folder and those above it, up to the mount. The word `max` means no limit. The number
/// that means this in version 1 is above every machine's memory.
fn lowest_limit(group: &GroupFolder, file: &str) -> Option<usize> {
    let folders = group.folder.ancestors().take_while(|folder| folder.starts_with(&group.mount));
    let limit = |folder: &Path| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    folders.filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_memory_is_read() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }

    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
    const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn folders(groups: &str, mounts: &str) -> Vec<(String, &'static str)> {
        let found = group_folders(groups, mounts);
        found.into_iter().map(|(g, file)| (g.folder.display().to_string(), file)).collect()
    }

    #[test]
    fn cgroups_of_both_versions_are_found() {
        assert_eq!(
            folders("4:cpu,memory:/a/b\n3:cpuset:/\n0::/x\n", &format!("{V1}{V2}")),
            [
                ("/sys/fs/cgroup/memory/a/b".to_owned(), LIMIT_V1),
                ("/sys/fs/cgroup/x".to_owned(), LIMIT_V2),
            ]
        );
        assert_eq!(folders("0::/\n", V2), [("/sys/fs/cgroup/".to_owned(), LIMIT_V2)]);
        assert_eq!(folders("garbage\n4:memory:/a\n", V2), []);
    }

    #[test]
    fn a_container_sees_its_own_cgroup_as_the_root() {
        let mounts = V1.replace(" / ", " /docker/abc ");
        assert_eq!(
            folders("4:memory:/docker/abc/inner\n", &mounts),
            [("/sys/fs/cgroup/memory/inner".to_owned(), LIMIT_V1)]
        );
        assert_eq!(
            folders("4:memory:/elsewhere\n", &mounts),
            [("/sys/fs/cgroup/memory/".to_owned(), LIMIT_V1)]
        );
    }

    #[test]
    fn the_lowest_limit_of_all_parent_cgroups_applies() {
        let dir = tempfile::tempdir().expect("dir");
        let mount = dir.path().join("mount");
        let folder = mount.join("pod/container");
        fs::create_dir_all(&folder).expect("folders");
        let write = |folder: &Path, text: &str| {
            fs::write(folder.join(LIMIT_V2), text).expect("written");
        };
        // Outside of the mount: not a limit.
        write(dir.path(), "1");
        write(&folder, "max\n");
        let group = GroupFolder { mount: mount.clone(), folder: folder.clone() };
        assert_eq!(lowest_limit(&group, LIMIT_V2), None);
        write(&mount.join("pod"), "419430400\n");
        assert_eq!(lowest_limit(&group, LIMIT_V2), Some(400 << 20));
        write(&folder, "1000\n");
        assert_eq!(lowest_limit(&group, LIMIT_V2), Some(1000));
    }
}
