//! Probes silent connections. A client that does not answer is gone.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use h2::{Ping, PingPong};
use tokio::time::Instant;

use crate::timer::{self, Timer};

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAliveRules {
    /// A probe is sent when no call has received anything for this long, with or without open calls ...
    pub interval: Duration,
    /// ... and must be answered within this.
    pub timeout: Duration,
}

pub(crate) struct KeepAlive {
    pings: PingPong,
    rules: KeepAliveRules,
    /// The last time when a call received something or the client answered.
    last_read: Instant,
    /// The timer to the next probe or to the end of the wait for its answer. `None`: the time is too far to represent.
    timer: Option<Timer>,
    awaits_answer: bool,
}

impl KeepAlive {
    pub fn new(pings: PingPong, rules: KeepAliveRules) -> Self {
        let last_read = Instant::now();
        let timer = last_read.checked_add(rules.interval).map(timer::at);
        Self { pings, rules, last_read, timer, awaits_answer: false }
    }

    pub fn record_read(&mut self) {
        self.last_read = Instant::now();
    }

    /// Returns ready when a probe was not answered in time.
    pub fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.awaits_answer && self.is_answered(cx) {
                self.wait();
            }
            let Some(timer) = &mut self.timer else { return Poll::Pending };
            ready!(timer.as_mut().poll(cx));
            if self.awaits_answer {
                return Poll::Ready(());
            }
            self.probe();
        }
    }

    fn is_answered(&mut self, cx: &mut Context<'_>) -> bool {
        match self.pings.poll_pong(cx) {
            Poll::Ready(Ok(_)) => {
                self.record_read();
                true
            }
            // The connection has ended, and its own poll reports that.
            Poll::Ready(Err(_)) | Poll::Pending => false,
        }
    }

    /// Waits until nothing was received for the interval.
    fn wait(&mut self) {
        self.awaits_answer = false;
        self.timer = self.last_read.checked_add(self.rules.interval).map(timer::at);
    }

    /// Sends a probe, unless something was received since the timer was set.
    fn probe(&mut self) {
        if self.last_read.elapsed() < self.rules.interval {
            return self.wait();
        }
        match self.pings.send_ping(Ping::opaque()) {
            Ok(()) => {
                self.awaits_answer = true;
                self.timer = Instant::now().checked_add(self.rules.timeout).map(timer::at);
            }
            Err(_) => self.timer = None,
        }
    }
}
