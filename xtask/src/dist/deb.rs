//! The package for Debian and its descendants: program, manual, completions, and a systemd unit.

use anyhow::{Context, Result};

use super::{
    archive::{Form, gz, tar_gz},
    contents::{Contents, Entry, read},
    elf::Needs,
    target::Target,
};
use crate::process;

/// Files of the checkout, and their places in the package. The administrator may change the last one.
const PLACED: [(&str, &str); 3] = [
    ("deploy/systemd/galatea.service", "usr/lib/systemd/system/galatea.service"),
    ("packaging/deb/logrotate", "etc/logrotate.d/galatea"),
    ("packaging/deb/default", "etc/default/galatea"),
];
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Returns name and bytes of the package.
pub fn make(
    contents: &Contents,
    needs: &Needs,
    version: &str,
    target: &Target,
    form: Form,
) -> Result<(String, Vec<u8>)> {
    let files = files(contents, form)?;
    let kib = files.iter().map(Entry::size).sum::<usize>().div_ceil(1024);
    let control = control(needs, version, target, kib, &files)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz("./", &control, form)?),
        ("data.tar.gz", tar_gz("./", &files, form)?),
    ];
    let name = format!("galatea_{version}-1_{}.deb", target.debian);
    Ok((name, ar(&members, form.time)))
}

fn files(contents: &Contents, form: Form) -> Result<Vec<Entry>> {
    let mut files = contents.programs("usr/bin");
    files.extend(contents.completions("usr/share"));
    // Debian's zsh reads another folder than that of locally installed functions.
    for file in &mut files {
        file.path = file.path.replace("zsh/site-functions", "zsh/vendor-completions");
    }
    files.push(Entry::file("usr/share/man/man1/galatea.1.gz", 0o644, gz(&contents.manual, form)?));
    files.push(Entry::file("usr/share/doc/galatea/copyright", 0o644, contents.licence.clone()));
    for (from, to) in PLACED {
        files.push(Entry::file(to, 0o644, read(&process::root().join(from))?));
    }
    Ok(files)
}

fn control(
    needs: &Needs,
    version: &str,
    target: &Target,
    kib: usize,
    files: &[Entry],
) -> Result<Vec<Entry>> {
    let (major, minor) = needs.glibc;
    let gcc = needs.libraries.iter().any(|name| name.starts_with("libgcc_s"));
    let depends = format!("libc6 (>= {major}.{minor}){}", if gcc { ", libgcc-s1" } else { "" });
    let text = format!(
        "Package: galatea\nVersion: {version}-1\nArchitecture: {}\nMaintainer: The Galatea developers\n\
         Installed-Size: {kib}\nDepends: {depends}\n\
         Recommends: ca-certificates, python3, python3-numpy, python3-venv\nSection: net\nPriority: optional\n\
         Description: inference server for Triton's model repositories\n \
         Serves ONNX, PyTorch and Python models over the KServe v2 protocols, HTTP and gRPC, with Triton's\n \
         options and metrics. A load tool with the options of perf_analyzer is part of it.\n",
        target.debian
    );
    let is_setting = |entry: &&Entry| entry.path.starts_with("etc/");
    let settings: String =
        files.iter().filter(is_setting).map(|entry| format!("/{}\n", entry.path)).collect();
    let mut entries = vec![
        Entry::file("control", 0o644, text.into_bytes()),
        Entry::file("conffiles", 0o644, settings.into_bytes()),
    ];
    for script in SCRIPTS {
        let path = process::root().join("packaging/deb").join(script);
        entries.push(Entry::file(script, 0o755, read(&path).context("scripts of the package")?));
    }
    Ok(entries)
}

/// Makes an archive of the Unix format: a line of fixed columns before each member, members at even offsets.
fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let line =
            format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
        archive.extend(line.into_bytes());
        archive.extend(bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_begin_at_even_offsets() {
        let archive = ar(&[("a", b"odd".to_vec()), ("b", Vec::new())], 1);
        assert_eq!(archive.len(), 8 + 60 + 4 + 60);
        assert!(archive[72..].starts_with(b"b    "));
    }
}
