//! Regions in the memory of GPUs. The driver is a table of allocations.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use galatea_gpu::{GpuError, IpcAllocation};
use galatea_types::LockExt as _;

use super::*;

/// Two GPUs, with one allocation that the handle of sevens opens.
#[derive(Debug, Default)]
struct TwoGpus {
    allocation: Arc<Mutex<Vec<u8>>>,
    /// Allocations that are open.
    open: Arc<AtomicUsize>,
}

/// The one allocation, opened.
#[derive(Debug)]
struct Opened {
    content: Arc<Mutex<Vec<u8>>>,
    open: Arc<AtomicUsize>,
}

const HANDLE: [u8; IpcHandle::LENGTH] = [7; IpcHandle::LENGTH];

impl IpcMemory for TwoGpus {
    fn open(
        &self,
        device: i64,
        handle: IpcHandle,
    ) -> std::result::Result<Arc<dyn IpcAllocation>, GpuError> {
        if !(0..2).contains(&device) {
            return Err(GpuError::NoSuchDevice(device, 2));
        }
        if Some(handle) != IpcHandle::from_bytes(&HANDLE) {
            return Err(GpuError::Call("cuIpcOpenMemHandle", "invalid argument".to_owned()));
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(Opened { content: self.allocation.clone(), open: self.open.clone() }))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Fails outside of the allocation, as the driver does after an error of the GPU.
impl IpcAllocation for Opened {
    fn byte_size(&self) -> u64 {
        self.content.lock_unpoisoned().len() as u64
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> std::result::Result<(), GpuError> {
        let content = self.content.lock_unpoisoned();
        let bytes = content.get(offset as usize..).and_then(|rest| rest.get(..target.len()));
        target.copy_from_slice(bytes.ok_or_else(lost)?);
        Ok(())
    }

    fn write(&self, offset: u64, source: &[u8]) -> std::result::Result<(), GpuError> {
        let mut content = self.content.lock_unpoisoned();
        let bytes = content.get_mut(offset as usize..).and_then(|r| r.get_mut(..source.len()));
        bytes.ok_or_else(lost)?.copy_from_slice(source);
        Ok(())
    }
}

fn lost() -> GpuError {
    GpuError::Call("cuStreamSynchronize", "an illegal memory access was encountered".to_owned())
}

struct CudaFixture {
    allocation: Arc<Mutex<Vec<u8>>>,
    open: Arc<AtomicUsize>,
    fixture: Fixture,
}

impl CudaFixture {
    fn within(memory: Arc<MemoryBudget>, content: &[u8]) -> Self {
        let gpus = TwoGpus::default();
        let (allocation, open) = (gpus.allocation.clone(), gpus.open.clone());
        *allocation.lock_unpoisoned() = content.to_vec();
        let Fixture { folder, table } = Fixture::within(memory);
        let table = table.with_gpus(Some(Arc::new(gpus)));
        Self { allocation, open, fixture: Fixture { folder, table } }
    }

    fn of(content: &[u8]) -> Self {
        Self::within(MemoryBudget::unlimited(), content)
    }

    fn register(&self, name: &str, byte_size: u64) -> Result<()> {
        self.fixture.table.register_cuda(on_gpu(name, 1, byte_size), &HANDLE)
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

fn on_gpu(name: &str, device_id: i64, byte_size: u64) -> CudaRegionDescription {
    CudaRegionDescription { name: name.into(), device_id, byte_size }
}

#[test]
fn bytes_are_copied_from_and_to_the_gpu_within_the_registered_size() {
    let budget = MemoryBudget::new(1 << 20);
    let cuda = CudaFixture::within(budget.clone(), &[1, 2, 3, 4, 5, 6, 7, 8]);
    cuda.register("r", 6).expect("it is there");
    let data = cuda.fixture.span(2, 3).expect("inside").read().expect("readable");
    assert_eq!(data, vec![3, 4, 5].into());
    assert!(data.is_aligned_to(galatea_types::BUFFER_ALIGNMENT));
    assert_eq!(budget.used(), 3);
    cuda.fixture.span(4, 2).expect("inside").place("y", &vec![9].into()).expect("it fits");
    assert_eq!(*cuda.allocation.lock_unpoisoned(), [1, 2, 3, 4, 9, 6, 7, 8]);
    assert_eq!(data, vec![3, 4, 5].into(), "a copy");
    drop(data);
    assert_eq!(budget.used(), 0);
    let text = "Invalid offset + byte size for shared memory region: 'r'";
    assert_fails(cuda.fixture.span(5, 2), Code::InvalidArg, text);
    let text = "Invalid offset for shared memory region: 'r'";
    assert_fails(cuda.fixture.span(6, 0), Code::InvalidArg, text);
}

#[test]
fn an_error_of_the_gpu_fails_the_request_and_no_other() {
    let cuda = CudaFixture::of(&[7; 64]);
    cuda.register("r", 64).expect("it is there");
    let span = cuda.fixture.span(32, 32).expect("inside");
    cuda.allocation.lock_unpoisoned().truncate(40);
    for action in ["read", "write"] {
        let text = format!(
            "Unable to {action} 32 bytes at offset 32 of CUDA shared memory region 'r': cuStreamSynchronize failed: \
             an illegal memory access was encountered"
        );
        match action {
            "read" => assert_fails(span.read(), Code::Internal, &text),
            _ => assert_fails(span.place("y", &vec![1; 32].into()), Code::Internal, &text),
        }
    }
    cuda.fixture.span(0, 40).expect("inside").read().expect("readable");
}

#[test]
fn regions_of_both_kinds_share_names_and_are_told_apart() {
    let cuda = CudaFixture::of(&[7; 64]);
    let table = &cuda.fixture.table;
    cuda.fixture.write_file("k", &[7; 64]);
    cuda.fixture.register("/k", 0, 64).expect("it is there");
    for name in ["c", "b"] {
        cuda.register(name, 64).expect("it is there");
    }
    let taken = |name| format!("shared memory region '{name}' already in manager");
    assert_fails(cuda.register("r", 64), Code::AlreadyExists, &taken("r"));
    let file = RegionDescription { name: "b".into(), ..description("", "/k", 0, 64) };
    assert_fails(table.register(file), Code::AlreadyExists, &taken("b"));
    assert_eq!(table.list_cuda(), ["b", "c"].map(|name| on_gpu(name, 1, 64)));
    assert_eq!(table.list(), [description("r", "/k", 0, 64)]);
    assert_eq!(table.cuda_status("c").expect("registered"), on_gpu("c", 1, 64));
    let text = "The region named 'c' is registered as CUDA shared memory, not system shared memory";
    assert_fails(table.status("c"), Code::NotFound, text);
    let text = "The region named 'r' is registered as system shared memory, not CUDA shared memory";
    assert_fails(table.cuda_status("r"), Code::NotFound, text);
    let text = "Unable to find cuda shared memory region: 'x'";
    assert_fails(table.cuda_status("x"), Code::NotFound, text);

    table.unregister("b");
    table.unregister_cuda("r");
    assert_eq!((table.list().len(), table.list_cuda().len()), (1, 2), "of the other kind");
    table.unregister_cuda("b");
    assert_eq!((cuda.open(), table.list_cuda().len()), (1, 1));
    table.unregister_all();
    assert_eq!((table.list().len(), table.list_cuda().len()), (0, 1));
    cuda.fixture.register("/k", 0, 64).expect("it is there");
    let span = RegionSpan::new(table.find("c").expect("registered"), 0, 64).expect("inside");
    table.unregister_all_cuda();
    assert_eq!((table.list().len(), table.list_cuda().len()), (1, 0));
    assert_eq!(span.read().expect("a request still uses it"), vec![7; 64].into());
    assert_eq!(cuda.open(), 1);
    drop(span);
    assert_eq!(cuda.open(), 0);
}

#[test]
fn a_refused_region_of_a_gpu_leaves_nothing_open() {
    let cuda = CudaFixture::of(&[7; 64]);
    let register = |device_id, byte_size, handle: &[u8]| {
        cuda.fixture.table.register_cuda(on_gpu("x", device_id, byte_size), handle)
    };
    let no_handle = "failed to register shared memory region: invalid args";
    for handle in [&[8; 64][..], &[7; 63], &[7; 65], &[]] {
        assert_fails(register(0, 64, handle), Code::InvalidArg, no_handle);
    }
    let no_size = "failed to register shared memory region 'x': invalid args";
    for byte_size in [65, u64::MAX] {
        assert_fails(register(0, byte_size, &HANDLE), Code::InvalidArg, no_size);
    }
    for device in [2, -1, i64::MAX] {
        let text = format!(
            "failed to register CUDA shared memory region 'x': device_id {device} is no GPU of this server, which has 2, \
             numbered from 0"
        );
        assert_fails(register(device, 64, &HANDLE), Code::InvalidArg, &text);
    }
    let long = "n".repeat(LONGEST_NAME + 1);
    let text = "the name of a shared memory region is 1025 bytes long, but may have 1024";
    assert_fails(cuda.register(&long, 64), Code::InvalidArg, text);
    assert_eq!(cuda.open(), 0);
    assert!(cuda.fixture.table.list_cuda().is_empty());
    register(0, 64, &HANDLE).expect("the name is free");
}

/// A driver that shows no GPU.
#[derive(Debug)]
struct NoGpu;

impl IpcMemory for NoGpu {
    fn open(
        &self,
        device: i64,
        _: IpcHandle,
    ) -> std::result::Result<Arc<dyn IpcAllocation>, GpuError> {
        Err(GpuError::NoSuchDevice(device, 0))
    }
}

#[test]
fn texts_without_a_driver_and_without_a_gpu_are_those_of_triton() {
    let no_gpu: Arc<dyn IpcMemory> = Arc::new(NoGpu);
    for (gpus, text) in [
        (None, "failed to register CUDA shared memory region: 'x', GPUs not supported"),
        (Some(no_gpu), "failed to register shared memory region: invalid args"),
    ] {
        let table = Fixture::new().table.with_gpus(gpus);
        assert_fails(table.register_cuda(on_gpu("x", 0, 64), &HANDLE), Code::InvalidArg, text);
    }
}
