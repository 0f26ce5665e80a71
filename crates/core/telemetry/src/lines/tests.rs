//! Lines and readers that are slow, gone or quick.

use std::{
    fs,
    io::{PipeReader, Read, pipe},
};

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn notice(lost: u64) -> String {
    format!("lost {lost}\n")
}

fn writer(pace: Pace) -> (PipeReader, LineWriter) {
    let (reader, end) = pipe().expect("pipe");
    (reader, LineWriter::new(end, pace, notice))
}

/// Everything until the last writer is gone.
fn read(mut reader: PipeReader) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("UTF-8");
    text
}

#[test]
fn a_pipe_with_room_gets_the_line_at_once() {
    let (mut reader, writer) = writer(Pace::Prompt);
    writer.write(b"one\n");
    let mut bytes = [0; 16];
    assert_eq!(reader.read(&mut bytes).expect("there"), 4);
    assert!(!writer.shared.state.lock_unpoisoned().has_thread);
}

#[test]
fn a_stalled_reader_blocks_nobody_and_lost_lines_are_counted() {
    for (pace, sent) in [(Pace::Prompt, 40_000), (Pace::Gathered, 160_000)] {
        stand_still(pace, sent);
    }
}

fn stand_still(pace: Pace, sent: u64) {
    let (reader, writer) = writer(pace);
    for number in 0..sent {
        writer.write(format!("{number:>63}\n").as_bytes());
    }
    // Nothing was read so far: a pipe and the memory of the writer are full.
    assert!(writer.lost() > 0);
    let lost_in_all = writer.lost();
    drop(writer);
    let (mut lost, mut lines) = (0, Vec::new());
    for line in read(reader).lines() {
        match line.strip_prefix("lost ") {
            Some(count) => lost += count.parse::<u64>().expect("count"),
            None => lines.push(line.trim_start().parse::<u64>().expect("whole line")),
        }
    }
    assert_eq!((lines.len() as u64 + lost, lost), (sent, lost_in_all), "{pace:?}");
    assert!(lines.is_sorted() && lines.len() > 16_000, "{}", lines.len());
}

#[test]
fn lines_of_concurrent_threads_stay_whole() {
    let (reader, writer) = writer(Pace::Prompt);
    let reading = thread::spawn(move || read(reader));
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let writer = &writer;
            scope.spawn(move || {
                (0..500).for_each(|_| writer.write(format!("{}\n", name.repeat(300)).as_bytes()))
            });
        }
    });
    writer.flush(LONG);
    drop(writer);
    let text = reading.join().expect("read");
    let whole = |line: &str| {
        line.len() == 300 && line.bytes().all(|byte| Some(byte) == line.bytes().next())
    };
    let wrong: Vec<&str> =
        text.lines().filter(|line| !whole(line) && !line.starts_with("lost ")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_line_longer_than_the_buffer_arrives() {
    let (reader, writer) = writer(Pace::Prompt);
    let line = "x".repeat(3 * Pace::Prompt.bound()) + "\n";
    writer.write(line.as_bytes());
    let reading = thread::spawn(move || read(reader));
    writer.flush(LONG);
    drop(writer);
    assert!(reading.join().expect("read") == line);
}

#[test]
fn a_closed_pipe_blocks_nobody() {
    let (reader, writer) = writer(Pace::Prompt);
    drop(reader);
    for _ in 0..100_000 {
        writer.write(b"a line that nobody reads\n");
    }
    writer.flush(LONG);
    assert!(writer.shared.state.lock_unpoisoned().is_idle());
}

#[test]
fn a_file_gets_prompt_lines_at_once_and_gathered_lines_on_flush() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    for pace in [Pace::Prompt, Pace::Gathered] {
        fs::write(&path, "before\n").expect("file");
        let writer = LineWriter::open(&path, pace, notice).expect("opened");
        writer.clone().write(b"one\n");
        writer.write(b"two\n");
        if pace == Pace::Gathered {
            writer.flush(LONG);
        }
        assert_eq!(fs::read_to_string(&path).expect("file"), "before\none\ntwo\n");
    }
}

#[test]
fn a_moved_file_is_reopened() {
    let folder = tempfile::tempdir().expect("folder");
    let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
    let writer = LineWriter::open(&path, Pace::Prompt, notice).expect("opened");
    writer.write(b"one\n");
    fs::rename(&path, &moved).expect("moved");
    writer.write(b"two\n");
    writer.reopen().expect("opened again");
    writer.write(b"three\n");
    assert_eq!(fs::read_to_string(&moved).expect("file"), "one\ntwo\n");
    assert_eq!(fs::read_to_string(&path).expect("file"), "three\n");
}

#[test]
fn the_first_lines_of_a_burst_are_written_at_once_and_the_rest_soon() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let writer = LineWriter::open(&path, Pace::Prompt, notice).expect("opened");
    let lines: Vec<String> = (0..5000).map(|number| format!("{number}\n")).collect();
    let (first, rest) = lines.split_at(BURST.0 as usize);
    first.iter().for_each(|line| writer.write(line.as_bytes()));
    assert_eq!(fs::read_to_string(&path).expect("file"), first.concat());
    rest.iter().for_each(|line| writer.write(line.as_bytes()));
    writer.flush(LONG);
    assert_eq!(fs::read_to_string(&path).expect("file"), lines.concat());
    assert_eq!(writer.lost(), 0);
}

#[test]
fn lost_lines_are_counted_and_reported_when_there_is_room() {
    let folder = tempfile::tempdir().expect("folder");
    for pace in [Pace::Prompt, Pace::Gathered] {
        let path = folder.path().join(format!("{pace:?}"));
        std::os::unix::fs::symlink("/dev/full", &path).expect("link");
        let writer = LineWriter::open(&path, pace, notice).expect("opened");
        for _ in 0..3 {
            writer.write(b"no room\nfor these\n");
            writer.flush(LONG);
        }
        assert_eq!(writer.lost(), 6);
        fs::remove_file(&path).expect("removed");
        writer.reopen().expect("opened again");
        writer.write(b"room\n");
        writer.flush(LONG);
        writer.write(b"more\n");
        writer.flush(LONG);
        let text = fs::read_to_string(&path).expect("file");
        assert_eq!(text, "room\nlost 6\nmore\n", "{pace:?}");
        assert_eq!(writer.lost(), 6);
    }
}
