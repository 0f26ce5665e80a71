//! Makes the library of a compiled model unloadable.
//!
//! g++ marks inline statics as unique in the process (`STB_GNU_UNIQUE`), and the loader never unmaps the first library with
//! such a symbol: its code and weights would stay in memory. Models share no statics, so the symbols become ordinary global
//! ones. Format: the System V ABI's ELF-64.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::Path,
};

const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const SECTION_SIZE: usize = 64;
const SYMBOL_SIZE: usize = 24;
const DYNAMIC_SYMBOLS: u32 = 11;
const UNIQUE: u8 = 10;
const GLOBAL: u8 = 1;

/// Changes the file. One that is not an ELF file of 64 bits, low byte first, stays as it is.
pub fn make_unloadable(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut header = [0; 64];
    if file.read_exact_at(&mut header, 0).is_err() || !header.starts_with(&MAGIC) {
        return Ok(());
    }
    let sections = bytes::<8>(&header, 0x28).map_or(0, u64::from_le_bytes);
    let count = bytes::<2>(&header, 0x3c).map_or(0, u16::from_le_bytes);
    for index in 0..u64::from(count) {
        let mut section = [0; SECTION_SIZE];
        let start = sections.saturating_add(index * SECTION_SIZE as u64);
        if file.read_exact_at(&mut section, start).is_err() {
            break;
        }
        if bytes::<4>(&section, 4).map(u32::from_le_bytes) == Some(DYNAMIC_SYMBOLS) {
            let offset = bytes::<8>(&section, 0x18).map_or(0, u64::from_le_bytes);
            let size = bytes::<8>(&section, 0x20).map_or(0, u64::from_le_bytes);
            change_symbols(&file, offset, size)?;
        }
    }
    Ok(())
}

fn change_symbols(file: &File, offset: u64, size: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if offset.checked_add(size).is_none_or(|end| end > length) {
        return Ok(());
    }
    let mut table = vec![0; usize::try_from(size).unwrap_or(0)];
    file.read_exact_at(&mut table, offset)?;
    let mut is_changed = false;
    for symbol in table.chunks_exact_mut(SYMBOL_SIZE) {
        // The upper half is the binding, the lower half the type.
        if let Some(info) = symbol.get_mut(4).filter(|info| **info >> 4 == UNIQUE) {
            *info = GLOBAL << 4 | *info & 0xf;
            is_changed = true;
        }
    }
    if is_changed { file.write_all_at(&table, offset) } else { Ok(()) }
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file with one section of dynamic symbols: a unique object, a weak function.
    fn library() -> Vec<u8> {
        let mut file = vec![0; 64 + SECTION_SIZE + 2 * SYMBOL_SIZE];
        file[..6].copy_from_slice(&MAGIC);
        file[0x28] = 64;
        file[0x3c] = 1;
        file[64 + 4] = 11;
        file[64 + 0x18] = 128;
        file[64 + 0x20] = 48;
        file[128 + 4] = 0xa1;
        file[128 + SYMBOL_SIZE + 4] = 0x22;
        file
    }

    #[test]
    fn unique_symbols_become_global() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.so");
        fs::write(&path, library()).expect("written");
        make_unloadable(&path).expect("changed");
        let mut expected = library();
        expected[128 + 4] = 0x11;
        assert_eq!(fs::read(&path).expect("read"), expected);
    }

    #[test]
    fn other_files_are_not_changed() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a.so");
        let mut beyond = library();
        beyond[64 + 0x1f] = 0xff;
        for content in
            [vec![], b"\x7fELF".to_vec(), library()[..100].to_vec(), beyond, vec![7; 300]]
        {
            fs::write(&path, &content).expect("written");
            make_unloadable(&path).expect("left");
            assert_eq!(fs::read(&path).expect("read"), content);
        }
    }
}
