//! A device whose memory the host cannot read.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use galatea_types::{
    Buffer, Device, DeviceAllocator, DeviceBlock, DeviceKind, DeviceMemory, Error, LockExt, Result,
};

/// A replacement for a GPU. Its memory is never freed. The host reads it only by copies, which are counted.
#[derive(Clone)]
pub struct FakeDevice(Arc<Inner>);

struct Inner {
    device: Device,
    blocks: Mutex<Blocks>,
    copies_to_host: AtomicUsize,
}

#[derive(Default)]
struct Blocks {
    /// By address.
    sealed: BTreeMap<usize, Vec<u8>>,
    next: usize,
}

impl FakeDevice {
    /// Creates the GPU with this number.
    pub fn gpu(index: u32) -> Self {
        Self(Arc::new(Inner {
            device: Device { kind: DeviceKind::Gpu, index },
            blocks: Mutex::default(),
            copies_to_host: AtomicUsize::new(0),
        }))
    }

    /// Copies the bytes to the device.
    pub fn buffer(&self, bytes: &[u8]) -> Buffer {
        Buffer::Device(Arc::new(self.memory(bytes)))
    }

    fn memory(&self, bytes: &[u8]) -> Memory {
        let mut blocks = self.0.blocks.lock_unpoisoned();
        blocks.next = (blocks.next + bytes.len() + 1).next_multiple_of(64);
        let address = blocks.next;
        blocks.next += bytes.len();
        blocks.sealed.insert(address, bytes.to_vec());
        Memory { device: self.clone(), address, length: bytes.len() }
    }

    /// Computes on the device: applies `of` to each byte of `input`, which must be in its memory.
    ///
    /// # Errors
    /// The input is in another memory.
    pub fn map(&self, input: &Buffer, of: impl Fn(u8) -> u8) -> Result<Buffer> {
        let bytes = match input {
            Buffer::Device(memory) if memory.device() == self.0.device => {
                self.read(memory.address(), memory.len())
            }
            _ => return Err(Error::internal(format!("it lies in {}", input.memory()))),
        };
        let bytes: Vec<u8> = bytes.into_iter().map(of).collect();
        Ok(self.buffer(&bytes))
    }

    /// Returns the number of copies to the host.
    pub fn copies_to_host(&self) -> usize {
        self.0.copies_to_host.load(Ordering::SeqCst)
    }

    fn read(&self, address: usize, length: usize) -> Vec<u8> {
        let blocks = self.0.blocks.lock_unpoisoned();
        let block = blocks.sealed.range(..=address).next_back();
        let part = block.and_then(|(start, block)| block.get(address - start..)?.get(..length));
        part.unwrap_or_default().to_vec()
    }
}

impl fmt::Debug for FakeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeDevice({})", self.0.device)
    }
}

impl DeviceAllocator for FakeDevice {
    fn device(&self) -> Device {
        self.0.device
    }

    fn allocate(&self, byte_size: usize) -> Result<Box<dyn DeviceBlock>> {
        Ok(Box::new(Block { device: self.clone(), bytes: vec![0; byte_size] }))
    }
}

struct Block {
    device: FakeDevice,
    bytes: Vec<u8>,
}

impl DeviceBlock for Block {
    fn address(&self) -> usize {
        0
    }

    fn write(&mut self, offset: usize, data: &Buffer) -> Result<()> {
        let bytes = match data {
            Buffer::Device(memory) if memory.device() == self.device.0.device => {
                self.device.read(memory.address(), memory.len())
            }
            _ => data.to_host()?.to_vec(),
        };
        let place = self.bytes.get_mut(offset..).and_then(|rest| rest.get_mut(..bytes.len()));
        place.ok_or_else(|| Error::invalid_arg("it does not fit"))?.copy_from_slice(&bytes);
        Ok(())
    }

    fn freeze(self: Box<Self>) -> Arc<dyn DeviceMemory> {
        Arc::new(self.device.memory(&self.bytes))
    }
}

#[derive(Debug)]
struct Memory {
    device: FakeDevice,
    address: usize,
    length: usize,
}

impl DeviceMemory for Memory {
    fn device(&self) -> Device {
        self.device.0.device
    }

    fn address(&self) -> usize {
        self.address
    }

    fn len(&self) -> usize {
        self.length
    }

    fn slice(self: Arc<Self>, range: Range<usize>) -> Arc<dyn DeviceMemory> {
        let (address, length) = (self.address + range.start, range.len());
        Arc::new(Self { device: self.device.clone(), address, length })
    }

    fn copy_to_host(&self, target: &mut [u8]) -> Result<()> {
        self.device.0.copies_to_host.fetch_add(1, Ordering::SeqCst);
        target.copy_from_slice(&self.device.read(self.address, self.length));
        Ok(())
    }
}
