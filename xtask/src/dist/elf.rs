//! Reads a program's needs from its ELF file.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use object::{
    Endianness,
    elf::{DT_NEEDED, DT_NULL, FileHeader64},
    read::elf::{Dyn, FileHeader, SectionHeader},
};

/// The needs for the dynamic linker.
#[derive(Debug, PartialEq, Eq)]
pub struct Needs {
    /// The newest version of glibc among its symbols, such as (2, 28).
    pub glibc: (u32, u32),
    /// Names of the shared libraries.
    pub libraries: Vec<String>,
}

/// Returns the needs of a 64-bit ELF file that is dynamically linked.
pub fn needs(file: &[u8]) -> Result<Needs> {
    let header = FileHeader64::<Endianness>::parse(file).context("not an ELF file")?;
    let endian = header.endian()?;
    let sections = header.sections(endian, file)?;
    let (mut entries, link) = sections.dynamic(endian, file)?.context("linked statically")?;
    let strings = sections.strings(endian, file, link)?;
    let mut libraries = Vec::new();
    while let Some((entry, rest)) = entries.split_first() {
        entries = rest;
        match entry.tag32(endian) {
            Some(DT_NULL) => break,
            Some(DT_NEEDED) => libraries.push(text(entry.string(endian, strings)?)?),
            _ => {}
        }
    }
    let mut versions = BTreeSet::new();
    if let Some((mut files, link)) = sections.gnu_verneed(endian, file)? {
        let strings = sections.strings(endian, file, link)?;
        while let Some((_, mut symbols)) = files.next()? {
            while let Some(symbol) = symbols.next()? {
                versions.extend(glibc(&text(symbol.name(endian, strings)?)?));
            }
        }
    }
    let glibc = versions.last().copied().context("it names no version of glibc")?;
    Ok(Needs { glibc, libraries })
}

/// Returns true if the file has debug information, which it does not need to run.
pub fn has_debug_information(file: &[u8]) -> Result<bool> {
    let header = FileHeader64::<Endianness>::parse(file).context("not an ELF file")?;
    let endian = header.endian()?;
    let sections = header.sections(endian, file)?;
    let is_debug = |name: &[u8]| name.starts_with(b".debug_") || name == b".symtab";
    Ok(sections.iter().any(|section| {
        sections.section_name(endian, section).is_ok_and(is_debug) && section.sh_size(endian) > 0
    }))
}

/// Fails if a program would not start with this glibc, or needs other libraries than it and the compiler's runtime.
pub fn check(needs: &Needs, newest: (u32, u32)) -> Result<()> {
    if needs.glibc > newest {
        let ((a, b), (c, d)) = (needs.glibc, newest);
        bail!("the program needs glibc {a}.{b}; it is to run with {c}.{d}");
    }
    let allowed = ["ld-linux", "libc.", "libdl.", "libgcc_s.", "libm.", "libpthread.", "librt."];
    let is_other = |name: &&String| !allowed.iter().any(|start| name.starts_with(start));
    match needs.libraries.iter().find(is_other) {
        Some(other) => bail!("the program needs {other}, which is no part of every system"),
        None => Ok(()),
    }
}

fn text(bytes: &[u8]) -> Result<String> {
    Ok(std::str::from_utf8(bytes)?.to_owned())
}

/// Reads (2, 28) from `GLIBC_2.28`, and (2, 2) from `GLIBC_2.2.5`.
fn glibc(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("GLIBC_")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needs_of_this_program_are_read() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let found = needs(&file).unwrap();
        assert!(found.glibc >= (2, 17) && found.libraries.contains(&"libc.so.6".to_owned()));
        assert!(check(&found, found.glibc).is_ok() && has_debug_information(&file).unwrap());
        let refused = check(&found, (2, 16)).unwrap_err().to_string();
        assert!(refused.contains("it is to run with 2.16"), "{refused}");
        let strange = Needs { glibc: (2, 17), libraries: vec!["libodd.so.1".to_owned()] };
        assert!(check(&strange, (2, 28)).unwrap_err().to_string().contains("libodd"));
        assert!(needs(b"#!/bin/sh").is_err() && needs(&file[..100]).is_err());
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(glibc("GLIBC_2.2.5"), Some((2, 2)));
        assert!(glibc("GLIBC_2.4") < glibc("GLIBC_2.28"));
        assert_eq!((glibc("GLIBC_PRIVATE"), glibc("GCC_3.0")), (None, None));
    }
}
