//! `galatea runtime remove` and `galatea cache clean`: what goes, what stays, and what is said.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Output},
};

use galatea_runtimes::Runtime;

use super::server::program;

fn galatea(home: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(words).env("GALATEA_HOME", home).output().expect("runs")
}

fn said(output: &Output) -> (Option<i32>, String) {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8(all).expect("text"))
}

fn filled(folder: &Path) {
    fs::create_dir_all(folder).expect("folder");
    fs::write(folder.join("file"), vec![1; 1_500_000]).expect("file");
}

#[test]
fn a_runtime_is_removed_and_the_freed_space_is_printed() {
    let home = tempfile::tempdir().expect("dir");
    let folder = home.path().join("runtimes/onnxruntime");
    for version in ["1.30.0", Runtime::ONNXRUNTIME.version] {
        filled(&folder.join(version));
    }
    let (code, text) = said(&galatea(home.path(), &["runtime", "remove", "onnxruntime", "1.30.0"]));
    assert_eq!(code, Some(0), "{text}");
    let gone =
        format!("removed ONNX Runtime 1.30.0: '{}' (1.5 MB)", folder.join("1.30.0").display());
    assert_eq!(text, format!("{gone}\n1.5 MB freed\n"));
    let (code, text) = said(&galatea(home.path(), &["runtime", "remove", "onnxruntime", "1.30.0"]));
    assert_eq!(code, Some(1));
    let expected = format!(
        "error: ONNX Runtime '1.30.0' is not installed in '{}': nothing was removed; installed is {}\n",
        folder.display(),
        Runtime::ONNXRUNTIME.version
    );
    assert_eq!(text, expected);
    let (code, text) = said(&galatea(home.path(), &["runtime", "remove", "onnxruntime"]));
    assert!(code == Some(0) && text.ends_with("\n1.5 MB freed\n"), "{text}");
    let (code, text) = said(&galatea(home.path(), &["runtime", "remove", "pytorch"]));
    assert!(code == Some(1) && text.contains("PyTorch is not installed in"), "{text}");
}

#[test]
fn cleaning_the_cache_keeps_entries_in_use() {
    let home = tempfile::tempdir().expect("dir");
    let (code, text) = said(&galatea(home.path(), &["cache", "clean"]));
    assert!(
        code == Some(0) && text.ends_with("python-environments' holds no environments\n"),
        "{text}"
    );
    let cache = home.path().join("python-environments");
    for key in ["a", "b"] {
        filled(&cache.join(key));
        fs::write(cache.join(format!("{key}.lock")), "").expect("lock");
    }
    let used = File::create(cache.join("b.use")).expect("lock");
    used.try_lock_shared().expect("nobody has it");
    let (code, text) = said(&galatea(home.path(), &["cache", "clean"]));
    let (gone, kept) = (cache.join("a"), cache.join("b"));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(
        text,
        format!(
            "removed '{}' (1.5 MB)\nkept '{}' (1.5 MB): it is in use\n1 of 2 environments removed, 1.5 MB freed; 1 in use\n",
            gone.display(),
            kept.display()
        )
    );
    assert!(!gone.exists() && kept.is_dir());
    let (code, text) = said(&galatea(home.path(), &["cache", "claen"]));
    assert!(
        code == Some(1) && text.contains("'cache' has no 'claen': 'clean' is expected"),
        "{text}"
    );
}
