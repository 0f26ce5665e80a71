//! Tests of the cache as several servers use it.

use std::sync::mpsc;

use super::*;

fn key(name: &str, version: &str) -> CacheKey {
    CacheKey::of(name, ["place", version])
}

fn open(folder: &Path, limit: u64) -> Arc<Cache> {
    Cache::open(folder, CacheLimit::Bytes(limit)).expect("usable")
}

fn filled(cache: &Cache, key: &CacheKey, bytes: usize) -> CacheLease {
    let mut fill = |folder: &Path| {
        fs::write(folder.join(key.name()).join("file"), vec![7; bytes]).expect("written");
        Ok(())
    };
    cache.get(key, key.name(), bytes as u64, &mut fill).expect("filled")
}

/// The entry where it is there already; a fill fails the test.
fn kept(cache: &Cache, key: &CacheKey) -> bool {
    cache.find(key).expect("usable").is_some()
}

#[test]
fn an_entry_is_filled_once_and_shared_by_servers() {
    let home = tempfile::tempdir().expect("folder");
    let lease = filled(&open(home.path(), 1000), &key("m", "1"), 10);
    assert!(lease.as_ref().ends_with("m"), "the folder has the name of the model");
    assert_eq!(fs::read(lease.as_ref().join("file")).expect("there"), [7; 10]);
    let other = open(home.path(), 1000);
    assert!(kept(&other, &key("m", "1")) && !kept(&other, &key("m", "2")));
    let mode = fs::metadata(home.path().join("v1")).expect("there").mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_modified_entry_is_fetched_again() {
    let home = tempfile::tempdir().expect("folder");
    let cache = open(home.path(), 1000);
    let file = filled(&cache, &key("m", "1"), 10).as_ref().join("file");
    for damage in [Some("short"), None] {
        match damage {
            Some(text) => fs::write(&file, text).expect("written"),
            None => fs::remove_file(&file).expect("removed"),
        }
        assert!(!kept(&cache, &key("m", "1")), "{damage:?}");
        filled(&cache, &key("m", "1"), 10);
        assert_eq!(fs::read(&file).expect("there"), [7; 10]);
    }
    fs::write(file.with_file_name("by the model"), "").expect("written");
    assert!(kept(&cache, &key("m", "1")), "what comes beside its files does not count");
}

#[test]
fn the_least_recently_used_entry_is_evicted_unless_in_use() {
    let home = tempfile::tempdir().expect("folder");
    let cache = open(home.path(), 100);
    let old = |key: &CacheKey, seconds| {
        let lock = File::open(home.path().join("v1/locks").join(key.as_str())).expect("there");
        let then = SystemTime::now() - std::time::Duration::from_secs(seconds);
        lock.set_modified(then).expect("set");
    };
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| key(name, "1"));
    let lease = filled(&cache, &a, 40);
    filled(&cache, &b, 40);
    old(&a, 30);
    old(&b, 20);
    filled(&cache, &c, 20);
    assert!(kept(&cache, &b), "there is room for all three");
    old(&a, 30);
    old(&b, 20);
    old(&c, 10);
    filled(&cache, &d, 30);
    assert!(!kept(&cache, &b), "it was the oldest that nobody uses");
    assert!(kept(&cache, &a) && kept(&cache, &c) && kept(&cache, &d));
    drop(lease);
    old(&a, 30);
    filled(&cache, &b, 40);
    assert!(!kept(&cache, &a), "nobody uses it any more");
    filled(&cache, &key("large", "1"), 200);
    assert!(kept(&cache, &key("large", "1")), "beyond the limit alone: served all the same");
}

#[test]
fn an_interrupted_fill_is_resumed_but_an_invalid_one_is_not() {
    let home = tempfile::tempdir().expect("folder");
    let cache = open(home.path(), 1000);
    for (kind, expected) in [(FailureKind::Unavailable, true), (FailureKind::Changed, false)] {
        let key = key("m", &format!("{kind:?}"));
        let mut broken = |folder: &Path| {
            fs::write(folder.join("m/half"), "").expect("written");
            Err(RemoteError::new(kind, "broke"))
        };
        let error = cache.get(&key, "m", 1, &mut broken).expect_err("broke");
        assert_eq!(error.kind(), kind);
        assert!(!kept(&cache, &key), "nothing half");
        let mut found = None;
        let mut again = |folder: &Path| {
            found = Some(folder.join("m/half").exists());
            Ok(())
        };
        drop(cache.get(&key, "m", 1, &mut again).expect("filled"));
        assert_eq!(found, Some(expected));
    }
}

#[test]
fn concurrent_requests_fill_an_entry_once() {
    let home = tempfile::tempdir().expect("folder");
    let place = home.path();
    let (started, is_started) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let first = scope.spawn(move || {
            let mut fill = |_: &Path| {
                started.send(()).expect("heard");
                may_go.recv().expect("told");
                Ok(())
            };
            open(place, 1000).get(&key("m", "1"), "m", 1, &mut fill)
        });
        is_started.recv().expect("started");
        let second = scope.spawn(|| {
            let mut fill = |_: &Path| -> Result<(), RemoteError> { panic!("filled twice") };
            open(place, 1000).get(&key("m", "1"), "m", 1, &mut fill).map(drop)
        });
        go.send(()).expect("waits");
        // Who made it uses it for as long as it likes; the other does not wait for that.
        let used = first.join().expect("no panic").expect("filled");
        assert!(used.as_ref().exists());
        assert!(second.join().expect("no panic").is_ok());
    });
}

#[test]
fn a_folder_writable_by_others_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("folder");
    fs::create_dir(home.path().join("v1")).expect("made");
    fs::set_permissions(home.path().join("v1"), fs::Permissions::from_mode(0o777)).expect("set");
    let error = Cache::open(home.path(), CacheLimit::Bytes(1)).expect_err("refused").to_string();
    assert!(error.contains("only this user can write to"), "{error}");
    let file = home.path().join("file");
    fs::write(&file, "").expect("written");
    let error = Cache::open(&file, CacheLimit::Bytes(1)).expect_err("refused").to_string();
    assert!(error.contains("--repository-cache-directory"), "{error}");
}

#[test]
fn a_full_disk_is_reported() {
    let home = tempfile::tempdir().expect("folder");
    let cache = open(home.path(), u64::MAX);
    let mut fill = |_: &Path| -> Result<(), RemoteError> { panic!("not begun") };
    let error = cache.get(&key("m", "1"), "model 'm'", u64::MAX / 4, &mut fill).expect_err("full");
    assert!(
        error.to_string().starts_with("model 'm': 4611686018427387903 bytes must be fetched"),
        "{error}"
    );
    let full = cache.not_written(&io::Error::from(io::ErrorKind::StorageFull)).to_string();
    assert!(full.starts_with("no space left for models in '"), "{full}");
}
