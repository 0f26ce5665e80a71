//! Tests of downloads from a place that breaks.

use md5::{Digest, Md5};
use tokio::sync::Barrier;

use super::*;
use crate::{
    remote_files::Checksum,
    tests::fake_files::{FakeFiles, Fault},
};

const PATH: &str = "m/1/w";

fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from(at % 251).expect("small")).collect()
}

fn md5(content: &[u8]) -> Option<Checksum> {
    Some(Checksum::Md5(Md5::digest(content).into()))
}

fn listed(remote: &FakeFiles, paths: &[&str]) -> BTreeMap<String, RemoteFile> {
    paths.iter().map(|path| (path.replacen("m/", "", 1), remote.file(path))).collect()
}

/// Fetches files of the model `m` as they are listed now.
fn run(remote: &Arc<FakeFiles>, folder: &Path, paths: &[&str]) -> Result<(), RemoteError> {
    run_as(remote, folder, listed(remote, paths))
}

fn run_as(
    remote: &Arc<FakeFiles>,
    folder: &Path,
    files: BTreeMap<String, RemoteFile>,
) -> Result<(), RemoteError> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = threads.worker_threads(2).enable_all().build().expect("threads");
    let progress = Arc::new(Progress::start("m", files.len(), 0));
    runtime.block_on(fetch(remote.clone(), files, folder.to_owned(), "m".to_owned(), progress))
}

fn starts(remote: &FakeFiles) -> Vec<u64> {
    remote.opened.lock().expect("lock").iter().map(|(_, from)| *from).collect()
}

#[test]
fn an_interrupted_download_is_resumed() {
    let (remote, home) = (Arc::new(FakeFiles::default()), tempfile::tempdir().expect("folder"));
    let content = bytes(300_000);
    remote.put_with(PATH, content.clone(), md5(&content));
    // The second brings nothing, the third ends early without saying so.
    remote.break_next(PATH, [Fault::Cut(100_000), Fault::Cut(0), Fault::End(50_000)]);
    run(&remote, home.path(), &[PATH]).expect("fetched");
    assert_eq!(starts(&remote), [0, 100_000, 100_000, 150_000]);
    assert_eq!(std::fs::read(home.path().join(PATH)).expect("there"), content);
    assert!(!home.path().join("parts").exists());
}

#[test]
fn files_of_an_earlier_fetch_are_checked_and_reused() {
    let (remote, home) = (Arc::new(FakeFiles::default()), tempfile::tempdir().expect("folder"));
    let (content, part) = (bytes(300_000), home.path().join("parts/0"));
    remote.put_with(PATH, content.clone(), md5(&content));
    std::fs::create_dir(home.path().join("parts")).expect("folder");
    std::fs::write(&part, [0; 1000]).expect("written");
    let error = run(&remote, home.path(), &[PATH]).expect_err("damaged");
    assert_eq!(error.kind(), FailureKind::Invalid);
    assert!(
        error.to_string().starts_with("failed to fetch 'm/1/w': the bytes do not fit"),
        "{error}"
    );
    assert!(!part.exists() && !home.path().join(PATH).exists());
    std::fs::write(&part, &content[..1000]).expect("written");
    run(&remote, home.path(), &[PATH]).expect("fetched");
    assert_eq!(starts(&remote), [1000, 1000]);
    assert_eq!(std::fs::read(home.path().join(PATH)).expect("there"), content);
    // What is whole is not asked for.
    run(&remote, home.path(), &[PATH]).expect("there");
    assert_eq!(starts(&remote).len(), 2);
}

#[test]
fn a_partial_file_that_is_too_long_is_fetched_again() {
    let (remote, home) = (Arc::new(FakeFiles::default()), tempfile::tempdir().expect("folder"));
    remote.put(PATH, bytes(1000));
    std::fs::create_dir(home.path().join("parts")).expect("folder");
    std::fs::write(home.path().join("parts/0"), [0; 1000]).expect("written");
    run(&remote, home.path(), &[PATH]).expect("fetched");
    assert_eq!(starts(&remote), [0]);
    assert_eq!(std::fs::read(home.path().join(PATH)).expect("there"), bytes(1000));
}

#[test]
fn parts_of_another_version_or_size_are_not_combined() {
    let remote = Arc::new(FakeFiles::default());
    for fault in [Fault::More, Fault::Fails(FailureKind::Changed)] {
        let home = tempfile::tempdir().expect("folder");
        remote.put(PATH, bytes(100));
        remote.break_next(PATH, [Fault::Cut(50), fault]);
        let error = run(&remote, home.path(), &[PATH]).expect_err("another");
        assert_eq!(error.kind(), FailureKind::Changed, "{fault:?}: {error}");
        assert!(error.to_string().contains("'m/1/w'"), "{error}");
        assert!(!home.path().join("parts/0").exists() && !home.path().join(PATH).exists());
    }
    let (home, before) = (tempfile::tempdir().expect("folder"), listed(&remote, &[PATH]));
    remote.put(PATH, b"uploaded again".as_slice());
    let error = run_as(&remote, home.path(), before).expect_err("another");
    assert_eq!(error.kind(), FailureKind::Changed, "{error}");
}

#[test]
fn at_most_eight_files_are_fetched_at_once() {
    let mut remote = FakeFiles::default();
    remote.meeting = Some(Arc::new(Barrier::new(AT_ONCE)));
    let remote = Arc::new(remote);
    let paths: Vec<String> = (0..AT_ONCE * 4).map(|number| format!("m/1/{number}")).collect();
    paths.iter().for_each(|path| remote.put(path, path.clone().into_bytes()));
    let home = tempfile::tempdir().expect("folder");
    // Each waits for seven others: with fewer at once this would not end.
    run(&remote, home.path(), &paths.iter().map(String::as_str).collect::<Vec<_>>()).expect("all");
    assert_eq!(remote.most_reading(), AT_ONCE);
    for path in &paths {
        assert_eq!(std::fs::read_to_string(home.path().join(path)).expect("there"), *path);
    }
}

#[test]
fn the_first_failure_ends_all_downloads() {
    let (remote, home) = (Arc::new(FakeFiles::default()), tempfile::tempdir().expect("folder"));
    for path in ["m/1/a", "m/1/b", "m/1/c"] {
        remote.put(path, bytes(10));
    }
    remote.break_next("m/1/a", [Fault::Hangs]);
    remote.break_next("m/1/b", [Fault::Fails(FailureKind::Denied)]);
    let error = run(&remote, home.path(), &["m/1/a", "m/1/b", "m/1/c"]).expect_err("denied");
    assert_eq!(error.kind(), FailureKind::Denied);
    assert_eq!(error.to_string(), "failed to fetch 'm/1/b': on purpose");
}

#[test]
fn empty_files_and_folders_need_no_request() {
    let (remote, home) = (Arc::new(FakeFiles::default()), tempfile::tempdir().expect("folder"));
    remote.put("m/empty", bytes(0));
    remote.put("m/1", bytes(0));
    let mut files = listed(&remote, &["m/empty", "m/1"]);
    let version = files.remove("1").expect("listed");
    files.insert("1/".to_owned(), version);
    run_as(&remote, home.path(), files).expect("made");
    assert_eq!(std::fs::metadata(home.path().join("m/empty")).expect("there").len(), 0);
    assert!(home.path().join("m/1").is_dir() && starts(&remote).is_empty());
}
