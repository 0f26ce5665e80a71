//! The reachability of the Redis server, the same for all threads of the cache.
//!
//! The first command that fails ends the connections of all threads, so that the requests that wait at the others wait no
//! longer. From then on no request asks the server, until one thread has reached it again.

use std::{
    fmt,
    net::{Shutdown, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use galatea_types::LockExt;

use super::outage::{Change, Outage, Turn};

/// Wakes a thread of the cache that waits for work.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// The shared state.
pub struct Reachability {
    address: String,
    outage: Mutex<Outage>,
    is_lost: AtomicBool,
    /// The number of times that the server was lost. A connection made at an earlier number is not used any more.
    losses: AtomicU64,
    threads: Mutex<Vec<Thread>>,
}

/// A thread that other threads interrupt.
struct Thread {
    connection: Option<UsedSocket>,
    wake: Waker,
}

/// The socket of a connection that was made after `losses` losses.
struct UsedSocket {
    socket: TcpStream,
    losses: u64,
}

impl Reachability {
    /// Creates the state of a server that is about to be reached for the first time.
    pub fn new(address: String) -> Self {
        let (is_lost, losses, threads) = Default::default();
        Self { address, outage: Mutex::new(Outage::new()), is_lost, losses, threads }
    }

    /// Returns whether the server is lost.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Returns how many times the server was lost.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// Adds a thread, and returns its number.
    pub fn add_thread(&self, wake: Waker) -> usize {
        let mut threads = self.threads.lock_unpoisoned();
        threads.push(Thread { connection: None, wake });
        threads.len() - 1
    }

    /// Tells a thread without a connection whether it may connect now.
    pub fn take_turn(&self, now: Instant) -> Turn {
        self.outage.lock_unpoisoned().take_turn(now)
    }

    /// Records that a thread has made a connection after `losses` losses. Returns false if the server was lost meanwhile.
    pub fn record_connection(
        &self,
        thread: usize,
        socket: Option<TcpStream>,
        losses: u64,
        now: Instant,
    ) -> bool {
        let mut outage = self.outage.lock_unpoisoned();
        if losses != self.losses() {
            return false;
        }
        let change = outage.record_connection(now);
        self.is_lost.store(false, Ordering::Relaxed);
        drop(outage);
        let mut threads = self.threads.lock_unpoisoned();
        if let Some(thread) = threads.get_mut(thread) {
            thread.connection = socket.map(|socket| UsedSocket { socket, losses });
        }
        if change == Change::Reached {
            log::info!("Redis at {} can be reached again", self.address);
            threads.iter().for_each(|thread| (thread.wake)());
        }
        true
    }

    /// Records that a command, or an attempt to connect, failed that began after `losses` losses. The failure counts only if the
    /// server was not lost meanwhile: the loss itself ends commands.
    pub fn record_failure(&self, losses: u64, now: Instant, error: &dyn fmt::Display) {
        let mut outage = self.outage.lock_unpoisoned();
        if losses != self.losses() {
            return;
        }
        if outage.record_failure(now) == Change::None {
            return log::debug!("Redis at {} cannot be reached: {error}", self.address);
        }
        self.is_lost.store(true, Ordering::Relaxed);
        self.losses.fetch_add(1, Ordering::Release);
        drop(outage);
        for thread in &mut *self.threads.lock_unpoisoned() {
            let is_older = |used: &mut UsedSocket| used.losses <= losses;
            if let Some(UsedSocket { socket, .. }) = thread.connection.take_if(is_older) {
                // A connection that has ended already refuses this.
                let _ = socket.shutdown(Shutdown::Both);
            }
            (thread.wake)();
        }
        let address = &self.address;
        log::error!(
            "Redis at {address}: requests are executed until it can be reached again: {error}"
        );
    }
}
