//! The allocator of the program, with the options it is linked with.

use std::{
    fs,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

#[global_allocator]
static ALLOCATOR: galatea_process_memory::Allocator = galatea_process_memory::ALLOCATOR;

const BLOCK: usize = 100 << 10;
const BLOCKS: usize = 300;
const THREADS: usize = 4;
const LONG_BLOCK: usize = 200 << 20;
const BURST: usize = BLOCK * BLOCKS * THREADS;

/// Each thread's heap grows by 30 MB, and the threads stay: of the C library's allocator most of that stays too.
#[test]
fn a_burst_on_many_threads_goes_back_to_the_system_by_itself() {
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
    let deadline = Instant::now() + Duration::from_secs(30);
    while resident() > begin + BURST / 8 {
        assert!(Instant::now() < deadline, "{} MiB of {} are left", resident() >> 20, BURST >> 20);
        thread::sleep(Duration::from_millis(50));
    }
    ended.wait();
}

/// Many times the memory that is in use at any time: without it the process grows by most of that.
#[test]
fn long_blocks_go_back_when_they_are_freed() {
    assert!(galatea_process_memory::return_long_blocks_at_once());
    let block = || vec![1_u8; LONG_BLOCK];
    let begin = {
        drop(block());
        resident()
    };
    for number in 0..20 {
        drop(block());
        let left = resident().saturating_sub(begin);
        assert!(left < LONG_BLOCK / 2, "{} MiB are left of block {number}", left >> 20);
    }
}

#[test]
fn one_thread_of_its_own_gives_memory_back() {
    let deadline = Instant::now() + Duration::from_secs(30);
    // It names itself when it runs.
    while threads_of_the_allocator() != 1 {
        assert!(Instant::now() < deadline, "{} threads", threads_of_the_allocator());
        thread::yield_now();
    }
}

fn threads_of_the_allocator() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("readable");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("jemalloc")).count()
}

/// 0 where the system does not say, which fails the tests.
fn resident() -> usize {
    galatea_process_memory::resident().unwrap_or_default()
}
