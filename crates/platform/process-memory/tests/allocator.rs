//! The allocator of the program, with the options it is linked with.

use std::{
    fs,
    sync::{Arc, Barrier},
    thread,
};

use galatea_test_support::eventually;

#[global_allocator]
static ALLOCATOR: galatea_process_memory::Allocator = galatea_process_memory::ALLOCATOR;

const BLOCK: usize = 100 << 10;
const BLOCKS: usize = 300;
const THREADS: usize = 4;
const LONG_BLOCK: usize = 200 << 20;
const BURST: usize = BLOCK * BLOCKS * THREADS;

/// Each thread's heap grows by 30 MB, and the threads stay: of the C library's allocator most of that stays too.
#[test]
fn memory_of_a_burst_on_many_threads_returns_to_the_system() {
    let filled = Arc::new(Barrier::new(THREADS + 1));
    let ended = Arc::new(Barrier::new(THREADS + 1));
    let begin = resident();
    for _ in 0..THREADS {
        let (filled, ended) = (filled.clone(), ended.clone());
        thread::spawn(move || {
            let blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![1; BLOCK]).collect();
            filled.wait();
            filled.wait();
            drop(blocks);
            ended.wait();
        });
    }
    filled.wait();
    assert!(resident() > begin + BURST * 3 / 4, "the burst is there");
    filled.wait();
    eventually("at most an eighth of the burst is left", || resident() <= begin + BURST / 8);
    ended.wait();
}

/// Many times the memory that is in use at any time: without a limit the process grows by most of that.
#[test]
fn no_more_than_the_configured_amount_of_long_blocks_is_kept() {
    const KEPT: usize = 32 << 20;
    assert!(galatea_process_memory::keep_of_long_blocks(KEPT));
    let begin = resident();
    for number in 0..20 {
        drop(vec![1_u8; LONG_BLOCK]);
        let left = resident().saturating_sub(begin);
        assert!(left < KEPT + LONG_BLOCK / 4, "{} MiB are left of block {number}", left >> 20);
    }
    // What is within the limit is there for the next one: taking a block costs no new pages.
    let short = || vec![1_u8; KEPT / 4];
    drop(short());
    let before = page_faults().unwrap_or_default();
    (0..100).for_each(|_| drop(short()));
    let given = page_faults().map(|now| now - before);
    assert!(given.is_some_and(|pages| pages < 100 * (KEPT / 4) / 4096 / 4), "{given:?} pages");
}

#[test]
fn memory_of_a_dedicated_thread_returns_to_the_system() {
    // It names itself when it runs.
    eventually("the allocator has one thread", || threads_of_the_allocator() == 1);
}

/// 0 where the system does not say, which fails the test.
fn threads_of_the_allocator() -> usize {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("jemalloc")).count()
}

/// Pages that this process was given so far.
fn page_faults() -> Option<usize> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The tenth field; the second one may hold spaces and ends with the last parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

/// 0 where the system does not say, which fails the tests.
fn resident() -> usize {
    galatea_process_memory::resident().unwrap_or_default()
}
