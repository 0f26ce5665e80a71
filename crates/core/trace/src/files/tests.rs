//! Which traces go to which file, and that every file is whole.

use std::{fs, os::unix::fs::symlink};

use galatea_test_support::eventually;
use serde_json::Value;

use super::*;
use crate::{request_trace::RequestTrace, trace_memory::TraceMemory};

/// A folder with the file of a writer.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("t.json")
    }

    /// Returns the ids in a file with this suffix, which is whole; `None`: there is no file.
    fn ids(&self, suffix: &str) -> Option<Vec<u64>> {
        let text = fs::read_to_string(self.0.path().join(format!("t.json{suffix}"))).ok()?;
        let list: Vec<Value> = serde_json::from_str(&text).expect("a JSON array");
        Some(list.iter().filter_map(|object| object["id"].as_u64()).collect())
    }

    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.0.path()).expect("a folder");
        let name = |file: std::io::Result<fs::DirEntry>| file.expect("a file").file_name();
        let mut names: Vec<_> = files.map(|f| name(f).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn trace(id: u64, setting: u64, log_frequency: u32) -> FinishedTrace {
    let request =
        RequestTrace { id, model: Some("m".into()), version: 1, ..RequestTrace::default() };
    FinishedTrace {
        place: None,
        has_timestamps: true,
        failure: None,
        setting,
        log_frequency,
        is_counted: false,
        is_last_of_count: false,
        requests: vec![request],
        held: TraceMemory::default().hold(),
    }
}

#[test]
fn the_file_is_whole_after_every_write() {
    let folder = Folder::new();
    fs::write(folder.path(), "what an earlier server wrote").expect("written");
    let mut writer = Writer::new(folder.path(), Arc::default());
    for id in 1..4 {
        writer.add(trace(id, 0, 0));
        writer.write();
        assert_eq!(folder.ids(""), Some((1..=id).collect()));
    }
    writer.add(trace(4, 1, 0));
    writer.retire(0);
    writer.retire_all();
    assert_eq!(folder.ids(""), Some(vec![1, 2, 3, 4]));
    assert_eq!(folder.names(), ["t.json"]);
}

#[test]
fn numbered_files_hold_as_many_traces_as_the_setting_says() {
    let folder = Folder::new();
    let mut writer = Writer::new(folder.path(), Arc::default());
    for id in 1..6 {
        writer.add(trace(id, 0, 2));
        writer.write();
    }
    assert_eq!((folder.ids(".0"), folder.ids(".1")), (Some(vec![1, 2]), Some(vec![3, 4])));
    assert_eq!((folder.ids(".2"), folder.ids("")), (None, None));
    writer.retire(0);
    assert_eq!(folder.ids(".2"), Some(vec![5]), "the rest goes to the next number");
    writer.add(trace(6, 1, 1));
    assert_eq!(folder.ids(".3"), Some(vec![6]), "the number never goes back");
}

#[test]
fn a_count_that_is_used_up_fills_a_numbered_file() {
    let folder = Folder::new();
    let mut writer = Writer::new(folder.path(), Arc::default());
    for (id, is_last_of_count) in [(1, false), (2, true)] {
        writer.add(FinishedTrace { is_counted: true, is_last_of_count, ..trace(id, 0, 0) });
        writer.write();
        assert_eq!(folder.ids(".0").is_some(), is_last_of_count);
    }
    writer.add(FinishedTrace { is_counted: true, ..trace(3, 1, 0) });
    writer.retire(1);
    assert_eq!((folder.ids(".0"), folder.ids("")), (Some(vec![1, 2]), Some(vec![3])));
}

#[test]
fn a_trace_with_nothing_in_it_writes_nothing() {
    let folder = Folder::new();
    let mut writer = Writer::new(folder.path(), Arc::default());
    let empty = || FinishedTrace { requests: Vec::new(), ..trace(1, 0, 0) };
    writer.add(FinishedTrace { is_last_of_count: true, ..empty() });
    writer.write();
    writer.retire_all();
    assert!(folder.names().is_empty());
    writer.add(trace(1, 1, 0));
    writer.add(empty());
    writer.retire_all();
    assert_eq!(folder.ids(""), Some(vec![1]));
}

#[test]
fn a_file_that_was_moved_or_changed_is_begun_anew() {
    let folder = Folder::new();
    let mut writer = Writer::new(folder.path(), Arc::default());
    let mut add = |id| {
        writer.add(trace(id, 0, 0));
        writer.write();
    };
    add(1);
    fs::rename(folder.path(), folder.0.path().join("t.json.moved")).expect("moved");
    add(2);
    assert_eq!((folder.ids(".moved"), folder.ids("")), (Some(vec![1]), Some(vec![2])));
    fs::write(folder.path(), "").expect("emptied");
    add(3);
    assert_eq!(folder.ids(""), Some(vec![3]));
}

#[test]
fn traces_that_cannot_be_written_leave_no_part_of_a_file() {
    let folder = Folder::new();
    let lost = Arc::new(AtomicU64::new(0));
    let mut writer = Writer::new(folder.path(), lost.clone());
    fs::create_dir(folder.path()).expect("a folder in the place of the file");
    writer.add(trace(1, 0, 0));
    writer.write();
    writer.add(trace(2, 0, 0));
    writer.write();
    assert_eq!((folder.names(), lost.load(Ordering::Relaxed)), (vec!["t.json".to_owned()], 2));
    fs::remove_dir(folder.path()).expect("removed");
    writer.add(trace(3, 0, 0));
    writer.write();
    assert_eq!(folder.ids(""), Some(vec![3]));
}

#[test]
fn links_are_not_replaced_and_not_followed() {
    let folder = Folder::new();
    let other = folder.0.path().join("other");
    fs::write(&other, "of somebody else").expect("written");
    let lost = Arc::new(AtomicU64::new(0));
    let mut writer = Writer::new(folder.path(), lost.clone());
    symlink(&other, folder.path()).expect("a link");
    writer.add(trace(1, 0, 0));
    writer.write();
    assert_eq!(fs::read_link(folder.path()).expect("still a link"), other);
    assert_eq!(lost.load(Ordering::Relaxed), 1);
    fs::remove_file(folder.path()).expect("removed");
    symlink(&other, folder.0.path().join("t.json.part")).expect("a link");
    writer.add(trace(2, 0, 0));
    writer.write();
    assert_eq!(folder.ids(""), Some(vec![2]));
    assert_eq!(fs::read_to_string(&other).expect("still there"), "of somebody else");
}

#[test]
fn the_thread_writes_by_itself_and_the_end_writes_the_rest() {
    let folder = Folder::new();
    let files = TraceFiles::new(folder.path());
    files.retired(7);
    assert!(folder.names().is_empty(), "no thread without a trace");
    files.finished(trace(1, 0, 0));
    eventually("a file", || folder.ids("") == Some(vec![1]));
    files.finished(trace(2, 0, 0));
    files.finished(trace(3, 1, 9));
    files.close();
    assert_eq!((folder.ids(""), folder.ids(".0")), (Some(vec![1, 2]), Some(vec![3])));
    files.finished(trace(4, 0, 0));
    files.close();
    assert_eq!(folder.ids(""), Some(vec![1, 2]), "nothing comes after the end");
}
