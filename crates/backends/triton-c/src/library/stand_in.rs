//! Writes a shared library that has a name and, if wanted, functions of this program: System V ABI, ELF-64.
//!
//! A library made for Triton names the core in its list of needed libraries. The loader refuses it unless a library of that name
//! is open. It takes a stand-in without code. Functions of a stand-in are absolute symbols: their values are addresses of this
//! program. The loader takes them as they are since glibc 2.28.

use crate::Offer;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SYMBOL: usize = 24;
const DYNAMIC_ENTRY: usize = 16;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = object::elf::EM_X86_64;
#[cfg(not(target_arch = "x86_64"))]
const MACHINE: u16 = object::elf::EM_AARCH64;

/// The places of the parts in the file, which is mapped as a whole.
struct Layout {
    symbols: usize,
    strings: usize,
    hash: usize,
    dynamic: usize,
    end: usize,
}

/// Returns the content of a library that is called `name` and has the functions of `offer`.
pub(super) fn stand_in(name: &str, offer: Option<&Offer>) -> Vec<u8> {
    let functions = offer.map_or(&[][..], |offer| offer.functions);
    let mut strings = vec![0_u8];
    let name_at = append(&mut strings, name);
    let names: Vec<usize> =
        functions.iter().map(|function| append(&mut strings, function.name)).collect();
    let symbol_count = functions.len() + 1;
    let symbols = HEADER + 3 * PROGRAM_HEADER;
    let hash = (symbols + symbol_count * SYMBOL + strings.len()).next_multiple_of(8);
    // Two counts, one bucket for all symbols, and a chain through them.
    let dynamic = (hash + 4 * (3 + symbol_count)).next_multiple_of(8);
    let layout = Layout {
        symbols,
        strings: symbols + symbol_count * SYMBOL,
        hash,
        dynamic,
        end: dynamic + 7 * DYNAMIC_ENTRY,
    };
    let mut file = Writer(Vec::with_capacity(layout.end));
    file.headers(&layout);
    file.bytes(&[0; SYMBOL]);
    for (function, name) in functions.iter().zip(names) {
        file.function_symbol(name, function.address.0.addr());
    }
    file.bytes(&strings);
    file.pad_to(layout.hash);
    file.hash_table(symbol_count);
    file.pad_to(layout.dynamic);
    file.dynamic_entries(&layout, name_at, strings.len());
    file.0
}

fn append(strings: &mut Vec<u8>, text: &str) -> usize {
    let at = strings.len();
    strings.extend_from_slice(text.as_bytes());
    strings.push(0);
    at
}

struct Writer(Vec<u8>);

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn half(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    fn word(&mut self, value: usize) {
        self.bytes(&u32::try_from(value).unwrap_or(0).to_le_bytes());
    }

    fn long(&mut self, value: usize) {
        self.bytes(&(value as u64).to_le_bytes());
    }

    fn pad_to(&mut self, end: usize) {
        self.0.resize(end, 0);
    }

    fn headers(&mut self, layout: &Layout) {
        use object::elf::{ET_DYN, PF_R, PF_W, PT_DYNAMIC, PT_GNU_STACK, PT_LOAD};
        self.bytes(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]);
        self.pad_to(16);
        self.half(ET_DYN);
        self.half(MACHINE);
        self.word(1);
        // No entry point; program headers follow; there are no sections.
        self.long(0);
        self.long(HEADER);
        self.long(0);
        self.word(0);
        for size in [HEADER, PROGRAM_HEADER, 3, 64, 0, 0] {
            self.half(u16::try_from(size).unwrap_or(0));
        }
        // The loader writes into the dynamic entries. Without the last header it would want an executable stack.
        for (kind, start, end, alignment) in [
            (PT_LOAD, 0, layout.end, 0x1000),
            (PT_DYNAMIC, layout.dynamic, layout.end, 8),
            (PT_GNU_STACK, 0, 0, 16),
        ] {
            self.bytes(&kind.to_le_bytes());
            self.bytes(&(PF_R | PF_W).to_le_bytes());
            for value in [start, start, start, end - start, end - start, alignment] {
                self.long(value);
            }
        }
    }

    fn function_symbol(&mut self, name: usize, address: usize) {
        use object::elf::{SHN_ABS, STB_GLOBAL, STT_FUNC};
        self.word(name);
        self.bytes(&[STB_GLOBAL << 4 | STT_FUNC, 0]);
        self.half(SHN_ABS);
        self.long(address);
        self.long(0);
    }

    /// Appends a table with one bucket: each symbol leads to the next one.
    fn hash_table(&mut self, symbols: usize) {
        self.word(1);
        self.word(symbols);
        self.word(usize::from(symbols > 1));
        for symbol in 0..symbols {
            let next = symbol + 1;
            self.word(if symbol == 0 || next == symbols { 0 } else { next });
        }
    }

    fn dynamic_entries(&mut self, layout: &Layout, name: usize, strings: usize) {
        use object::elf::{DT_HASH, DT_NULL, DT_SONAME, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB};
        for (tag, value) in [
            (DT_SONAME, name),
            (DT_HASH, layout.hash),
            (DT_SYMTAB, layout.symbols),
            (DT_STRTAB, layout.strings),
            (DT_STRSZ, strings),
            (DT_SYMENT, SYMBOL),
            (DT_NULL, 0),
        ] {
            self.word(tag as usize);
            self.word(0);
            self.long(value);
        }
    }
}
