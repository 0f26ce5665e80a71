//! Lists the files of the page, so that each is embedded without being named elsewhere, and shortens its texts: without
//! indentation, lines of comments and most of the spaces beside punctuation. Lines stay where they are, so that what a
//! browser says of one is true of the source.

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
        fs::write(&path, shortened(name, end, &fs::read_to_string(folder.join(name))?)?)?;
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
        if !is_in_comment && !(is_script && line.starts_with("//")) {
            short.push_str(&without_spaces(line, end));
        }
        is_in_comment &= !line.ends_with("*/");
        short.push('\n');
    }
    Ok(short)
}

/// Without the spaces beside punctuation, in lines that are easily read: those with texts in quotation marks only. In what
/// stands in other texts, in regular expressions and before a style's selectors, a space may mean something.
fn without_spaces(line: &str, end: &str) -> String {
    const UNREAD: [char; 4] = ['`', '\'', '/', '\\'];
    let is_clear = !line.contains(UNREAD) && line.matches('"').count() % 2 == 0;
    let (before, after) = match end {
        "js" if is_clear => ("{}()[],;:?=<>&|", "{}()[],;:?=<>&|"),
        "css" if !line.contains('"') => ("{}", "{};:,"),
        _ => return line.to_owned(),
    };
    let parts = line.split('"').enumerate().map(|(at, part)| {
        let is_text = at % 2 == 1;
        if is_text { part.to_owned() } else { squeezed(part, before, after) }
    });
    parts.collect::<Vec<_>>().join("\"")
}

/// Without spaces that have one of `before` behind them or one of `after` before them.
fn squeezed(part: &str, before: &str, after: &str) -> String {
    let mut short = String::with_capacity(part.len());
    let mut characters = part.chars().peekable();
    while let Some(character) = characters.next() {
        let is_before = characters.peek().is_some_and(|&next| before.contains(next));
        let is_after = short.chars().last().is_some_and(|last| after.contains(last));
        if character != ' ' || !(is_before || is_after) {
            short.push(character);
        }
    }
    short
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
