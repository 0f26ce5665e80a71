//! Host buffers are aligned and shared; device buffers cannot be read by accident.

use super::*;
use crate::{Code, DataType, Error, Tensor};

fn host(buffer: &Buffer) -> &[u8] {
    buffer.host().expect("host memory")
}

#[test]
fn blocks_are_aligned() {
    for n in [0, 1, 63, 64, 65, 4096, 100_001] {
        let mut block = AlignedBlock::with_capacity(n);
        block.extend_from_slice(&vec![7; n]);
        let buffer = block.freeze();
        assert_eq!(buffer.len(), n);
        assert!(n == 0 || buffer.is_aligned_to(BUFFER_ALIGNMENT), "{n}");
    }
}

#[test]
fn an_allocation_the_system_cannot_satisfy_is_an_error() {
    assert!(AlignedBlock::try_with_capacity(usize::MAX / 2).is_err());
    let mut block = AlignedBlock::try_with_capacity(100).expect("little");
    assert!(block.try_reserve(usize::MAX / 2).is_err());
    block.extend_from_slice(&[5; 100]);
    block.try_reserve(1 << 20).expect("little");
    block.shrink_if_sparse();
    let buffer = block.freeze();
    assert!(buffer.is_aligned_to(BUFFER_ALIGNMENT));
    assert_eq!(host(&buffer), &[5; 100]);
}

#[test]
fn a_block_that_outgrows_its_capacity_stays_aligned() {
    let mut block = AlignedBlock::with_capacity(3);
    block.extend_from_slice(&[1; 1000]);
    let buffer = block.freeze();
    assert!(buffer.is_aligned_to(BUFFER_ALIGNMENT));
    assert_eq!(host(&buffer), &[1; 1000]);
}

#[test]
fn a_block_takes_as_much_as_was_asked_of_a_reader_that_gives_too_little_or_too_much() {
    let mut block = AlignedBlock::with_capacity(10);
    let mut asked_at = vec![];
    let read = |bytes: &mut Vec<u8>, read: usize| {
        asked_at.push(read);
        match asked_at.len() {
            1 => Err(std::io::ErrorKind::Interrupted.into()),
            2 => {
                bytes.extend_from_slice(&[1; 4]);
                Ok(())
            }
            _ => {
                bytes.extend_from_slice(&[2; 100]);
                Ok(())
            }
        }
    };
    block.append_read(10, read).expect("enough");
    assert_eq!(asked_at, [0, 0, 4]);
    assert_eq!(block.as_mut_slice(), [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
    let short = block.append_read(1, |_, _| Ok(())).expect_err("nothing comes");
    assert_eq!(short.kind(), std::io::ErrorKind::UnexpectedEof);
    let refused = block.append_read(1, |_, _| Err(std::io::ErrorKind::PermissionDenied.into()));
    assert_eq!(
        refused.expect_err("as the reader says").kind(),
        std::io::ErrorKind::PermissionDenied
    );
    assert_eq!(block.len(), 10);
}

#[test]
fn misaligned_slices_are_copied_and_aligned_ones_are_not() {
    let mut block = AlignedBlock::with_capacity(128);
    block.extend_from_slice(&[9; 128]);
    let whole = block.freeze();
    let aligned = whole.aligned(64).expect("host memory");
    assert_eq!(aligned.as_ptr(), host(&whole).as_ptr());
    let odd = whole.slice(1..100).expect("in range");
    let copy = odd.aligned(8).expect("host memory");
    assert!(copy.as_ptr().addr().is_multiple_of(8));
    assert_eq!(copy, host(&odd));
    assert!(whole.slice(100..129).is_none());
}

/// Stands in for a GPU's memory: a range of a block whose addresses mean nothing to the host.
#[derive(Debug)]
struct FakeDevice {
    block: Arc<Vec<u8>>,
    range: Range<usize>,
}

const GPU_1: Device = Device { kind: DeviceKind::Gpu, index: 1 };

impl DeviceMemory for FakeDevice {
    fn device(&self) -> Device {
        GPU_1
    }

    fn address(&self) -> usize {
        0x7000_0000 + self.range.start
    }

    fn len(&self) -> usize {
        self.range.len()
    }

    fn slice(self: Arc<Self>, range: Range<usize>) -> Arc<dyn DeviceMemory> {
        let range = self.range.start + range.start..self.range.start + range.end;
        Arc::new(Self { block: self.block.clone(), range })
    }

    fn copy_to_host(&self, target: &mut [u8]) -> Result<()> {
        target.copy_from_slice(&self.block[self.range.clone()]);
        Ok(())
    }
}

fn on_device(bytes: &[u8]) -> Buffer {
    let block = Arc::new(bytes.to_vec());
    Buffer::Device(Arc::new(FakeDevice { block, range: 0..bytes.len() }))
}

#[test]
fn the_host_cannot_read_device_memory() {
    let buffer = on_device(b"abcdef");
    assert_eq!((buffer.memory(), buffer.len()), (Memory::Device(GPU_1), 6));
    assert_eq!(buffer.host(), Err(NotInHostMemory { device: GPU_1 }));
    assert!(buffer.host_bytes().is_err() && buffer.aligned(1).is_err());
    let error = Error::from(buffer.host().expect_err("on a device"));
    assert_eq!(error.code(), Code::Unsupported);
    assert_eq!(format!("{buffer:?}"), "Buffer(6 bytes in the memory of GPU 1)");

    let tensor = Tensor::new("x", DataType::Uint8, [6], buffer);
    let error = tensor.host().expect_err("on a device");
    let text = "tensor 'x': the data lies in the memory of GPU 1, where the host cannot read it";
    assert_eq!((error.code(), error.message()), (Code::Unsupported, text));
}

#[test]
fn device_memory_is_sliced_in_place_and_copied_on_request() {
    let whole = on_device(b"abcdef");
    let part = whole.slice(2..5).expect("in range");
    assert_eq!(part.memory(), Memory::Device(GPU_1));
    assert_eq!(part.to_host().expect("copied"), &b"cde"[..]);
    assert!(whole.slice(4..7).is_none());
    assert_eq!(part, whole.slice(2..5).expect("in range"));
    assert_ne!(part, Buffer::from(b"cde".to_vec()));
    assert!(whole.is_aligned_to(64) && !part.is_aligned_to(64));
}
