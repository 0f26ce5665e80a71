//! Lists the files of the page, so that each is embedded without being named elsewhere.

use std::{env, fmt::Write, fs, io, path::Path};

/// Media types by the end of a file's name; other files are not part of the page.
const TYPES: [(&str, &str); 4] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("page");
    let mut names = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    let mut list = String::from("[\n");
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let end = name.rsplit('.').next().unwrap_or_default();
        if let Some((_, media_type)) = TYPES.iter().find(|(known, _)| *known == end) {
            let path = folder.join(name);
            let _ =
                writeln!(list, "({name:?}, {media_type:?}, include_bytes!({path:?}).as_slice()),");
        }
    }
    list.push(']');
    fs::write(Path::new(&variable("OUT_DIR")?).join("files.rs"), list)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
