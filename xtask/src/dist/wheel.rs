//! The package for Python: `pip install` puts the program on the path, and next to it a module that finds it.

use std::io::{Cursor, Write};

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    archive::Form,
    contents::{Content, Contents, Entry, OTHER_NAMES, read},
    elf::Needs,
    target::Target,
};
use crate::process;

/// On the package index the name `galatea` belongs to another project.
const NAME: &str = "galatea_server";
/// The wheel names at least this glibc, even if the program needs an older one.
const OLDEST_GLIBC: (u32, u32) = (2, 28);

/// Returns name and bytes of the wheel. Its files have the first time of the format, 1980.
pub fn make(
    contents: &Contents,
    needs: &Needs,
    version: &str,
    target: &Target,
    form: Form,
) -> Result<(String, Vec<u8>)> {
    let (major, minor) = needs.glibc.max(OLDEST_GLIBC);
    let tag = format!("py3-none-manylinux_{major}_{minor}_{}", target.arch);
    let info = format!("{NAME}-{version}.dist-info");
    let mut entries = files(contents, version)?;
    entries.extend(description(contents, version, &tag, &info)?);
    let record = format!("{info}/RECORD");
    let lines: String = entries.iter().map(line).collect();
    entries.push(Entry::file(&*record, 0o644, format!("{lines}{record},,\n").into_bytes()));
    Ok((format!("{NAME}-{version}-{tag}.whl"), zip(&entries, form)?))
}

fn files(contents: &Contents, version: &str) -> Result<Vec<Entry>> {
    let data = format!("{NAME}-{version}.data");
    let mut entries = vec![
        Entry::file(format!("{data}/scripts/galatea"), 0o755, contents.program.clone()),
        Entry::file(
            format!("{data}/data/share/man/man1/galatea.1"),
            0o644,
            contents.manual.clone(),
        ),
    ];
    entries.extend(contents.completions(&format!("{data}/data/share")));
    for module in ["__init__.py", "__main__.py"] {
        let text = read(&process::root().join("packaging/wheel").join(module))?;
        entries.push(Entry::file(format!("galatea/{module}"), 0o644, text));
    }
    Ok(entries)
}

fn description(contents: &Contents, version: &str, tag: &str, info: &str) -> Result<Vec<Entry>> {
    let readme = std::fs::read_to_string(process::root().join("README.md"))?;
    let metadata = format!(
        "Metadata-Version: 2.4\nName: galatea-server\nVersion: {version}\n\
         Summary: An inference server for the model repository you already have\n\
         License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.10\n\
         Classifier: Operating System :: POSIX :: Linux\n\
         Description-Content-Type: text/markdown\n\n{readme}"
    );
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: galatea-dist {version}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    );
    let names = OTHER_NAMES.iter().map(|name| format!("{name} = galatea:{name}\n"));
    let commands = format!("[console_scripts]\n{}", names.collect::<String>());
    Ok(vec![
        Entry::file(format!("{info}/METADATA"), 0o644, metadata.into_bytes()),
        Entry::file(format!("{info}/WHEEL"), 0o644, wheel.into_bytes()),
        Entry::file(format!("{info}/entry_points.txt"), 0o644, commands.into_bytes()),
        Entry::file(format!("{info}/licenses/LICENSE"), 0o644, contents.licence.clone()),
    ])
}

/// Returns a line of the list of files: name, digest, size.
fn line(entry: &Entry) -> String {
    let Content::File(bytes) = &entry.content else { return String::new() };
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
    format!("{},sha256={digest},{}\n", entry.path, bytes.len())
}

fn zip(entries: &[Entry], form: Form) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let Content::File(bytes) = &entry.content else { continue };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(form.compression.into()))
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(entry.mode);
        archive.start_file(&*entry.path, options)?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
