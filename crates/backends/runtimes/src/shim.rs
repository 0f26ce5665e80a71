//! Compiles the C++ part of a backend against the library it will be opened with.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Instant, UNIX_EPOCH},
};

use galatea_types::{Environment, Error, Result, Stop};
use sha2::{Digest, Sha256};

use crate::{
    Libtorch,
    error::{cannot_read, cannot_write},
    find::data_folder,
    install::{lock, remove_folder},
    progress::Progress,
    subprocess,
};

/// Source files by name; the first is compiled, the others lie beside it.
pub type ShimSource<'a> = &'a [(&'a str, &'a str)];

/// Options for making a shim.
#[derive(Clone, Debug)]
pub struct ShimOptions {
    /// True to compile it again if it exists.
    pub rebuilds: bool,
    /// Variables that name the data folder and the compiler.
    pub environment: Environment,
    /// Ends the compilation when it is requested. `None`: signals to this program end the compiler as well.
    pub stop: Option<Stop>,
}

impl ShimOptions {
    /// Makes options for the usual folder and the usual compiler, as these variables name them. An existing shim is kept.
    pub fn new(environment: &Environment) -> Self {
        Self { rebuilds: false, environment: environment.clone(), stop: None }
    }
}

const LIBRARY: &str = "libgalatea_shim.so";

/// Version of the way to make a shim. It changes with everything but the source.
const RECIPE: u32 = 2;

/// First version that needs C++20; older ones are written in C++17.
const NEEDS_CPP20: [u32; 3] = [2, 10, 0];

/// Returns the shim compiled against `libtorch`. If it does not exist, compiles it, which takes one to two minutes and a C++
/// compiler.
///
/// The data folder keeps one per libtorch (path, version, time) and source. A change of either makes another.
#[expect(clippy::disallowed_methods, reason = "the time that it took is shown")]
pub fn prepare_shim(
    libtorch: &Libtorch,
    source: ShimSource<'_>,
    options: &ShimOptions,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let shims = shims(options)?;
    let folder = shim_folder(libtorch, source, options)?;
    let library = folder.join(LIBRARY);
    let is_done = || library.is_file() && !options.rebuilds;
    if is_done() {
        return Ok(library);
    }
    fs::create_dir_all(&shims).map_err(|e| cannot_write(&shims, e))?;
    let never = Stop::default();
    let _lock = lock(&shims, options.stop.as_ref().unwrap_or(&never), progress)?;
    if is_done() {
        return Ok(library);
    }
    let compiler = compiler(&options.environment)?;
    progress.note(&format!(
        "compiling the shim for PyTorch {} in '{}' with {} (once; it takes one to two minutes)",
        libtorch.version_text(),
        libtorch.lib_dir.display(),
        compiler.display()
    ));
    let staging = shims.join(".new");
    remove_folder(&staging)?;
    fs::create_dir_all(&staging).map_err(|e| cannot_write(&staging, e))?;
    let start = Instant::now();
    let mut build =
        Build { compiler, libtorch, folder: &staging, stop: options.stop.as_ref(), progress };
    let built = build.build(source);
    if built.is_err() {
        // The first error is the one to report.
        let _ = remove_folder(&staging);
    }
    // A failure after a request to stop has its cause in the request.
    options.stop.as_ref().map_or(Ok(()), Stop::check)?;
    built?;
    remove_folder(&folder)?;
    fs::rename(&staging, &folder).map_err(|e| cannot_write(&folder, e))?;
    let seconds = start.elapsed().as_secs_f64();
    progress.note(&format!("the shim for PyTorch is compiled, in {seconds:.1} s"));
    Ok(library)
}

fn shims(options: &ShimOptions) -> Result<PathBuf> {
    Ok(data_folder(&options.environment)?.join("shims"))
}

/// Returns the folder of a libtorch's shim, which may not be compiled yet.
pub fn shim_folder(
    libtorch: &Libtorch,
    source: ShimSource<'_>,
    options: &ShimOptions,
) -> Result<PathBuf> {
    let name = format!("pytorch-{}-{}", libtorch.version_text(), key(libtorch, source)?);
    Ok(shims(options)?.join(name))
}

/// Returns a hash that identifies a libtorch and a source.
fn key(libtorch: &Libtorch, source: ShimSource<'_>) -> Result<String> {
    let library = libtorch.library();
    let failed = |reason: io::Error| cannot_read(&library, reason);
    let metadata = fs::metadata(&library).map_err(failed)?;
    let modified = metadata.modified().map_err(failed)?.duration_since(UNIX_EPOCH);
    let mut hash = Sha256::new();
    hash.update(RECIPE.to_le_bytes());
    hash.update(fs::canonicalize(&library).map_err(failed)?.as_os_str().as_encoded_bytes());
    hash.update(metadata.len().to_le_bytes());
    hash.update(modified.map_or(0, |m| m.as_nanos()).to_le_bytes());
    source.iter().for_each(|(name, text)| {
        hash.update(name);
        hash.update(text);
    });
    Ok(hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect())
}

/// Returns `$CXX`, else the first of the usual compilers on `$PATH`.
fn compiler(environment: &Environment) -> Result<PathBuf> {
    let named = environment.path("CXX");
    let path = environment.get("PATH").unwrap_or_default();
    let find =
        |name: &Path| std::env::split_paths(&path).map(|d| d.join(name)).find(|p| p.is_file());
    let usual = ["c++", "g++", "clang++"].iter().find_map(|name| find(Path::new(name)));
    match named {
        Some(named) => Ok(find(&named).unwrap_or(named)),
        None => usual.ok_or_else(|| {
            Error::unavailable(
                "PyTorch models need a C++ compiler once, to prepare the shim, and none of c++, g++ and \
                 clang++ is on PATH: install one (on Debian and Ubuntu: apt-get install g++), or name it \
                 with CXX",
            )
        }),
    }
}

struct Build<'a> {
    compiler: PathBuf,
    libtorch: &'a Libtorch,
    folder: &'a Path,
    stop: Option<&'a Stop>,
    progress: &'a mut dyn Progress,
}

/// Options of the compiler that depend on how a libtorch was built.
#[derive(Clone, Copy)]
struct Dialect {
    standard: &'static str,
    strings: &'static str,
}

const NEW_STRINGS: &str = "-D_GLIBCXX_USE_CXX11_ABI=1";
const OLD_STRINGS: &str = "-D_GLIBCXX_USE_CXX11_ABI=0";

/// Returns the first lines of a compiler's output that name an error.
fn first_errors(output: &str) -> String {
    let is_error = |line: &&str| line.contains("error") || line.contains("undefined");
    let errors: Vec<&str> = output.lines().filter(is_error).take(6).collect();
    if errors.is_empty() { output.chars().take(2000).collect() } else { errors.join("\n") }
}

impl Build<'_> {
    fn build(&mut self, source: ShimSource<'_>) -> Result<()> {
        for (name, text) in source {
            let path = self.folder.join(name);
            fs::write(&path, text).map_err(|e| cannot_write(&path, e))?;
        }
        let stand_ins = self.make_stand_ins()?;
        let first = source.first().map_or("", |(name, _)| name);
        let is_new = self.libtorch.version >= NEEDS_CPP20;
        let standards = if is_new { ["c++20", "c++17"] } else { ["c++17", "c++20"] };
        let mut dialect = Dialect { standard: standards[0], strings: NEW_STRINGS };
        let mut refused = match self.compile(first, dialect, &stand_ins)? {
            Ok(()) => return Ok(()),
            Err(output) => output,
        };
        // Wheels before 2.7 were built with the older form of std::string. Only the linker notices.
        if refused.contains("undefined reference") || refused.contains("undefined symbol") {
            dialect.strings = OLD_STRINGS;
        } else {
            dialect.standard = standards[1];
        }
        if let Err(output) = self.compile(first, dialect, &stand_ins)? {
            if dialect.strings == OLD_STRINGS {
                refused = output;
            }
            return Err(self.refused(&first_errors(&refused)));
        }
        Ok(())
    }

    fn refused(&self, output: &str) -> Error {
        Error::unavailable(format!(
            "cannot compile the shim for PyTorch {} in '{}' with {}:\n{output}",
            self.libtorch.version_text(),
            self.libtorch.lib_dir.display(),
            self.compiler.display()
        ))
    }

    /// Compiles the shim. The inner `Err` holds the compiler's output.
    fn compile(
        &mut self,
        source: &str,
        Dialect { standard, strings }: Dialect,
        stand_ins: &[String],
    ) -> Result<Result<(), String>> {
        let lib_dir = self.libtorch.lib_dir.display();
        let mut command = Command::new(&self.compiler);
        command.current_dir(self.folder);
        command.args([&format!("-std={standard}"), strings, "-O2", "-fPIC", "-shared", "-w"]);
        for dir in self.libtorch.include_dirs() {
            // For the system's headers the compiler's own order applies.
            if dir != Path::new("/usr/include") {
                command.arg("-I").arg(dir);
            }
        }
        command.args([source, "-o", LIBRARY]);
        // Listed first, so that they are found when libtorch asks for them.
        command.arg("-Wl,--no-as-needed").args(stand_ins);
        command.arg(format!("-L{lib_dir}")).args(["-ltorch_cpu", "-lc10"]);
        // Symbols that libtorch itself lacks are resolved only when they are used.
        command.args(["-Wl,-z,defs", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]);
        command.arg(format!("-Wl,-rpath,$ORIGIN:{lib_dir}"));
        self.run(command)
    }

    fn run(&mut self, command: Command) -> Result<Result<(), String>> {
        self.stop.map_or(Ok(()), Stop::check)?;
        let output = subprocess::output(command, self.stop, self.progress).map_err(|reason| {
            let program = self.compiler.display();
            Error::unavailable(format!("cannot start '{program}': {reason}"))
        })?;
        self.stop.map_or(Ok(()), Stop::check)?;
        Ok(if output.status.success() { Ok(()) } else { Err(output.errors) })
    }

    /// Makes empty libraries under the names of others.
    ///
    /// A libtorch built for GPUs requires CUDA's libraries even if none of their functions will be called. Compiled models
    /// (AOTInductor packages) require a `libtorch.so`, which contains only links to its parts. Without a stand-in they would
    /// load that of another libtorch.
    fn make_stand_ins(&mut self) -> Result<Vec<String>> {
        let mut made = vec!["libtorch.so".to_owned()];
        for name in missing_libraries(&self.libtorch.library()) {
            if !name.starts_with("libcu") && !name.starts_with("libnv") {
                return Err(Error::unavailable(format!(
                    "'{}' needs '{name}', which is not on this machine",
                    self.libtorch.library().display()
                )));
            }
            made.push(name);
        }
        made.iter().try_for_each(|name| self.make_stand_in(name))?;
        Ok(made)
    }

    fn make_stand_in(&mut self, name: &str) -> Result<()> {
        let mut command = Command::new(&self.compiler);
        command.current_dir(self.folder).args(["-shared", "-nostdlib", "-x", "c", "/dev/null"]);
        command.arg(format!("-Wl,-soname,{name}")).args(["-o", name]);
        self.run(command)?.map_err(|output| {
            self.refused(&format!("a stand-in for '{name}': {}", first_errors(&output)))
        })
    }
}

/// Returns the names of libraries that the loader would not find, or none if it cannot be asked.
fn missing_libraries(library: &Path) -> Vec<String> {
    let Ok(output) = Command::new("ldd").arg(library).stdin(Stdio::null()).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let missing = text.lines().filter(|line| line.ends_with("not found"));
    missing.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SilentProgress;

    #[test]
    fn a_missing_compiler_is_reported_with_its_package() {
        let error = compiler(&Environment::of([("PATH", "/nowhere")])).expect_err("none");
        assert!(error.message().contains("apt-get install g++"), "{error}");
    }

    #[test]
    fn the_compilers_output_is_in_the_error() {
        let folder = tempfile::tempdir().expect("folder");
        let libtorch = Libtorch {
            lib_dir: folder.path().to_path_buf(),
            include_dir: folder.path().to_path_buf(),
            version: [1, 13, 0],
        };
        fs::write(libtorch.library(), "").expect("written");
        let home = folder.path().join("data");
        let home = home.to_str().expect("text");
        let options =
            |cxx| ShimOptions::new(&Environment::of([("CXX", cxx), ("GALATEA_HOME", home)]));
        let prepare = |cxx| {
            let source: ShimSource<'_> = &[("a.cpp", "int x;")];
            prepare_shim(&libtorch, source, &options(cxx), &mut SilentProgress)
        };
        let error = prepare("/nowhere/c++").expect_err("no compiler");
        assert!(error.message().starts_with("cannot start '/nowhere/c++'"), "{error}");
        let error = prepare("false").expect_err("refuses");
        assert!(
            error.message().starts_with("cannot compile the shim for PyTorch 1.13.0"),
            "{error}"
        );
        assert!(!folder.path().join("data/shims").join(LIBRARY).exists());
    }
}
