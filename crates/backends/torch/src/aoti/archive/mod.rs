//! The package file: a zip archive with a compiled library, its other files, and notes about both.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tempfile::TempDir;
use zip::{
    ZipArchive,
    read::{ArchiveOffset, Config},
};

use super::elf;

/// Folder of the compiled models inside the archive. It may lie below a folder named after the file.
const MODELS: &str = "data/aotinductor/";
const LIBRARY: &str = ".so";
const METADATA: &str = "_metadata.json";

/// Most bytes of notes and sources, which are read whole. A network of a thousand layers has some megabytes of source.
const MAX_TEXT_BYTES: u64 = 64 << 20;
/// Limit of unpacked bytes: this times the package's own size, and this much more. Packages contain code and weights, which
/// hardly compress. A larger one is made to fill the disk.
const MAX_GROWTH: u64 = 16;
const ALWAYS_UNPACKED: u64 = 64 << 20;

/// An unpacked package. Its folder is removed with it.
pub(super) struct Package {
    pub folder: TempDir,
    pub library: PathBuf,
    /// Notes of the compiler: `AOTI_DEVICE_KEY`, `AOTI_CPU_ISA`, ...
    pub metadata: BTreeMap<String, String>,
    /// The code in C++; empty if the package omits it.
    pub source: String,
}

type Archive = ZipArchive<File>;

impl Package {
    pub fn unpack(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(no_zip)?;
        let own_size = file.metadata().map_err(no_zip)?.len();
        let limit = own_size.saturating_mul(MAX_GROWTH).saturating_add(ALWAYS_UNPACKED);
        // PyTorch writes records of ZIP64 behind a directory that needs none. A reader that computes the directory's
        // beginning from its end then skips a first entry as long as these records.
        let from_start = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut archive = ZipArchive::with_config(from_start, file).map_err(no_zip)?;
        let members = members(&archive)?;
        let library = library(&members)?;
        refuse_weights_outside(&archive, &members)?;
        let metadata = read_metadata(&mut archive, &members, &library)?;
        refuse_foreign_operators(&mut archive, &members, &library)?;
        let source = members.get(&format!("{}.cpp", stem(&library)));
        let source = source.map(|place| read_text(&mut archive, place)).transpose()?;
        let folder = unpack(&mut archive, &members, limit)?;
        let library = folder.path().join(library);
        elf::make_unloadable(&library).map_err(|e| cannot_unpack(folder.path(), &e))?;
        Ok(Self { folder, library, metadata, source: source.unwrap_or_default() })
    }
}

/// Lists files of the model by name, with their paths in the archive.
fn members(archive: &Archive) -> Result<BTreeMap<String, String>, String> {
    let names: Vec<String> = archive.file_names().flatten().map(|n| n.into_owned()).collect();
    let below = |name: &String| {
        let (before, rest) = name.split_once(MODELS)?;
        let (model, file) = rest.split_once('/')?;
        let is_plain = [model, file].iter().all(|word| is_plain(word));
        let is_top = before.is_empty() || before.find('/') == Some(before.len() - 1);
        (is_plain && is_top).then(|| (model.to_owned(), file.to_owned(), name.clone()))
    };
    let found: Vec<_> = names.iter().filter_map(below).collect();
    let models: BTreeSet<&str> = found.iter().map(|(model, ..)| model.as_str()).collect();
    let model = match (models.first(), models.len()) {
        (None, _) => return Err(
            "it holds no compiled code: torch._inductor.aoti_compile_and_package makes a package of an exported program"
                .to_owned(),
        ),
        (Some(&only), 1) => only.to_owned(),
        _ if models.contains("model") => "model".to_owned(),
        _ => {
            let models = join(models.iter().copied());
            return Err(format!("it holds several models ({models}), and none is called 'model'"));
        }
    };
    let of_model = found.into_iter().filter(|(owner, ..)| *owner == model);
    Ok(of_model.map(|(_, file, place)| (file, place)).collect())
}

/// Returns true if a word can only be a file in a folder.
fn is_plain(word: &str) -> bool {
    !matches!(word, "" | "." | "..") && !word.contains(['/', '\\', '\0'])
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the library: the wrapper, if kernels lie beside it as libraries of their own.
fn library(members: &BTreeMap<String, String>) -> Result<String, String> {
    let libraries = || members.keys().filter(|name| name.ends_with(LIBRARY));
    let wrapper = libraries().find(|name| name.ends_with(".wrapper.so"));
    wrapper.or_else(|| libraries().next()).cloned().ok_or_else(|| {
        "it holds sources, but no compiled library: make it without aot_inductor.package_cpp_only"
            .to_owned()
    })
}

fn refuse_weights_outside(
    archive: &Archive,
    members: &BTreeMap<String, String>,
) -> Result<(), String> {
    let beside = members.keys().find(|name| name.ends_with("_weights.blob")).cloned();
    let listed = || {
        let mut names = archive.file_names().flatten();
        names.find(|name| name.ends_with("_weights_config.json")).map(|name| name.into_owned())
    };
    beside.or_else(listed).map_or(Ok(()), |name| {
        Err(format!(
            "its weights lie outside of the compiled library ('{name}'), which is not supported: make it without \
             aot_inductor.package_constants_on_disk_format and with aot_inductor.package_constants_in_so"
        ))
    })
}

fn read_metadata(
    archive: &mut Archive,
    members: &BTreeMap<String, String>,
    library: &str,
) -> Result<BTreeMap<String, String>, String> {
    let of_library = format!("{}{METADATA}", stem(library));
    let any = || members.keys().find(|name| name.ends_with(METADATA));
    let place = members.get(&of_library).or_else(|| members.get(any()?));
    let Some(place) = place else { return Ok(BTreeMap::new()) };
    let text = read_text(archive, place)?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

fn stem(library: &str) -> &str {
    library.strip_suffix(LIBRARY).unwrap_or(library)
}

fn read_text(archive: &mut Archive, place: &str) -> Result<String, String> {
    let mut text = String::new();
    let member = archive.by_name(place).map_err(no_zip)?;
    // The limit holds whatever size the archive declares.
    let read = member.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text);
    match read.map_err(no_zip)? as u64 {
        0..=MAX_TEXT_BYTES => Ok(text),
        _ => Err(format!("'{place}' in it has more than {MAX_TEXT_BYTES} bytes")),
    }
}

#[derive(Deserialize)]
struct ForeignNodes {
    nodes: Vec<ForeignNode>,
}

#[derive(Deserialize)]
struct ForeignNode {
    node: ForeignCall,
}

#[derive(Deserialize)]
struct ForeignCall {
    target: String,
}

/// Refuses operators that need an executor, which only libtorch's C++ interface has.
fn refuse_foreign_operators(
    archive: &mut Archive,
    members: &BTreeMap<String, String>,
    library: &str,
) -> Result<(), String> {
    let Some(place) = members.get(&format!("{}.json", stem(library))) else { return Ok(()) };
    let text = read_text(archive, place)?;
    let targets: BTreeSet<String> = match serde_json::from_str::<ForeignNodes>(&text) {
        Ok(list) => list.nodes.into_iter().map(|n| n.node.target).collect(),
        Err(_) => BTreeSet::from(["listed in an unknown form".to_owned()]),
    };
    if targets.is_empty() {
        return Ok(());
    }
    Err(format!(
        "it calls operators that have no stable C function ({}), which is not supported: only PyTorch's own operators can \
         be used in a package",
        join(targets.iter().map(String::as_str))
    ))
}

/// Unpacks everything but sources: kernels for GPUs are opened by name. Writes at most `limit` bytes, whatever sizes the
/// archive declares.
fn unpack(
    archive: &mut Archive,
    members: &BTreeMap<String, String>,
    limit: u64,
) -> Result<TempDir, String> {
    let parent = std::env::temp_dir();
    let folder = tempfile::Builder::new()
        .prefix("galatea-pt2-")
        // Nobody else may change code that will run.
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(&parent)
        .map_err(|e| cannot_unpack(&parent, &e))?;
    let mut left = limit;
    for (file, place) in members.iter().filter(|(file, _)| !is_source(file)) {
        let target = folder.path().join(file);
        let member = archive.by_name(place).map_err(no_zip)?;
        let written = write(&mut member.take(left.saturating_add(1)), &target)
            .map_err(|e| cannot_unpack(folder.path(), &e))?;
        left = left.checked_sub(written).ok_or_else(|| {
            format!(
                "it unpacks to more than {limit} bytes, {MAX_GROWTH} times its own size and 64 MiB"
            )
        })?;
    }
    Ok(folder)
}

fn is_source(file: &str) -> bool {
    [".cpp", ".h", ".o", ".json"].iter().any(|suffix| file.ends_with(suffix))
}

/// Writes a file and returns the number of its bytes.
fn write(from: &mut dyn Read, to: &Path) -> io::Result<u64> {
    let mut target = File::create(to)?;
    let written = io::copy(from, &mut target)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    Ok(written)
}

fn cannot_unpack(folder: &Path, reason: &io::Error) -> String {
    let folder = folder.display();
    format!("it cannot be unpacked into '{folder}' (TMPDIR names another folder): {reason}")
}

fn no_zip(reason: impl Display) -> String {
    format!("it is not a package of torch._inductor.aoti_compile_and_package: {reason}")
}

/// Reads a package as a load does before it opens the library: for fuzzing.
#[doc(hidden)]
pub fn read_package(path: &Path) -> Result<(), String> {
    Package::unpack(path).map(drop)
}

#[cfg(test)]
mod tests;
