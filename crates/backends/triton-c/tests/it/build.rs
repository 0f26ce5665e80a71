//! Compiles libraries of C.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Compiles `source` to `folder/name`, with more arguments for the compiler.
pub fn compile(folder: &Path, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let (code, library) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&code, source).expect("written");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&code).args(arguments);
    let made = command.output().expect("a C compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    library
}

/// Compiles a library that needs another one called `core`, which is gone by the time that it is opened.
pub fn compile_with_core(folder: &Path, name: &str, source: &str, core: &str) -> PathBuf {
    let soname = format!("-Wl,-soname,{core}");
    let core = compile(folder, core, "", &[&soname]);
    let library =
        compile(folder, name, source, &["-Wl,--no-as-needed", &core.display().to_string()]);
    std::fs::remove_file(core).expect("removed");
    library
}
