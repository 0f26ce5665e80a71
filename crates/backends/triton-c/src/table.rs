//! Handles of objects that libraries hold.

use std::{
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    ptr,
    sync::{Arc, Mutex, OnceLock},
};

use galatea_types::{Error, LockExt as _, Result};

/// A kind of object. Each table and each kind of part has a number of its own: 1 to 19 for this crate, 20 to 49 for backends,
/// 50 to 79 for caches and agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The number, from 1 to 127.
    pub number: u8,
    /// The name of the C type, for errors.
    pub name: &'static str,
}

const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = 24;
const PART_BITS: u32 = 12;
const CHUNK: usize = 1024;
const CHUNKS: usize = (1 << INDEX_BITS) / CHUNK;

/// Most parts of an object.
const MOST_PARTS: usize = 1 << PART_BITS;

/// The objects of one kind that libraries hold, by handles of the C type `H`.
///
/// A handle is no address: it has the kind of the object, its place here, and how often the place was used. So a handle that
/// was released is not mistaken for its successor, until the place was used 16 million times.
pub struct Table<H, T> {
    kind: Kind,
    most: usize,
    chunks: [OnceLock<Box<[Place<T>]>>; CHUNKS],
    spare: Mutex<Spare>,
    handle: PhantomData<fn() -> H>,
}

type Place<T> = Mutex<Entry<T>>;

struct Entry<T> {
    generation: u64,
    object: Option<Arc<T>>,
}

struct Spare {
    /// Places that were used, the longest unused first.
    freed: VecDeque<usize>,
    /// The first place that was never used.
    next: usize,
}

/// A handle taken apart.
#[derive(Clone, Copy)]
struct Fields {
    kind: u8,
    part: usize,
    generation: u64,
    index: usize,
}

impl Fields {
    fn to_address(self) -> usize {
        let Self { kind, part, generation, index } = self;
        let generation = usize::try_from(generation).unwrap_or(0) << INDEX_BITS;
        let part = part << (INDEX_BITS + GENERATION_BITS);
        usize::from(kind) << (INDEX_BITS + GENERATION_BITS + PART_BITS) | part | generation | index
    }

    fn of(address: usize) -> Self {
        let bits = |from: u32, count: u32| address >> from & ((1 << count) - 1);
        let kind = address >> (INDEX_BITS + GENERATION_BITS + PART_BITS);
        Self {
            kind: u8::try_from(kind).unwrap_or(0),
            part: bits(INDEX_BITS + GENERATION_BITS, PART_BITS),
            generation: u64::try_from(bits(INDEX_BITS, GENERATION_BITS)).unwrap_or(0),
            index: bits(0, INDEX_BITS),
        }
    }
}

impl<H, T> Table<H, T> {
    /// Makes an empty table for at most `most` objects at a time (at most a million).
    pub const fn new(kind: Kind, most: usize) -> Self {
        Self {
            kind,
            most,
            chunks: [const { OnceLock::new() }; CHUNKS],
            spare: Mutex::new(Spare { freed: VecDeque::new(), next: 0 }),
            handle: PhantomData,
        }
    }

    /// Adds an object and returns its handle.
    ///
    /// # Errors
    /// `Unavailable` if the table is full: a library does not release what it makes.
    pub fn insert(&self, object: Arc<T>) -> Result<*mut H> {
        let index = self.take_place()?;
        let Some(place) = self.place(index) else { return Err(self.full()) };
        let mut held = place.lock_unpoisoned();
        held.object = Some(object);
        let fields = Fields { kind: self.kind.number, part: 0, generation: held.generation, index };
        Ok(ptr::without_provenance_mut(fields.to_address()))
    }

    /// Adds an object that the server removes itself.
    ///
    /// # Errors
    /// Those of [`Table::insert`].
    pub fn register(&'static self, object: Arc<T>) -> Result<Registered<H, T>> {
        Ok(Registered { table: self, handle: self.insert(object)? })
    }

    /// Returns the object of a handle.
    ///
    /// # Errors
    /// `InvalidArg` with the cause [`Misuse`](crate::call::Misuse) if it is no handle of a live object of this kind.
    #[inline]
    pub fn get(&self, handle: *const H) -> Result<Arc<T>> {
        let fields = self.fields(handle, self.kind)?;
        self.find(fields).ok_or_else(|| self.released(self.kind))
    }

    /// Removes the object of a handle and returns it. The handle is invalid from then on.
    ///
    /// # Errors
    /// Those of [`Table::get`].
    pub fn remove(&self, handle: *const H) -> Result<Arc<T>> {
        let fields = self.fields(handle, self.kind)?;
        self.remove_at(fields).ok_or_else(|| self.released(self.kind))
    }

    /// Removes the object of a handle, or does nothing for null, as functions that delete do.
    ///
    /// # Errors
    /// Those of [`Table::get`].
    pub fn delete(&self, handle: *const H) -> Result<()> {
        if handle.is_null() { Ok(()) } else { self.remove(handle).map(drop) }
    }

    /// Removes the objects that `is_wanted` returns true for, and returns them.
    pub fn remove_all(&self, is_wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let used = self.spare.lock_unpoisoned().next;
        let mut removed = Vec::new();
        for index in 0..used {
            let Some(place) = self.place(index) else { break };
            let (object, generation) = {
                let held = place.lock_unpoisoned();
                (held.object.clone(), held.generation)
            };
            if object.is_some_and(|object| is_wanted(&object)) {
                let fields = Fields { kind: self.kind.number, part: 0, generation, index };
                removed.extend(self.remove_at(fields));
            }
        }
        removed
    }

    /// Returns the number of live objects.
    pub fn len(&self) -> usize {
        let spare = self.spare.lock_unpoisoned();
        spare.next - spare.freed.len()
    }

    /// Returns true if there is no live object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the handle of a part of an object, such as an input of a request. It is valid as long as the object's own.
    ///
    /// # Errors
    /// Those of [`Table::get`] for a handle of another kind, and `Unsupported` beyond the first 4,096 parts.
    pub fn part<P>(&self, handle: *const H, kind: Kind, part: usize) -> Result<*mut P> {
        let fields = self.fields(handle, self.kind)?;
        if part >= MOST_PARTS {
            let text = format!("a {} cannot have more than {MOST_PARTS} parts", self.kind.name);
            return Err(Error::unsupported(text));
        }
        let address = Fields { kind: kind.number, part, ..fields }.to_address();
        Ok(ptr::without_provenance_mut(address))
    }

    /// Returns the object that has a part, and the number of the part.
    ///
    /// # Errors
    /// Those of [`Table::get`].
    #[inline]
    pub fn of_part<P>(&self, handle: *const P, kind: Kind) -> Result<(Arc<T>, usize)> {
        let fields = self.fields(handle, kind)?;
        let object = self.find(fields).ok_or_else(|| self.released(kind))?;
        Ok((object, fields.part))
    }

    #[inline]
    fn fields<P>(&self, handle: *const P, kind: Kind) -> Result<Fields> {
        let fields = Fields::of(handle.addr());
        match () {
            () if fields.kind == kind.number => Ok(fields),
            () if handle.is_null() => Err(misuse(format!("the {} is null", kind.name))),
            () => Err(misuse(format!("the pointer is no {}", kind.name))),
        }
    }

    #[cold]
    fn released(&self, kind: Kind) -> Error {
        misuse(format!("the {} was released before", kind.name))
    }

    #[inline]
    fn find(&self, fields: Fields) -> Option<Arc<T>> {
        let held = self.place_in_use(fields.index)?.lock_unpoisoned();
        (held.generation == fields.generation).then(|| held.object.clone()).flatten()
    }

    fn remove_at(&self, fields: Fields) -> Option<Arc<T>> {
        let object = {
            let mut held = self.place_in_use(fields.index)?.lock_unpoisoned();
            if held.generation != fields.generation {
                return None;
            }
            let object = held.object.take()?;
            held.generation = (held.generation + 1) & ((1 << GENERATION_BITS) - 1);
            object
        };
        self.spare.lock_unpoisoned().freed.push_back(fields.index);
        Some(object)
    }

    fn take_place(&self) -> Result<usize> {
        let mut spare = self.spare.lock_unpoisoned();
        if let Some(index) = spare.freed.pop_front() {
            return Ok(index);
        }
        if spare.next >= self.most.min(CHUNK * CHUNKS) {
            return Err(self.full());
        }
        spare.next += 1;
        Ok(spare.next - 1)
    }

    #[cold]
    fn full(&self) -> Error {
        Error::unavailable(format!(
            "{} objects {} are in use, the most that there may be: the library does not release them",
            self.most, self.kind.name
        ))
    }

    fn place(&self, index: usize) -> Option<&Place<T>> {
        let chunk = self.chunks.get(index / CHUNK)?.get_or_init(|| {
            let places = (0..CHUNK).map(|_| Mutex::new(Entry { generation: 0, object: None }));
            places.collect()
        });
        chunk.get(index % CHUNK)
    }

    #[inline]
    fn place_in_use(&self, index: usize) -> Option<&Place<T>> {
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)
    }
}

/// An object of the server's own in a table. Its handle is valid until this is dropped.
pub struct Registered<H: 'static, T: 'static> {
    table: &'static Table<H, T>,
    handle: *mut H,
}

// SAFETY: the handle is a number; the objects of the table may be used by all threads.
unsafe impl<H, T: Send + Sync> Send for Registered<H, T> {}
// SAFETY: as above.
unsafe impl<H, T: Send + Sync> Sync for Registered<H, T> {}

impl<H, T> Registered<H, T> {
    /// Returns the handle.
    pub fn handle(&self) -> *mut H {
        self.handle
    }
}

impl<H, T> fmt::Debug for Registered<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registered({})", self.table.kind.name)
    }
}

impl<H, T> Drop for Registered<H, T> {
    fn drop(&mut self) {
        let _ = self.table.remove(self.handle);
    }
}

impl<H, T> fmt::Debug for Table<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {} objects)", self.kind.name, self.len())
    }
}

#[cold]
fn misuse(text: String) -> Error {
    Error::invalid_arg(text.clone()).with_source(crate::misuse::Misuse(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Handle;
    struct Part;

    const KIND: Kind = Kind { number: 7, name: "Thing" };
    const PART: Kind = Kind { number: 8, name: "Part" };

    fn message<T>(result: Result<T>) -> String {
        result.err().expect("an error").message().to_owned()
    }

    #[test]
    fn a_handle_is_valid_until_it_is_released_once() {
        let table: Table<Handle, u32> = Table::new(KIND, 2);
        let one = table.insert(Arc::new(1)).expect("room");
        let two = table.insert(Arc::new(2)).expect("room");
        assert_eq!((*table.get(one).expect("live"), *table.get(two).expect("live")), (1, 2));
        assert!(message(table.insert(Arc::new(3))).starts_with("2 objects Thing are in use"));
        assert_eq!(*table.remove(one).expect("live"), 1);
        assert_eq!(message(table.remove(one)), "the Thing was released before");
        let three = table.insert(Arc::new(3)).expect("room");
        assert_ne!(one, three);
        assert_eq!(message(table.get(one)), "the Thing was released before");
        assert_eq!(table.len(), 2);
        assert_eq!(table.remove_all(|value| *value == 3).len(), 1);
        assert_eq!(message(table.get(three)), "the Thing was released before");
        assert_eq!(*table.get(two).expect("live"), 2);
    }

    #[test]
    fn foreign_pointers_are_refused() {
        let table: Table<Handle, u32> = Table::new(KIND, 10);
        let other: Table<Handle, u32> = Table::new(PART, 10);
        let handle = other.insert(Arc::new(1)).expect("room");
        table.insert(Arc::new(1)).expect("room");
        let on_stack = 5_u64;
        for pointer in [handle.cast_const(), (&raw const on_stack).cast(), ptr::dangling()] {
            assert_eq!(message(table.get(pointer)), "the pointer is no Thing");
        }
        assert_eq!(message(table.get(ptr::null())), "the Thing is null");
        // A handle of the right kind that nobody was given.
        let far = Fields { kind: 7, part: 0, generation: 0, index: 999_999 }.to_address();
        assert_eq!(
            message(table.get(ptr::without_provenance(far))),
            "the Thing was released before"
        );
    }

    #[test]
    fn a_part_lives_as_long_as_its_object() {
        let table: Table<Handle, u32> = Table::new(KIND, 10);
        let whole = table.insert(Arc::new(4)).expect("room");
        let part: *mut Part = table.part(whole, PART, 3).expect("a part");
        let (object, number) = table.of_part(part, PART).expect("live");
        assert_eq!((*object, number), (4, 3));
        assert_eq!(message(table.get(part.cast())), "the pointer is no Thing");
        assert!(message(table.part::<Part>(whole, PART, MOST_PARTS)).contains("4096 parts"));
        table.remove(whole).expect("live");
        assert_eq!(message(table.of_part(part, PART)), "the Part was released before");
    }
}
