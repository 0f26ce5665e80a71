//! Allocations of others, with functions in place of the driver's.

mod fake;

use std::thread;

use super::*;

/// The driver's handles of its two GPUs.
const DEVICES: [usize; 2] = [10, 11];

fn memory() -> CudaIpcMemory {
    CudaIpcMemory::of(fake::library())
}

/// One test has a GPU at a time: its counts are compared.
fn assert_all_is_given_back(device: usize) {
    fake::with(device, |gpu| {
        assert_eq!((gpu.contexts, gpu.streams, gpu.unfinished), (0, 0, 0));
        assert!(gpu.open.is_empty());
    });
    assert_eq!(fake::entered(), 0);
}

#[test]
fn bytes_are_copied_and_everything_is_given_back_with_the_last_user() {
    let memory = memory();
    let handle = fake::allocate(DEVICES[0], 1, &[1, 2, 3, 4, 5]);
    assert_all_is_given_back(DEVICES[0]);
    let allocation = memory.open(0, handle).expect("it is there");
    assert_eq!(allocation.byte_size(), 5, "from the handle's start");
    let mut bytes = [0; 3];
    allocation.read(1, &mut bytes).expect("inside");
    assert_eq!(bytes, [2, 3, 4]);
    allocation.write(3, &[8, 9]).expect("inside");
    fake::with(DEVICES[0], |gpu| {
        assert_eq!(gpu.content[&1], [1, 2, 3, 8, 9]);
        assert_eq!((gpu.contexts, gpu.streams, gpu.unfinished), (1, 1, 0));
    });
    assert_eq!(fake::entered(), 0, "the thread has its own context again");
    for (offset, length) in [(5, 1), (0, 6), (u64::MAX, 2)] {
        let error = allocation.read(offset, &mut vec![0; length]).expect_err("outside");
        assert!(matches!(error, GpuError::OutOfRange(..)), "{error}");
        assert!(allocation.write(offset, &vec![0; length]).is_err());
    }

    let same = memory.open(0, handle).expect("shared");
    assert_eq!(fake::with(DEVICES[0], |gpu| gpu.openings), 1);
    drop(allocation);
    same.read(0, &mut bytes).expect("still open");
    drop(same);
    assert_all_is_given_back(DEVICES[0]);

    drop(memory.open(0, handle).expect("opened anew"));
    assert_eq!(fake::with(DEVICES[0], |gpu| gpu.openings), 2);
    assert_refusals_give_everything_back(&memory);
}

/// What the driver refuses is an error with its text, and leaves nothing behind.
fn assert_refusals_give_everything_back(memory: &CudaIpcMemory) {
    let [refused, empty] = [IpcHandle([9; IpcHandle::LENGTH]), fake::allocate(DEVICES[0], 2, &[])];
    for (handle, call) in [(refused, "cuIpcOpenMemHandle"), (empty, "cuMemGetAddressRange")] {
        for _ in 0..2 {
            let error = memory.open(0, handle).expect_err("refused").to_string();
            assert_eq!(error, format!("{call} failed: driver and library do not match"));
            assert_all_is_given_back(DEVICES[0]);
        }
    }
    let handle = fake::allocate(DEVICES[0], 1, &[1, 2]);
    fake::with(DEVICES[0], |gpu| gpu.stream_result = 2);
    let error = memory.open(0, handle).expect_err("no stream").to_string();
    assert!(error.starts_with("cuStreamCreate failed: "), "{error}");
    assert_all_is_given_back(DEVICES[0]);
    fake::with(DEVICES[0], |gpu| gpu.stream_result = 0);

    // An error that is known only after the call is that of the copy which waits.
    let allocation = memory.open(0, handle).expect("it is there");
    fake::with(DEVICES[0], |gpu| gpu.next_result = 700);
    let error = allocation.write(0, &[1]).expect_err("late").to_string();
    assert!(error.starts_with("cuStreamSynchronize failed: "), "{error}");
    allocation.read(0, &mut [0]).expect("the next copy has no error");
    drop(allocation);
    assert_all_is_given_back(DEVICES[0]);
}

#[test]
fn threads_that_open_and_close_one_handle_share_it() {
    let memory = memory();
    let handle = fake::allocate(DEVICES[1], 3, &[7; 64]);
    let use_it = || {
        for _ in 0..200 {
            let allocation = memory.open(1, handle).expect("never refused");
            let mut bytes = [0; 64];
            allocation.read(0, &mut bytes).expect("inside");
            assert_eq!(bytes, [7; 64]);
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(use_it);
        }
    });
    assert_all_is_given_back(DEVICES[1]);
}

#[test]
fn a_gpu_that_is_not_there_is_named_with_their_number() {
    let handle = IpcHandle([1; IpcHandle::LENGTH]);
    for device in [2, -1, i64::MAX] {
        let error = memory().open(device, handle).expect_err("no such GPU").to_string();
        assert_eq!(error, format!("there is no GPU {device}: the driver shows 2, numbered from 0"));
    }
    let library = Library { driver: Driver::fake_without_gpus(), ..fake::library() };
    let error = CudaIpcMemory::of(library).open(0, handle).expect_err("no GPU");
    assert!(matches!(error, GpuError::NoSuchDevice(0, 0)), "{error}");
}

#[test]
fn handles_have_one_length_and_are_not_printed() {
    assert!(IpcHandle::from_bytes(&[1; 63]).is_none() && IpcHandle::from_bytes(&[]).is_none());
    let handle = IpcHandle::from_bytes(&[1; 64]).expect("a handle");
    assert_eq!(format!("{handle:?}"), "IpcHandle");
}
