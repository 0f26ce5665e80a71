//! Looks into the file of a library before the loader opens it, so that an error says what is wrong.

use std::{fs::File, path::Path};

use galatea_types::{Code, Error, Result};
use object::{
    Endianness, Object as _, ObjectSymbol as _, ReadCache,
    elf::{DT_NEEDED, DT_SONAME, EM_AARCH64, EM_X86_64, FileHeader64},
    read::elf::{Dyn as _, ElfFile64, FileHeader as _},
};

use crate::Offer;

/// The machine that this program runs on.
#[cfg(target_arch = "x86_64")]
const OWN_MACHINE: u16 = EM_X86_64;
/// The machine that this program runs on.
#[cfg(not(target_arch = "x86_64"))]
const OWN_MACHINE: u16 = EM_AARCH64;

/// Most names that a library may need, and most functions that an error lists.
const MOST_NEEDED: usize = 1000;
const MOST_LISTED: usize = 8;

/// The requirements for a library of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Requirements<'a> {
    /// The kind of library, for errors: `Triton backend`.
    pub kind: &'a str,
    /// Functions that it must define.
    pub must_define: &'a [&'a str],
}

impl Requirements<'_> {
    /// Returns the error of a file that is no library of this kind.
    pub(super) fn refuse(&self, path: &Path, reason: &LibraryFileError) -> Error {
        let text = format!("'{}' cannot be opened as a {}: {reason}", path.display(), self.kind);
        Error::invalid_arg(text)
    }
}

/// The parts of a library's file that decide if it can be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryFile {
    /// The libraries that it needs, by their names.
    pub needed: Vec<String>,
    /// Its own name for others, if it has one.
    pub name: Option<String>,
    /// The functions of Triton that it calls.
    pub called: Vec<String>,
    /// The functions of Triton that it defines.
    pub defined: Vec<String>,
}

/// The reason why a file is no library for this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryFileError {
    /// It cannot be read; the reason of the system.
    Unreadable(String),
    /// It is no shared library of Linux, or is damaged.
    Damaged(String),
    /// It is a library for another machine.
    OtherMachine(&'static str),
}

impl std::fmt::Display for LibraryFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            Self::Damaged(reason) => {
                write!(f, "it is no shared library of Linux for 64 bits, or is damaged: {reason}")
            }
            Self::OtherMachine(machine) => {
                write!(f, "it was built for {machine}, and this machine is {}", own_machine())
            }
        }
    }
}

fn own_machine() -> &'static str {
    machine_name(OWN_MACHINE)
}

fn machine_name(machine: u16) -> &'static str {
    match machine {
        EM_X86_64 => "x86-64",
        EM_AARCH64 => "ARM64",
        _ => "another machine",
    }
}

impl LibraryFile {
    /// Reads the file. It is not loaded, and no code of it runs.
    ///
    /// # Errors
    /// The reason why it is no library for this machine.
    pub fn read(path: &Path) -> Result<Self, LibraryFileError> {
        let file = File::open(path).map_err(|e| LibraryFileError::Unreadable(e.to_string()))?;
        let cache = ReadCache::new(file);
        Self::parse(&cache)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Those of [`LibraryFile::read`].
    pub fn parse<'data>(data: impl object::ReadRef<'data>) -> Result<Self, LibraryFileError> {
        let damaged = |error: object::Error| LibraryFileError::Damaged(error.to_string());
        let file = ElfFile64::<Endianness, _>::parse(data).map_err(damaged)?;
        let endian = file.endian();
        let machine = file.elf_header().e_machine(endian);
        if machine != OWN_MACHINE {
            return Err(LibraryFileError::OtherMachine(machine_name(machine)));
        }
        let mut read = Self::default();
        for symbol in file.dynamic_symbols() {
            let Ok(name) = symbol.name() else { continue };
            if !name.starts_with("TRITON") {
                continue;
            }
            match symbol.is_undefined() {
                // The loader does without weak ones.
                true if symbol.is_weak() => {}
                true => read.called.push(name.to_owned()),
                false => read.defined.push(name.to_owned()),
            }
        }
        read.read_dynamic(&file, data).map_err(damaged)?;
        Ok(read)
    }

    fn read_dynamic<'data, R: object::ReadRef<'data>>(
        &mut self,
        file: &ElfFile64<'data, Endianness, R>,
        data: R,
    ) -> Result<(), object::Error> {
        let endian = file.endian();
        let header: &FileHeader64<Endianness> = file.elf_header();
        let sections = header.sections(endian, data)?;
        let Some((entries, link)) = sections.dynamic(endian, data)? else { return Ok(()) };
        let strings = sections.strings(endian, data, link)?;
        for entry in entries.iter().take_while(|entry| entry.tag32(endian) != Some(0)) {
            let text = || {
                let bytes = entry.val32(endian).and_then(|at| strings.get(at).ok());
                bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            match entry.tag32(endian) {
                Some(DT_NEEDED) if self.needed.len() < MOST_NEEDED => self.needed.extend(text()),
                Some(DT_SONAME) => self.name = text(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that the library at `path` can be opened with these offers.
    ///
    /// # Errors
    /// A missing function, or a call of one that is not offered.
    pub fn check(
        &self,
        path: &Path,
        requirements: &Requirements<'_>,
        offers: &[&'static Offer],
    ) -> Result<()> {
        let shown = path.display();
        let has = |function: &str| self.defined.iter().any(|defined| defined == function);
        if let Some(missing) = requirements.must_define.iter().find(|name| !has(name)) {
            return Err(Error::invalid_arg(format!(
                "'{shown}' is no {}: it does not define {missing}",
                requirements.kind
            )));
        }
        let is_offered = |name: &str| offers.iter().any(|offer| offer.has(name));
        let wanted: Vec<&str> =
            self.called.iter().map(String::as_str).filter(|name| !is_offered(name)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let listed = wanted.iter().take(MOST_LISTED).copied().collect::<Vec<_>>().join(", ");
        let rest = match wanted.len().saturating_sub(MOST_LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "'{shown}' cannot be opened: it calls {listed}{rest}, which this server does not offer (docs/c-backends.md lists \
             the functions)"
        );
        Err(Error::new(Code::Unsupported, text))
    }
}
