//! Divisions that the processor refuses, executed for real.

#![allow(clippy::expect_used, reason = "a test fails by panicking, helpers included")]

use std::{
    arch::asm,
    sync::{Barrier, mpsc},
    thread,
};

use super::*;
use crate::install;

/// `idiv` of 32 bits: quotient and remainder.
fn divide(dividend: i32, divisor: i32) -> (i32, i32) {
    let (mut quotient, remainder);
    // SAFETY: the instruction reads and writes the named registers alone.
    unsafe {
        asm!("cdq", "idiv {divisor:e}", divisor = in(reg) divisor,
             inout("eax") dividend => quotient, out("edx") remainder);
    }
    (quotient, remainder)
}

#[test]
fn results_equal_those_of_aarch64() {
    install();
    let results = |dividend, divisor| {
        let own = AtomicU64::new(0);
        let results = counting(&own, || divide(dividend, divisor));
        (results, own.into_inner())
    };
    assert_eq!(results(7, 2), ((3, 1), 0));
    assert_eq!(results(7, 0), ((0, 7), 1));
    assert_eq!(results(i32::MIN, -1), ((i32::MIN, 0), 1));
    assert_eq!(results(i32::MIN, 0), ((0, i32::MIN), 1));
}

#[test]
fn divisors_of_every_width_and_place_are_handled() {
    install();
    let own = AtomicU64::new(0);
    counting(&own, || {
        let (rax, rdx): (u64, u64);
        // SAFETY: the instruction reads and writes the named operands alone, which live.
        unsafe {
            asm!("cqo", "idiv r9", in("r9") -1_i64, inout("rax") i64::MIN => rax, out("rdx") rdx);
        }
        assert_eq!((rax, rdx), (1 << 63, 0));

        let (rax, rdx): (u64, u64);
        // SAFETY: the instruction reads and writes the named operands alone, which live.
        unsafe {
            asm!("cwd", "idiv cx", in("cx") -1_i16, inout("rax") 0xABCD_8000_u64 => rax,
                 inout("rdx") 0x1234_5678_u64 => rdx);
        }
        assert_eq!((rax, rdx), (0xABCD_8000, 0x1234_0000));

        let rax: u64;
        // SAFETY: the instruction reads and writes the named operands alone, which live.
        unsafe {
            asm!("idiv ch", in("ecx") 0x00FF_u32, inout("rax") 0x7777_FF80_u64 => rax);
        }
        assert_eq!(rax, 0x7777_8000, "by zero in the second byte of a register");

        let zeros = [5_u64, 0, 5];
        let (rax, rdx): (u64, u64);
        // SAFETY: the instruction reads and writes the named operands alone, which live.
        unsafe {
            asm!("xor edx, edx", "div qword ptr [{table} + {index} * 8 - 8]",
                 table = in(reg) zeros.as_ptr(), index = in(reg) 2_u64,
                 inout("rax") 9_u64 => rax, out("rdx") rdx);
        }
        assert_eq!((rax, rdx), (0, 9));

        let (rax, rdx): (u64, u64);
        // SAFETY: the instruction reads and writes the named operands alone, which live.
        unsafe {
            asm!("xor edx, edx", "div dword ptr [r12]", in("r12") &zeros[1],
                 inout("rax") 0xFFFF_FFFF_0000_0009_u64 => rax, out("rdx") rdx);
        }
        assert_eq!((rax, rdx), (0, 9));
    });
    assert_eq!(own.into_inner(), 5);
}

#[test]
fn only_the_run_with_the_fault_fails() {
    install();
    let domain = FaultDomain::new();
    assert_eq!(domain.run(|| divide(9, 2)), Ok((4, 1)));
    let barrier = Barrier::new(2);
    let beside = thread::scope(|scope| {
        let good = scope.spawn(|| {
            domain.run(|| {
                barrier.wait();
                barrier.wait();
                divide(9, 2)
            })
        });
        barrier.wait();
        assert_eq!(domain.run(|| divide(9, 0)), Err(DivisionFault));
        barrier.wait();
        good.join().expect("no panic")
    });
    assert_eq!(beside, Ok((4, 1)));
}

/// Divisors sent to a thread of a domain, each with where the result goes.
type Jobs = mpsc::Sender<(i32, mpsc::Sender<(i32, i32)>)>;

/// A thread of the domain's, which divides 9 as long as there are jobs.
fn helper(domain: &Arc<FaultDomain>) -> Jobs {
    let (jobs, queue) = mpsc::channel::<(i32, mpsc::Sender<_>)>();
    let domain = domain.clone();
    thread::spawn(move || {
        domain.on_own_thread(|| {
            queue.iter().for_each(|(divisor, done)| done.send(divide(9, divisor)).expect("sent"));
        });
    });
    jobs
}

/// A run that has the helper divide by `divisor`, between two meetings the first time: its result and how often it ran.
fn helped_run(
    domain: &FaultDomain,
    jobs: &Jobs,
    meet: &Barrier,
    divisor: i32,
) -> (Result<(i32, i32), DivisionFault>, usize) {
    let mut runs = 0;
    let result = domain.run(|| {
        runs += 1;
        let meet_once = || {
            if runs == 1 {
                meet.wait();
            }
        };
        meet_once();
        let (done, result) = mpsc::channel();
        jobs.send((divisor, done)).expect("sent");
        let result = result.recv().expect("computed");
        meet_once();
        result
    });
    (result, runs)
}

/// Two runs overlap, and a helper thread faults for one: that run fails, the other is repeated.
#[test]
fn a_fault_on_a_helper_thread_is_attributed_by_a_second_run() {
    install();
    let domain = FaultDomain::new();
    let (jobs, meet) = (helper(&domain), Barrier::new(2));
    thread::scope(|scope| {
        let bad = scope.spawn(|| helped_run(&domain, &jobs, &meet, 0));
        assert_eq!(helped_run(&domain, &jobs, &meet, 2), (Ok((4, 1)), 2));
        assert_eq!(bad.join().expect("no panic"), (Err(DivisionFault), 2));
    });
}

/// Held by tests that must not see each other's runs.
static UNKNOWN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn faults_of_unknown_threads_count_for_domains_that_may_own_them() {
    let _alone = UNKNOWN.lock();
    install();
    let domain = FaultDomain::with_unknown_threads();
    let helped =
        |divisor| move || thread::spawn(move || divide(9, divisor)).join().expect("no panic");
    assert_eq!(domain.run(helped(0)), Err(DivisionFault));
    assert_eq!(domain.run(helped(2)), Ok((4, 1)));
    assert_eq!(domain.run_once(helped(0)), Err(DivisionFault));
}

/// A child process that divides outside every run, or receives the signal, is killed by it.
#[test]
fn a_fault_outside_every_domain_ends_the_process() {
    let _alone = UNKNOWN.lock();
    install();
    let divides = || {
        divide(1, 0);
    };
    let is_sent_it = || {
        // SAFETY: sends a signal to this process.
        unsafe { libc::raise(libc::SIGFPE) };
    };
    for ends in [divides as fn(), is_sent_it] {
        // SAFETY: the child calls nothing but what a signal handler may, and ends.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                ends();
                libc::_exit(0);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            status
        };
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGFPE, "{status}");
    }
}
