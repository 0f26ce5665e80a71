//! Reads exceptions of C++ as its common binary interface (Itanium) describes them, by the runtime of the library that threw.

use std::{
    ffi::{CStr, c_char, c_int, c_long, c_void},
    ptr::{self, NonNull},
};

use super::guard::UnwindException;
use crate::Library;

/// The most characters of a text that an error takes over.
const MOST_TEXT: usize = 4096;
/// The most classes above each other, and beside each other, that are looked through.
const MOST_CLASSES: usize = 16;
const MOST_BASES: usize = 16;
/// The name of `std::exception`.
const STANDARD: &CStr = c"St9exception";
/// The places in a table of virtual functions: where it begins behind its symbol, and `what`.
const FIRST_FUNCTION: usize = 2;
const WHAT: usize = 2;

/// The class of an exception of GNU that was thrown again.
const GNU_AGAIN: u64 = u64::from_be_bytes(*b"GNUCC++\x01");
/// The size of a header, and the place of the object's address before it.
const HEADER: usize = 32;
const ADDRESS_BEFORE: usize = 80;

type BeginCatch = unsafe extern "C" fn(*mut UnwindException) -> *mut c_void;
type EndCatch = unsafe extern "C" fn();
type CurrentType = unsafe extern "C" fn() -> *const TypeInfo;
type Demangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
type Free = unsafe extern "C" fn(*mut c_void);
type What = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// The description of an exception.
pub(super) struct Thrown {
    /// Its type, for example `std::runtime_error`.
    pub kind: String,
    /// The text of a `std::exception`.
    pub text: Option<String>,
}

/// `std::type_info`.
#[repr(C)]
struct TypeInfo {
    functions: *const *const (),
    name: *const c_char,
}

/// The type of a class with one public base at its begin.
#[repr(C)]
struct SingleClass {
    info: TypeInfo,
    base: *const TypeInfo,
}

/// The type of a class with other bases, which follow.
#[repr(C)]
struct OtherClass {
    info: TypeInfo,
    flags: u32,
    count: u32,
}

#[repr(C)]
struct Base {
    info: *const TypeInfo,
    /// Two flags and, from bit 8, where the base begins, or where the table of the object has that place.
    place: c_long,
}

const VIRTUAL: c_long = 1;
const PUBLIC: c_long = 2;

/// Catches and ends an exception of C++. `None` if the library's runtime does not show how; the exception is still there then.
///
/// # Safety
/// An exception of C++ that has left a function of the library, which is not used afterwards if the result is `Some`.
pub(super) unsafe fn take(
    exception: NonNull<UnwindException>,
    library: &Library,
) -> Option<Thrown> {
    // SAFETY: the interface gives these functions these types, and their order of calls is this one.
    unsafe {
        let begin: BeginCatch = library.function("__cxa_begin_catch")?;
        let end: EndCatch = library.function("__cxa_end_catch")?;
        let current: CurrentType = library.function("__cxa_current_exception_type")?;
        let object = object_of(exception);
        begin(exception.as_ptr());
        let info = current();
        let thrown = Thrown {
            kind: kind(info, library),
            text: object
                .and_then(|object| standard_part(object, info, &Classes::of(library), MOST_CLASSES))
                .and_then(|part| what(part)),
        };
        end();
        Some(thrown)
    }
}

/// Returns the object that was thrown, which lies behind the header. An exception that was thrown again from a
/// `std::exception_ptr` has the address of the object before the header, which is read for the runtime of GNU only.
unsafe fn object_of(exception: NonNull<UnwindException>) -> Option<*mut c_void> {
    // SAFETY: an exception of C++, which has its object or its address there.
    unsafe {
        match exception.as_ref().class {
            class if class & 0xff == 0 => Some(exception.byte_add(HEADER).as_ptr().cast()),
            class if class == GNU_AGAIN => {
                Some(exception.byte_sub(ADDRESS_BEFORE).cast::<*mut c_void>().read())
            }
            _ => None,
        }
    }
}

unsafe fn kind(info: *const TypeInfo, library: &Library) -> String {
    // SAFETY: the caller gives a type or null; the demangler returns memory of `malloc` or null.
    unsafe {
        let Some(info) = info.as_ref() else { return "an exception of an unknown type".to_owned() };
        let Some(demangle) = library.function::<Demangle>("__cxa_demangle") else {
            return shown(info.name);
        };
        let mut status = 0;
        let name = demangle(plain(info.name), ptr::null_mut(), ptr::null_mut(), &mut status);
        if name.is_null() {
            return shown(info.name);
        }
        let text = shown(name);
        if let Some(free) = library.function::<Free>("free") {
            free(name.cast());
        }
        text
    }
}

/// Returns a name without the mark of types that are known in one library only.
unsafe fn plain(name: *const c_char) -> *const c_char {
    // SAFETY: the caller gives a text.
    unsafe { if name.cast::<u8>().read() == b'*' { name.add(1) } else { name } }
}

unsafe fn shown(text: *const c_char) -> String {
    // SAFETY: the caller gives a text.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().chars().take(MOST_TEXT).collect()
}

/// The tables of the two kinds of classes that have bases, as their types point to them.
struct Classes {
    single: Option<*const *const ()>,
    other: Option<*const *const ()>,
}

impl Classes {
    fn of(library: &Library) -> Self {
        let table = |name| {
            // SAFETY: only the address is used.
            let table = unsafe { library.function::<*const *const ()>(name) };
            table.map(|table| table.wrapping_add(FIRST_FUNCTION))
        };
        Self {
            single: table("_ZTVN10__cxxabiv120__si_class_type_infoE"),
            other: table("_ZTVN10__cxxabiv121__vmi_class_type_infoE"),
        }
    }
}

/// Returns the part of an object that is a `std::exception`, looking through as many classes above each other.
///
/// # Safety
/// A live object of this type.
unsafe fn standard_part(
    object: *mut c_void,
    info: *const TypeInfo,
    classes: &Classes,
    most: usize,
) -> Option<*mut c_void> {
    let most = most.checked_sub(1)?;
    // SAFETY: types are what the tables say that they are; a base is at its place of a live object.
    unsafe {
        let class = info.as_ref()?;
        if CStr::from_ptr(plain(class.name)) == STANDARD {
            return Some(object);
        }
        if Some(class.functions) == classes.single {
            return standard_part(object, (*info.cast::<SingleClass>()).base, classes, most);
        }
        if Some(class.functions) != classes.other {
            return None;
        }
        let other = info.cast::<OtherClass>();
        let bases = other.add(1).cast::<Base>();
        let count = ((*other).count as usize).min(MOST_BASES);
        (0..count).find_map(|at| {
            let base = &*bases.add(at);
            if base.place & PUBLIC == 0 {
                return None;
            }
            let mut place = (base.place >> 8) as isize;
            if base.place & VIRTUAL != 0 {
                // It is where the object's table says.
                place = (*object.cast::<*const u8>()).offset(place).cast::<isize>().read();
            }
            standard_part(object.byte_offset(place), base.info, classes, most)
        })
    }
}

/// Returns the text of a `std::exception`.
unsafe fn what(exception: *mut c_void) -> Option<String> {
    // SAFETY: the object begins with the address of its functions, and `what` is at the same place in all runtimes.
    unsafe {
        let functions = *exception.cast::<*const What>();
        let text = (*functions.add(WHAT))(exception);
        (!text.is_null()).then(|| shown(text))
    }
}
