//! The entries that a library fills or reads during a call (`TRITONCACHE_CacheEntry`).

use std::{
    ffi::c_void,
    ptr,
    sync::{Arc, Mutex},
};

use galatea_triton_c::{
    Kind, Registered, Table, abi, call,
    objects::buffer_attributes::{self, Attributes},
};
use galatea_types::{Error, LockExt as _, Result};

/// Most bytes of an entry that a library returns.
pub(crate) const MAX_BYTES: usize = 64 << 20;
/// Most buffers of an entry.
const MOST_BUFFERS: usize = 1024;

const ENTRY: Kind = Kind { number: 50, name: "TRITONCACHE_CacheEntry" };
const ALLOCATOR: Kind = Kind { number: 51, name: "TRITONCACHE_Allocator" };
/// As many as there are calls at a time.
static ENTRIES: Table<abi::CacheEntry, HeldEntry> = Table::new(ENTRY, 1 << 10);

/// An entry during one call of the library.
#[derive(Default)]
struct HeldEntry {
    /// The bytes to store; `None` during a look-up.
    stored: Option<Vec<u8>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The buffers of the library: those of a look-up, or the place for the bytes to store.
    buffers: Vec<LibraryBuffer>,
    /// The bytes that a look-up has found.
    found: Option<Vec<u8>>,
}

/// Memory of the library, which is valid during the call.
#[derive(Clone, Copy)]
struct LibraryBuffer {
    base: *mut u8,
    attributes: Attributes,
}

// SAFETY: the memory may be used by all threads that the library calls from.
unsafe impl Send for LibraryBuffer {}

/// An entry for one call. Its handles are invalid once this is dropped.
pub(crate) struct Entry {
    held: Arc<HeldEntry>,
    registered: Registered<abi::CacheEntry, HeldEntry>,
}

impl Entry {
    /// Makes an entry with bytes to store.
    ///
    /// # Errors
    /// `Unavailable` if there are too many calls at a time.
    pub fn holding(bytes: Vec<u8>) -> Result<Self> {
        Self::register(HeldEntry { stored: Some(bytes), ..HeldEntry::default() })
    }

    /// Makes an entry without bytes, for a look-up.
    ///
    /// # Errors
    /// Those of [`Entry::holding`].
    pub fn empty() -> Result<Self> {
        Self::register(HeldEntry::default())
    }

    fn register(held: HeldEntry) -> Result<Self> {
        let held = Arc::new(held);
        Ok(Self { registered: ENTRIES.register(held.clone())?, held })
    }

    pub fn handle(&self) -> *mut abi::CacheEntry {
        self.registered.handle()
    }

    /// Returns the handle by which the library has the bytes copied.
    ///
    /// # Errors
    /// None: the entry is registered.
    pub fn allocator(&self) -> Result<*mut abi::CacheAllocator> {
        ENTRIES.part(self.handle(), ALLOCATOR, 0)
    }

    /// Returns the bytes that the library has had copied out.
    ///
    /// # Errors
    /// `Internal` if it has had none copied.
    pub fn into_found(self) -> Result<Vec<u8>> {
        self.held.state.lock_unpoisoned().found.take().ok_or_else(|| {
            Error::internal("the cache found an entry, but never called TRITONCACHE_Copy for it")
        })
    }
}

impl HeldEntry {
    /// Copies between the buffers of the library and the entry's own bytes.
    ///
    /// # Safety
    /// The library's buffers have the sizes that it gave, and nobody else uses them meanwhile.
    unsafe fn copy(&self) -> Result<()> {
        let mut state = self.state.lock_unpoisoned();
        let [buffer] = state.buffers[..] else {
            let count = state.buffers.len();
            return Err(Error::internal(format!("the entry has {count} buffers to copy, not one")));
        };
        let size = buffer.attributes.byte_size;
        match &self.stored {
            Some(bytes) if bytes.len() == size => {
                // SAFETY: the caller's word; `bytes` has `size` bytes.
                unsafe { ptr::copy(bytes.as_ptr(), buffer.base, size) };
            }
            Some(bytes) => {
                let wanted = bytes.len();
                return Err(Error::internal(format!(
                    "the buffer for the entry has {size} bytes, not {wanted}"
                )));
            }
            None => {
                let mut found = vec![0; size];
                // SAFETY: the caller's word; `found` has `size` bytes.
                unsafe { ptr::copy(buffer.base, found.as_mut_ptr(), size) };
                state.found = Some(found);
            }
        }
        Ok(())
    }

    /// Returns the number of buffers that the library sees.
    fn count(&self) -> usize {
        if self.stored.is_some() { 1 } else { self.state.lock_unpoisoned().buffers.len() }
    }

    fn add(&self, buffer: LibraryBuffer) -> Result<()> {
        if self.stored.is_some() {
            return Err(Error::invalid_arg("an entry that is stored takes no more buffers"));
        }
        let mut state = self.state.lock_unpoisoned();
        let before: usize = state.buffers.iter().map(|buffer| buffer.attributes.byte_size).sum();
        let size = buffer.attributes.byte_size;
        if state.buffers.len() >= MOST_BUFFERS || size > MAX_BYTES.saturating_sub(before) {
            return Err(Error::invalid_arg(format!(
                "an entry takes at most {MOST_BUFFERS} buffers and {MAX_BYTES} bytes"
            )));
        }
        state.buffers.push(buffer);
        Ok(())
    }

    fn buffer(&self, index: usize) -> Result<LibraryBuffer> {
        let own = self.stored.as_ref().filter(|_| index == 0).map(|bytes| LibraryBuffer {
            base: bytes.as_ptr().cast_mut(),
            attributes: Attributes { byte_size: bytes.len(), ..Attributes::default() },
        });
        let given = || self.state.lock_unpoisoned().buffers.get(index).copied();
        given().or(own).ok_or_else(|| self.out_of_range(index))
    }

    /// Replaces a buffer. Without attributes the size stays the same.
    fn set(&self, index: usize, base: *mut u8, attributes: Option<Attributes>) -> Result<()> {
        let attributes = match attributes {
            Some(attributes) => attributes,
            None => self.buffer(index)?.attributes,
        };
        if attributes.byte_size > MAX_BYTES {
            return Err(Error::invalid_arg(format!("an entry takes at most {MAX_BYTES} bytes")));
        }
        let mut state = self.state.lock_unpoisoned();
        let buffer = LibraryBuffer { base, attributes };
        match state.buffers.get_mut(index) {
            Some(place) => *place = buffer,
            None if index == 0 && self.stored.is_some() => state.buffers.push(buffer),
            None => return Err(self.out_of_range(index)),
        }
        Ok(())
    }

    fn out_of_range(&self, index: usize) -> Error {
        Error::invalid_arg(format!("the entry has no buffer {index}"))
    }
}

/// Returns the attributes of a buffer in memory of the host.
fn in_host_memory(attributes: *const abi::BufferAttributes) -> Result<Attributes> {
    let read = buffer_attributes::read(attributes)?;
    match read.memory_type {
        abi::memory::CPU | abi::memory::CPU_PINNED => Ok(read),
        _ => Err(Error::unsupported("the buffers of a cache must be in memory of the host")),
    }
}

fn checked(base: *mut c_void, attributes: &Attributes) -> Result<*mut u8> {
    match base.is_null() && attributes.byte_size > 0 {
        true => Err(Error::invalid_arg("the buffer of a cache is null")),
        false => Ok(base.cast()),
    }
}

pub(crate) unsafe extern "C" fn api_version(major: *mut u32, minor: *mut u32) -> *mut abi::Error {
    call::answer("TRITONCACHE_ApiVersion", || {
        let [own_major, own_minor] = abi::CACHE_VERSION;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(major, own_major, "the major version")?;
            call::put(minor, own_minor, "the minor version")
        }
    })
}

pub(crate) unsafe extern "C" fn buffer_count(
    entry: *mut abi::CacheEntry,
    count: *mut usize,
) -> *mut abi::Error {
    call::answer("TRITONCACHE_CacheEntryBufferCount", || {
        let buffers = ENTRIES.get(entry)?.count();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(count, buffers, "the count") }
    })
}

pub(crate) unsafe extern "C" fn add_buffer(
    entry: *mut abi::CacheEntry,
    base: *mut c_void,
    attributes: *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONCACHE_CacheEntryAddBuffer", || {
        let attributes = in_host_memory(attributes)?;
        let base = checked(base, &attributes)?;
        ENTRIES.get(entry)?.add(LibraryBuffer { base, attributes })
    })
}

pub(crate) unsafe extern "C" fn get_buffer(
    entry: *mut abi::CacheEntry,
    index: usize,
    base: *mut *mut c_void,
    attributes: *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONCACHE_CacheEntryGetBuffer", || {
        let buffer = ENTRIES.get(entry)?.buffer(index)?;
        buffer_attributes::write(attributes, buffer.attributes)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(base, buffer.base.cast(), "the buffer") }
    })
}

pub(crate) unsafe extern "C" fn set_buffer(
    entry: *mut abi::CacheEntry,
    index: usize,
    base: *mut c_void,
    attributes: *mut abi::BufferAttributes,
) -> *mut abi::Error {
    call::answer("TRITONCACHE_CacheEntrySetBuffer", || {
        let held = ENTRIES.get(entry)?;
        let given = (!attributes.is_null()).then(|| in_host_memory(attributes)).transpose()?;
        let known = held.buffer(index)?.attributes;
        held.set(index, checked(base, &given.unwrap_or(known))?, given)
    })
}

pub(crate) unsafe extern "C" fn copy(
    allocator: *mut abi::CacheAllocator,
    entry: *mut abi::CacheEntry,
) -> *mut abi::Error {
    call::answer("TRITONCACHE_Copy", || {
        let held = ENTRIES.get(entry)?;
        let (of_allocator, _) = ENTRIES.of_part(allocator, ALLOCATOR)?;
        if !Arc::ptr_eq(&held, &of_allocator) {
            return Err(Error::invalid_arg("the allocator is that of another entry"));
        }
        // SAFETY: the library has given these buffers with their sizes for this call.
        unsafe { held.copy() }
    })
}

#[cfg(test)]
mod tests {
    use galatea_triton_c::objects::{buffer_attributes::OwnAttributes, errors};

    use super::*;

    fn message(error: *mut abi::Error) -> String {
        errors::take(error).map(|error| error.message().to_owned()).unwrap_or_default()
    }

    fn attributes(byte_size: usize) -> OwnAttributes {
        OwnAttributes::new(Attributes { byte_size, ..Attributes::default() }).expect("a place")
    }

    #[test]
    fn bytes_are_copied_to_the_place_of_the_library() {
        let entry = Entry::holding(vec![1, 2, 3]).expect("an entry");
        let (mut count, mut base, mut place) = (0, ptr::null_mut(), [0_u8; 3]);
        let told = attributes(0);
        // SAFETY: valid places, and buffers of three bytes.
        unsafe {
            assert_eq!(message(buffer_count(entry.handle(), &mut count)), "");
            assert_eq!(message(get_buffer(entry.handle(), 0, &mut base, told.handle())), "");
            assert_eq!(count, 1);
            assert_eq!(buffer_attributes::read(told.handle()).expect("attributes").byte_size, 3);
            let allocator = entry.allocator().expect("one");
            assert!(message(copy(allocator, entry.handle())).contains("0 buffers to copy"));
            let place = place.as_mut_ptr().cast();
            assert_eq!(message(set_buffer(entry.handle(), 0, place, ptr::null_mut())), "");
            assert_eq!(message(copy(allocator, entry.handle())), "");
            let small = attributes(2);
            assert_eq!(message(set_buffer(entry.handle(), 0, place, small.handle())), "");
            assert!(message(copy(allocator, entry.handle())).contains("2 bytes, not 3"));
        }
        assert_eq!(place, [1, 2, 3]);
    }

    #[test]
    fn the_found_bytes_are_those_of_the_copy() {
        let entry = Entry::empty().expect("an entry");
        let (mut bytes, size) = ([7_u8, 8], attributes(2));
        // SAFETY: a buffer of two bytes.
        unsafe {
            let base = bytes.as_mut_ptr().cast();
            assert_eq!(message(add_buffer(entry.handle(), base, size.handle())), "");
            assert_eq!(message(copy(entry.allocator().expect("one"), entry.handle())), "");
        }
        bytes.fill(0);
        assert_eq!(entry.into_found().expect("copied"), [7, 8]);
        let never = Entry::empty().expect("an entry").into_found().expect_err("nothing");
        assert!(never.message().contains("never called TRITONCACHE_Copy"), "{never}");
    }

    #[test]
    fn misuse_is_an_error_of_the_call() {
        let (entry, other) = (Entry::empty().expect("one"), Entry::empty().expect("one"));
        let (handle, gone) = (entry.handle(), other.handle());
        let (byte, huge) = (&mut 0_u8 as *mut u8, attributes(MAX_BYTES + 1));
        let gpu = Attributes { memory_type: abi::memory::GPU, byte_size: 1, memory_type_id: 0 };
        let gpu = OwnAttributes::new(gpu).expect("a place");
        // SAFETY: no buffer is read; handles are checked.
        unsafe {
            let one = attributes(1);
            assert!(message(add_buffer(handle, ptr::null_mut(), one.handle())).contains("is null"));
            assert!(message(add_buffer(handle, byte.cast(), huge.handle())).contains("at most"));
            assert!(message(add_buffer(handle, byte.cast(), gpu.handle())).contains("of the host"));
            let null = ptr::null_mut();
            assert!(message(add_buffer(handle, byte.cast(), null)).contains("is null"));
            let mut base = ptr::null_mut();
            let told = message(get_buffer(handle, 5, &mut base, one.handle()));
            assert_eq!(told, "the entry has no buffer 5");
            let told = message(copy(other.allocator().expect("one"), handle));
            assert_eq!(told, "the allocator is that of another entry");
            drop(other);
            let mut count = 0;
            assert!(message(buffer_count(gone, &mut count)).contains("was released before"));
            assert!(message(buffer_count(byte.cast(), &mut count)).contains("is no TRITONCACHE"));
        }
    }
}
