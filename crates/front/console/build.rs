//! Lists the files of the page, so that each is embedded without being named elsewhere. Their texts lose indentation and lines
//! of comments and are compressed. Lines stay where they are, so that what a browser says of one is true of the source.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{self, Write},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};

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
    let out = variable("OUT_DIR")?;
    let mut names = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort_unstable();
    let mut list = String::from("[\n");
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let end = name.rsplit('.').next().unwrap_or_default();
        let Some((_, media_type)) = TYPES.iter().find(|(known, _)| *known == end) else { continue };
        let path = Path::new(&out).join(name);
        let text = shortened(name, end, &fs::read_to_string(folder.join(name))?)?;
        fs::write(&path, compressed(&text)?)?;
        let _ = writeln!(list, "({name:?}, {media_type:?}, include_bytes!({path:?}).as_slice()),");
    }
    list.push(']');
    fs::write(Path::new(&out).join("files.rs"), list)
}

/// A text of several lines would lose its indentation, so scripts may have none.
fn shortened(name: &str, end: &str, text: &str) -> io::Result<String> {
    let is_script = end == "js";
    let mut short = String::with_capacity(text.len());
    let mut is_in_comment = false;
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if is_script && line.matches('`').count() % 2 == 1 {
            let place = format!("page/{name}:{}", number + 1);
            return Err(io::Error::other(format!(
                "{place}: a text may not go on in the next line"
            )));
        }
        is_in_comment |= is_script && line.starts_with("/*");
        let is_comment = is_in_comment || is_script && line.starts_with("//");
        if !is_comment {
            short.push_str(line);
        }
        is_in_comment &= !line.ends_with("*/");
        short.push('\n');
    }
    Ok(short)
}

fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
