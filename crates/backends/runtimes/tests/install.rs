//! Installing from an index on loopback that misbehaves in the ways networks do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod server;

use std::{fs, io::Write, path::Path};

use galatea_runtimes::{
    FindOptions, InstallOptions, Package as Folder, Part, Progress, Runtime, Wheel, find,
    find_package, install, install_package,
};
use galatea_types::{Environment, Result};
use server::{Fault, Server};
use tempfile::TempDir;

const FILENAME: &str = "thing-1.0-py3-none-any.whl";
const LIBRARY: &[u8] = b"not really a library";

/// A wheel of some size and the runtime that pins it.
struct Package {
    wheel: Vec<u8>,
    runtime: Runtime,
}

impl Package {
    fn new() -> Self {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        let filler: Vec<u8> = (0..200_000u32).map(|i| (i * 31 % 251) as u8).collect();
        for (name, content) in [
            ("thing/libthing.so", LIBRARY),
            ("thing/LICENSE", b"MIT"),
            ("thing/include/deep/a.h", b"int a;"),
            ("thing/include/../../b.h", b"leads out"),
            ("thing/filler", &filler),
        ] {
            archive.start_file(name, stored).unwrap();
            archive.write_all(content).unwrap();
        }
        let wheel = archive.finish().unwrap().into_inner();
        let sha256 = sha256(&wheel);
        let pin = Wheel { arch: std::env::consts::ARCH, filename: FILENAME, sha256: leak(sha256) };
        let runtime = Runtime {
            name: "thing",
            title: "Thing",
            version: "1.0",
            project: "thing",
            megabytes: 1,
            wheels: Box::leak(Box::new([pin])),
            members: &[
                ("thing/libthing.so", "libthing.so"),
                ("thing/LICENSE", "LICENSE"),
                ("thing/include/", "headers/"),
            ],
            variable: "THING_LIB",
        };
        Self { wheel, runtime }
    }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[derive(Default)]
struct Recorder {
    starts: Vec<(u64, Option<u64>)>,
    notes: Vec<String>,
}

impl Progress for Recorder {
    fn started(&mut self, _file: &str, done: u64, total: Option<u64>) {
        self.starts.push((done, total));
    }
    fn advanced(&mut self, _done: u64) {}
    fn finished(&mut self) {}
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

fn options(folder: &Path, index: &str) -> InstallOptions {
    InstallOptions::new(&Environment::of([
        ("GALATEA_HOME", folder.to_str().unwrap()),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_INDEX_URL", index),
        ("PIP_DEFAULT_TIMEOUT", "5"),
    ]))
}

struct Attempt {
    folder: TempDir,
    server: Server,
    recorder: Recorder,
    outcome: Result<std::path::PathBuf>,
}

fn attempt(package: &Package, faults: &[Fault]) -> Attempt {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(FILENAME, package.wheel.clone(), faults);
    let mut recorder = Recorder::default();
    let outcome =
        install(&package.runtime, &options(folder.path(), &server.index()), &mut recorder);
    Attempt { folder, server, recorder, outcome }
}

fn part(folder: &Path) -> std::path::PathBuf {
    folder.join("runtimes/thing").join(format!("{FILENAME}.part"))
}

#[track_caller]
fn assert_installed(attempt: &Attempt, package: &Package) {
    let library = attempt.outcome.as_ref().expect("installed");
    assert_eq!(fs::read(library).unwrap(), LIBRARY);
    assert_eq!(fs::read(library.with_file_name("LICENSE")).unwrap(), b"MIT");
    let folder = library.parent().unwrap();
    assert_eq!(fs::read(folder.join("headers/deep/a.h")).unwrap(), b"int a;");
    assert!(!folder.join("../b.h").exists() && !folder.join("b.h").exists());
    let home = attempt.folder.path().to_str().unwrap();
    let environment = Environment::of([("HOME", "/nowhere"), ("GALATEA_HOME", home)]);
    let found = find(&package.runtime, &FindOptions::new(&environment));
    assert_eq!(found.as_ref(), Some(library));
    assert!(!part(attempt.folder.path()).exists(), "the download is cleaned up");
}

#[test]
fn a_runtime_is_installed_once_from_a_page_of_links() {
    let package = Package::new();
    let first = attempt(&package, &[]);
    assert_installed(&first, &package);
    assert_eq!(first.recorder.starts, [(0, Some(package.wheel.len() as u64))]);
    let requests = first.server.requests().len();
    let again = options(first.folder.path(), &first.server.index());
    install(&package.runtime, &again, &mut Recorder::default()).unwrap();
    assert_eq!(first.server.requests().len(), requests, "an installed one asks for nothing");
}

#[test]
fn a_runtime_is_installed_from_a_json_page() {
    let package = Package::new();
    assert_installed(&attempt(&package, &[Fault::JsonPage]), &package);
}

#[test]
fn an_interrupted_download_is_resumed() {
    let package = Package::new();
    let cut = attempt(&package, &[Fault::CutAfter(50_000)]);
    assert_installed(&cut, &package);
    let requests = cut.server.requests();
    let resumed = requests.last().unwrap();
    assert!(resumed.contains("range: bytes=50000-"), "{resumed}");
    assert_eq!(cut.recorder.starts[1], (50_000, Some(package.wheel.len() as u64)));
}

#[test]
fn a_partial_download_of_an_earlier_process_is_resumed() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(part(folder.path()).parent().unwrap()).unwrap();
    fs::write(part(folder.path()), &package.wheel[..1234]).unwrap();
    let server = Server::start(FILENAME, package.wheel.clone(), &[]);
    let mut recorder = Recorder::default();
    install(&package.runtime, &options(folder.path(), &server.index()), &mut recorder).unwrap();
    assert_eq!(recorder.starts[0].0, 1234);
}

#[test]
fn a_download_restarts_if_the_server_has_no_range_requests() {
    let package = Package::new();
    assert_installed(&attempt(&package, &[Fault::NoRanges, Fault::CutAfter(50_000)]), &package);
}

#[test]
fn a_damaged_partial_download_is_deleted() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(part(folder.path()).parent().unwrap()).unwrap();
    fs::write(part(folder.path()), vec![0; 4321]).unwrap();
    let server = Server::start(FILENAME, package.wheel.clone(), &[]);
    let mut recorder = Recorder::default();
    install(&package.runtime, &options(folder.path(), &server.index()), &mut recorder).unwrap();
    assert!(recorder.notes.iter().any(|n| n.contains("damaged")), "{:?}", recorder.notes);
}

#[test]
fn a_partial_download_longer_than_the_file_is_deleted() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(part(folder.path()).parent().unwrap()).unwrap();
    fs::write(part(folder.path()), vec![0; package.wheel.len() + 1]).unwrap();
    let server = Server::start(FILENAME, package.wheel.clone(), &[]);
    install(&package.runtime, &options(folder.path(), &server.index()), &mut Recorder::default())
        .unwrap();
}

#[test]
fn a_wheel_with_a_wrong_digest_is_refused() {
    let package = Package::new();
    let wrong = attempt(&package, &[Fault::WrongContent]);
    let error = wrong.outcome.unwrap_err();
    assert!(error.message().contains("sha256"), "{error}");
    assert!(error.message().contains(package.runtime.wheels[0].sha256), "{error}");
    assert!(!part(wrong.folder.path()).exists(), "nothing wrong is kept");
    assert!(!wrong.folder.path().join("runtimes/thing/1.0").exists());
}

#[test]
fn a_file_of_unbounded_length_is_not_downloaded() {
    let package = Package::new();
    let endless = attempt(&package, &[Fault::Endless]);
    let error = endless.outcome.unwrap_err();
    assert!(error.message().contains("larger than any file"), "{error}");
    assert!(!part(endless.folder.path()).exists());
}

#[test]
fn a_repeatedly_interrupted_download_reports_its_progress() {
    let package = Package::new();
    let faults: Vec<Fault> = (0..10).map(|_| Fault::CutAfter(1000)).collect();
    let cut = attempt(&package, &faults);
    let error = cut.outcome.unwrap_err();
    let expected = format!("of {} bytes", package.wheel.len());
    assert!(error.message().contains(&expected), "{error}");
    assert_eq!(fs::metadata(part(cut.folder.path())).unwrap().len(), 4000, "what came is kept");
}

#[test]
fn without_a_network_the_error_names_alternatives() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    let closed = server::closed_port();
    let index = format!("http://user:secret@127.0.0.1:{closed}/simple");
    let error =
        install(&package.runtime, &options(folder.path(), &index), &mut Recorder::default())
            .unwrap_err();
    let message = error.message();
    assert!(message.contains(&format!("cannot reach 'http://127.0.0.1:{closed}/simple/thing/'")));
    assert!(message.contains(FILENAME) && message.contains("THING_LIB"), "{message}");
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn an_unreachable_proxy_is_named() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    let proxy = format!("127.0.0.1:{}", server::closed_port());
    let options = InstallOptions::new(&Environment::of([
        ("GALATEA_HOME", folder.path().to_str().unwrap()),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_INDEX_URL", "http://index.invalid/simple"),
        ("PIP_PROXY", &format!("http://user:secret@{proxy}")),
    ]));
    let error = install(&package.runtime, &options, &mut Recorder::default()).unwrap_err();
    let expected = format!(
        "cannot reach 'http://index.invalid/simple/thing/' through the proxy '{proxy}' (which pip's settings name: \
         PIP_PROXY or pip.conf): http://index.invalid: cannot connect: Connection refused"
    );
    assert!(error.message().contains(&expected), "{error}");
    assert!(!error.message().contains("secret"), "{error}");
}

#[test]
fn a_read_only_folder_is_reported_with_its_variable() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error =
        install(&package.runtime, &options(&file, "http://127.0.0.1:1"), &mut Recorder::default());
    let message = error.unwrap_err().message().to_owned();
    let path = format!("cannot write to '{}/", file.display());
    assert!(
        message.starts_with(&path) && message.contains("GALATEA_HOME to another folder"),
        "{message}"
    );
}

#[test]
fn an_index_without_the_file_is_named() {
    let package = Package::new();
    let none = attempt(&package, &[Fault::EmptyPage]);
    let error = none.outcome.unwrap_err();
    assert!(error.message().contains("does not list"), "{error}");
    let missing = attempt(&package, &[Fault::NotFound]);
    assert!(missing.outcome.unwrap_err().message().contains("answers 404"));
}

#[test]
fn a_local_wheel_needs_no_index() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    let wheel = folder.path().join("copy.whl");
    fs::write(&wheel, &package.wheel).unwrap();
    let mut options = options(folder.path(), "http://127.0.0.1:1/simple");
    options.wheel = Some(wheel.clone());
    let library = install(&package.runtime, &options, &mut Recorder::default()).unwrap();
    assert_eq!(fs::read(library).unwrap(), LIBRARY);
    assert!(wheel.exists(), "it is the user's");
}

#[test]
fn a_given_wheel_is_checked_even_if_one_is_installed() {
    let package = Package::new();
    let first = attempt(&package, &[]);
    let library = first.outcome.as_ref().unwrap();
    let mut options = options(first.folder.path(), &first.server.index());
    let with = |wheel: &Path, options: &mut InstallOptions| {
        options.wheel = Some(wheel.to_path_buf());
        install(&package.runtime, options, &mut Recorder::default())
    };
    let missing = first.folder.path().join("nosuch.whl");
    let error = with(&missing, &mut options).unwrap_err();
    assert!(error.message().starts_with(&format!("cannot read '{}'", missing.display())));
    let other = first.folder.path().join("other.whl");
    fs::write(&other, "something else").unwrap();
    let error = with(&other, &mut options).unwrap_err();
    assert!(error.message().contains("is not the file expected"), "{error}");
    fs::write(&other, &package.wheel).unwrap();
    assert_eq!(&with(&other, &mut options).unwrap(), library);
}

#[test]
fn two_installers_run_at_the_same_time() {
    let package = Package::new();
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(FILENAME, package.wheel.clone(), &[]);
    let options = options(folder.path(), &server.index());
    std::thread::scope(|scope| {
        let installers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| install(&package.runtime, &options, &mut Recorder::default())))
            .collect();
        for installer in installers {
            let library = installer.join().unwrap().unwrap();
            assert_eq!(fs::read(library).unwrap(), LIBRARY);
        }
    });
    let downloads = server.requests().iter().filter(|r| r.contains(FILENAME)).count();
    assert_eq!(downloads, 1, "the others found it installed");
}

#[test]
fn a_runtime_package_combines_wheels_and_embedded_files() {
    let package = Package::new();
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(FILENAME, package.wheel.clone(), &[]);
    let options = options(home.path(), &server.index());
    let environment = Environment::of([("GALATEA_HOME", home.path())]);
    let pin = Wheel { arch: Wheel::ANY, ..package.runtime.wheels[0].clone() };
    let part = Part {
        project: "thing",
        wheels: &[pin],
        members: &[("thing/libthing.so", "thing/1/model.onnx")],
    };
    let parts = [part];
    let of = |files| Folder {
        title: "Thing",
        version: "1.0",
        place: "examples/thing",
        parts: &parts,
        files,
        otherwise: "do without",
    };
    let first = of(&[("thing/config.pbtxt", b"name: 'thing'"), ("empty/1/.keep", b"")]);
    assert_eq!(find_package(&first, &environment), None);
    let folder = install_package(&first, &options, &mut Recorder::default()).unwrap();
    assert_eq!(find_package(&first, &environment).as_ref(), Some(&folder));
    assert_eq!(fs::read(folder.join("thing/1/model.onnx")).unwrap(), LIBRARY);
    assert_eq!(fs::read(folder.join("thing/config.pbtxt")).unwrap(), b"name: 'thing'");
    assert!(folder.join("empty/1").is_dir());
    // A program with another configuration does not take the old one for its own.
    let other = of(&[("thing/config.pbtxt", b"name: 'other'"), ("empty/1/.keep", b"")]);
    assert_eq!(find_package(&other, &environment), None);
    assert_ne!(install_package(&other, &options, &mut Recorder::default()).unwrap(), folder);
    fs::remove_file(folder.join("thing/1/model.onnx")).unwrap();
    assert_eq!(find_package(&first, &environment), None, "without what it is all about");
}
