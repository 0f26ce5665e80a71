//! Runs a test again and again, each time with its threads in another order.
//!
//! The threads of such a test are shuttle's, and so are their stacks. Without a setting a stack has 32 KiB, which code without
//! optimisation overflows. The process then ends with SIGSEGV and no message.

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
};

/// The stack of each thread, in bytes. Pages that no thread touches cost nothing.
const STACK_SIZE: usize = 1 << 20;

/// Runs the test `iterations` times, each time with a random order.
///
/// # Panics
///
/// Panics when the test does, and prints the order that led to it.
pub fn check_random(test: impl Fn() + Send + Sync + 'static, iterations: usize) {
    Runner::new(RandomScheduler::new(iterations), config()).run(test);
}

/// Runs the test `iterations` times. Each time the order changes at `depth` points, which finds rare faults that need few thread
/// changes more often than random orders do.
///
/// # Panics
///
/// Panics when the test does, and prints the order that led to it.
pub fn check_pct(test: impl Fn() + Send + Sync + 'static, iterations: usize, depth: usize) {
    Runner::new(PctScheduler::new(depth, iterations), config()).run(test);
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_SIZE;
    config
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::check_random;

    #[test]
    fn a_thread_may_use_more_stack_than_shuttle_gives() {
        check_random(
            || {
                let thread = shuttle::thread::spawn(|| black_box([1_u8; 256 << 10]).len());
                assert_eq!(thread.join().expect("it ends"), 256 << 10);
            },
            1,
        );
    }
}
