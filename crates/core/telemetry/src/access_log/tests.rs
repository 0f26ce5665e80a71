//! Lines on their way to a file: all of them, through a rotation, and none that makes a request wait.

use std::{
    fs,
    io::Read,
    sync::Barrier,
    thread,
    time::{Duration, UNIX_EPOCH},
};

use super::*;

fn record(id: &str) -> AccessRecord<'_> {
    AccessRecord {
        time: UNIX_EPOCH,
        id,
        peer: &"unix",
        protocol: "grpc",
        method: "POST",
        path: "/inference.GRPCInferenceService/ModelInfer",
        model: "m",
        version: None,
        status: 0,
        bytes_in: 0,
        bytes_out: 0,
        queue: None,
        compute: None,
        total: Duration::ZERO,
        identity: "",
        trace: None,
    }
}

fn ids(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.split(' ').find_map(|field| field.strip_prefix("id=")).expect("an id"))
        .collect()
}

#[test]
fn lines_of_concurrent_threads_are_written_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    fs::write(&path, "1970-01-01T00:00:00.000000Z id=before\n").expect("written");
    let log = AccessLog::open(&AccessTarget::File(path.clone()), AccessFormat::Text).expect("open");
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (log, start) = (&log, &start);
            scope.spawn(move || {
                start.wait();
                (0..500).for_each(|n| log.write(&record(&format!("{thread}-{n}"))));
            });
        }
    });
    assert_eq!(log.lost(), 0);
    drop(log);
    let text = fs::read_to_string(&path).expect("text");
    let found = ids(&text);
    assert_eq!(found.first(), Some(&"before"), "a file is appended to");
    assert_eq!(found.len(), 2001);
    for thread in 0..4 {
        let prefix = format!("{thread}-");
        let own: Vec<_> = found.iter().filter_map(|id| id.strip_prefix(prefix.as_str())).collect();
        let expected: Vec<_> = (0..500).map(|n| n.to_string()).collect();
        assert_eq!(own, expected, "the lines of a thread keep their order");
    }
}

#[test]
fn flushing_writes_the_last_lines_while_others_still_hold_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let log = AccessLog::open(&AccessTarget::File(path.clone()), AccessFormat::Text).expect("open");
    log.write(&record("last"));
    log.flush();
    assert_eq!(ids(&fs::read_to_string(&path).expect("text")), ["last"]);
}

#[test]
fn a_moved_file_keeps_its_earlier_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, moved) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let log = AccessLog::open(&AccessTarget::File(path.clone()), AccessFormat::Text).expect("open");
    log.write(&record("before"));
    fs::rename(&path, &moved).expect("moved");
    log.reopen().expect("opened");
    log.write(&record("after"));
    drop(log);
    assert_eq!(ids(&fs::read_to_string(&moved).expect("text")), ["before"]);
    assert_eq!(ids(&fs::read_to_string(&path).expect("text")), ["after"]);
}

#[test]
fn an_unread_pipe_blocks_nobody_and_lost_lines_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).expect("a pipe");
    let reader = fs::OpenOptions::new().read(true).write(true).open(&path).expect("open");
    let log = AccessLog::open(&AccessTarget::File(path), AccessFormat::Text).expect("open");
    let sent = 100_000;
    (0..sent).for_each(|n| log.write(&record(&n.to_string())));
    let lost = log.lost();
    assert!(lost > 0 && lost < sent, "{lost} of {sent}");
    // The thread can go on, and end, once somebody reads.
    let (mut reader, mut buffer) = (reader, vec![0; 1 << 16]);
    let reading = thread::spawn(move || {
        let mut lines = 0;
        while lines < sent - lost {
            let count = reader.read(&mut buffer).expect("read");
            lines += buffer[..count].iter().filter(|&&byte| byte == b'\n').count() as u64;
        }
        lines
    });
    assert_eq!(reading.join().expect("no panic"), sent - lost);
    drop(log);
}

#[test]
fn a_missing_folder_is_an_error() {
    let target = AccessTarget::File("/nonexistent/access.log".into());
    assert!(AccessLog::open(&target, AccessFormat::Json).is_err());
}
