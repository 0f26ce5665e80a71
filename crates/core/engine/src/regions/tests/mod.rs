//! Regions over files of a test's own folder, whose client cuts and changes them.

mod cuda;

use std::{
    fs,
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            fs::{FileExt, symlink},
            net::UnixStream,
        },
    },
    path::Path,
    process::Command,
    thread,
};

use galatea_types::{Code, OutputAllocator as _, RegionSpan};
use rustix::fs::{MemfdFlags, Mode, OFlags, fcntl_setfl, memfd_create};

use super::*;

const PAGE: u64 = 64 << 10;

struct Fixture {
    folder: tempfile::TempDir,
    table: RegionTable,
}

impl Fixture {
    fn new() -> Self {
        Self::within(MemoryBudget::unlimited())
    }

    fn within(memory: Arc<MemoryBudget>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let table = RegionTable::new(folder.path(), memory);
        Self { folder, table }
    }

    fn write_file(&self, name: &str, content: &[u8]) {
        fs::write(self.folder.path().join(name), content).expect("written");
    }

    fn content(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).expect("it is there")
    }

    fn cut(&self, name: &str, length: u64) {
        let file = fs::File::options().write(true).open(self.folder.path().join(name));
        file.expect("it is there").set_len(length).expect("cut");
    }

    fn register(&self, key: &str, offset: u64, byte_size: u64) -> Result<()> {
        self.table.register(description("r", key, offset, byte_size))
    }

    fn span(&self, offset: u64, byte_size: u64) -> Result<RegionSpan> {
        RegionSpan::new(self.table.find("r")?, offset, byte_size)
    }
}

fn description(name: &str, key: &str, offset: u64, byte_size: u64) -> RegionDescription {
    RegionDescription { name: name.into(), key: key.into(), offset, byte_size }
}

fn assert_fails<T>(result: Result<T>, code: Code, text: &str) {
    let error = result.err().expect("refused");
    assert_eq!((error.code(), error.message()), (code, text));
}

#[test]
fn region_offsets_are_relative_to_the_regions_start() {
    let fixture = Fixture::new();
    let mut content = vec![0; PAGE as usize];
    content.extend(0..64);
    fixture.write_file("k", &content);
    fixture.register("//k", PAGE, 64).expect("it is there");
    let data = fixture.span(8, 4).expect("inside").read().expect("readable");
    assert_eq!(data, vec![8, 9, 10, 11].into());
    assert!(data.is_aligned_to(galatea_types::BUFFER_ALIGNMENT));
    fixture.span(60, 4).expect("inside").place("y", &vec![1, 2, 3].into()).expect("it fits");
    content[PAGE as usize + 60..][..3].copy_from_slice(&[1, 2, 3]);
    assert_eq!(fixture.content("k"), content);
}

#[test]
fn data_that_was_read_does_not_change_with_the_region() {
    let fixture = Fixture::new();
    fixture.write_file("k", b"before");
    fixture.register("/k", 0, 6).expect("it is there");
    let data = fixture.span(0, 6).expect("inside").read().expect("readable");
    fixture.write_file("k", b"behind");
    assert_eq!(data.host().expect("host memory"), b"before");
}

#[test]
fn access_to_a_truncated_file_is_an_error_and_no_signal() {
    let fixture = Fixture::new();
    fixture.write_file("k", &[7; 64]);
    fixture.register("/k", 0, 64).expect("it is there");
    let span = fixture.span(32, 32).expect("inside");
    for length in [40, 0] {
        fixture.cut("k", length);
        let cut = |action| {
            format!(
                "Unable to {action} 32 bytes at offset 32 of shared memory region 'r': its memory has shrunk"
            )
        };
        assert_fails(span.read(), Code::Internal, &cut("read"));
        assert_fails(span.place("y", &vec![1; 32].into()), Code::Internal, &cut("write"));
        assert_eq!(fixture.content("k"), vec![7; length as usize]);
    }
}

#[test]
fn spans_outside_their_region_are_refused_even_if_the_file_is_longer() {
    let fixture = Fixture::new();
    fixture.write_file("k", &[7; 128]);
    fixture.register("/k", 0, 64).expect("it is there");
    fixture.span(60, 4).expect("the exact end");
    for (offset, byte_size, text) in [
        (64, 0, "Invalid offset for shared memory region: 'r'"),
        (u64::MAX, 4, "Invalid offset for shared memory region: 'r'"),
        (61, 4, "Invalid offset + byte size for shared memory region: 'r'"),
        (
            8,
            u64::MAX,
            "Integer overflow detected: byte_size (18446744073709551615) + offset (8) exceeds maximum value \
             (18446744073709551615) for region 'r'",
        ),
    ] {
        assert_fails(fixture.span(offset, byte_size), Code::InvalidArg, text);
        let region = fixture.table.find("r").expect("it is there");
        assert_fails(region.read(offset, byte_size), Code::InvalidArg, text);
    }
    let region = fixture.table.find("r").expect("it is there");
    assert!(region.write(61, &vec![1; 4].into()).is_err());
    assert_eq!(fixture.content("k"), [7; 128]);
}

#[test]
fn copies_count_against_the_budget_while_they_exist() {
    let budget = MemoryBudget::new(100 << 10);
    let fixture = Fixture::within(budget.clone());
    fixture.write_file("k", &[]);
    // A file without blocks: only copies of it take memory.
    fixture.cut("k", 1 << 40);
    fixture.register("/k", 0, 1 << 40).expect("it is there");
    let data = fixture.span(0, 64 << 10).expect("inside").read().expect("there is room");
    assert_eq!(budget.used(), 64 << 10);
    for byte_size in [64 << 10, 1 << 40] {
        let error = fixture.span(0, byte_size).expect("inside").read().expect_err("no room");
        assert_eq!(error.code(), Code::Exhausted);
    }
    drop(data);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_refused_registration_names_the_reason_and_leaks_no_descriptor() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path();
    fixture.write_file("k", &[7; 64]);
    fixture.write_file("triton_python_backend_shm_region_1", &[7; 64]);
    symlink(folder.join("k"), folder.join("link")).expect("a link");
    fs::create_dir(folder.join("inner")).expect("a folder");
    fs::write(folder.join("inner/k"), [7; 64]).expect("written");
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().expect("started").success());
    for key in ["/none", "/inner", "/inner/k", "/link", "/pipe", "/..", "/k\0"] {
        let text = format!("Unable to open shared memory region: '{key}'");
        assert_fails(fixture.register(key, 0, 1), Code::Internal, &text);
    }
    for key in ["", "//"] {
        let text = format!("cannot register shared memory region 'r' - invalid shm key '{key}'");
        assert_fails(fixture.register(key, 0, 1), Code::InvalidArg, &text);
    }
    let text = "cannot register shared memory region 'r' with key '/triton_python_backend_shm_region_1' as the key contains \
                the reserved prefix 'triton_python_backend_shm_region_'";
    let reserved = fixture.register("/triton_python_backend_shm_region_1", 0, 64);
    assert_fails(reserved, Code::InvalidArg, text);
    let no_range = "failed to register shared memory region 'r': invalid args";
    for (offset, byte_size) in [(0, 65), (65, 0), (u64::MAX, 2), (0, 1 << 63)] {
        assert_fails(fixture.register("/k", offset, byte_size), Code::InvalidArg, no_range);
    }
    let no_page = "failed to register shared memory region 'r': unable to process address spaceInvalid argument";
    for (offset, byte_size) in [(0, 0), (8, 8)] {
        assert_fails(fixture.register("/k", offset, byte_size), Code::InvalidArg, no_page);
    }
    assert!(fixture.table.list().is_empty());
    assert_eq!(descriptors_in(folder), 0);
}

#[test]
fn a_passed_descriptor_of_memory_is_a_region_without_a_key() {
    let fixture = Fixture::new();
    let memory = fs::File::from(memfd_create("m", MemfdFlags::CLOEXEC).expect("memory"));
    memory.set_len(64).expect("longer");
    let register = |offset, byte_size, descriptor: &dyn AsFd| {
        fixture
            .table
            .register_descriptor(description("r", "", offset, byte_size), descriptor.as_fd())
    };
    register(8, 56, &memory).expect("it is memory");
    let taken = "shared memory region 'r' already in manager";
    assert_fails(register(0, 64, &memory), Code::AlreadyExists, taken);
    assert_eq!(fixture.table.list(), [description("r", "", 8, 56)]);
    // The client shares the flags of its own descriptor, not those of the region.
    fcntl_setfl(&memory, OFlags::APPEND).expect("set");
    fixture.span(0, 4).expect("inside").place("y", &vec![1, 2].into()).expect("it fits");
    let mut content = [7; 64];
    assert_eq!(memory.read_at(&mut content, 0).expect("read"), 64, "nothing was appended");
    assert_eq!(content[7..11], [0, 1, 2, 0]);
    memory.set_len(9).expect("cut");
    let text =
        "Unable to read 4 bytes at offset 0 of shared memory region 'r': its memory has shrunk";
    assert_fails(fixture.span(0, 4).expect("inside").read(), Code::Internal, text);
}

#[test]
fn a_passed_descriptor_of_anything_else_is_refused() {
    let fixture = Fixture::new();
    let register = |descriptor: &dyn AsFd| {
        fixture.table.register_descriptor(description("r", "", 0, 64), descriptor.as_fd())
    };
    let memory = fs::File::from(memfd_create("m", MemfdFlags::CLOEXEC).expect("memory"));
    let (socket, _peer) = UnixStream::pair().expect("sockets");
    let reopened = |flags| {
        rustix::fs::open(format!("/proc/self/fd/{}", memory.as_raw_fd()), flags, Mode::empty())
    };
    let read_only = reopened(OFlags::RDONLY | OFlags::CLOEXEC).expect("opened");
    let path = reopened(OFlags::PATH | OFlags::CLOEXEC).expect("opened");
    let other = fs::File::options().read(true).write(true).open("/proc/self/comm").expect("there");
    let no_memory =
        "passed descriptor is no memory: make it with memfd_create, or open a file of /dev/shm";
    for (descriptor, reason) in [
        (&socket as &dyn AsFd, no_memory),
        (&other, no_memory),
        (&read_only, "passed descriptor is not open for reading and writing"),
        (&path, "passed descriptor was opened with O_PATH"),
        (&memory, "passed memory has 0 bytes, but offset is 0 and byte_size is 64"),
    ] {
        let text = format!("failed to register shared memory region 'r': the {reason}");
        assert_fails(register(descriptor), Code::InvalidArg, &text);
    }
    assert!(fixture.table.list().is_empty());
}

#[test]
fn names_and_keys_have_a_longest() {
    let fixture = Fixture::new();
    fixture.write_file("k", &[7; 64]);
    let register = |name: &str, key: &str| fixture.table.register(description(name, key, 0, 64));
    let (slashes, long) = ("/".repeat(LONGEST_NAME - 1), "n".repeat(LONGEST_NAME + 1));
    register(&long[1..], &format!("{slashes}k")).expect("as long as may be");
    let text = "the name of a shared memory region is 1025 bytes long, but may have 1024";
    assert_fails(register(&long, "k"), Code::InvalidArg, text);
    let text = "the key of a shared memory region is 1025 bytes long, but may have 1024";
    assert_fails(register("r", &format!("/{slashes}k")), Code::InvalidArg, text);
}

/// Counts the descriptors of this process that lie in `folder`.
fn descriptors_in(folder: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("Linux has it").flatten();
    open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(folder))).count()
}

#[test]
fn region_names_are_unique_and_listed_in_order() {
    let fixture = Fixture::new();
    fixture.write_file("k", &[7; 64]);
    let [b, a] = ["b", "a"].map(|name| description(name, "k", 0, 64));
    for region in [&b, &a] {
        fixture.table.register(region.clone()).expect("it is there");
    }
    let again = fixture.table.register(description("a", "other", 8, 1));
    assert_fails(again, Code::AlreadyExists, "shared memory region 'a' already in manager");
    assert_eq!(fixture.table.list(), [a.clone(), b]);
    assert_eq!(fixture.table.status("a").expect("registered"), a);
    fixture.table.unregister("a");
    fixture.table.unregister("a");
    let text = "Unable to find system shared memory region: 'a'";
    assert_fails(fixture.table.status("a"), Code::NotFound, text);
    let text = "Unable to find shared memory region: 'a'";
    assert_fails(fixture.table.find("a"), Code::NotFound, text);
    fixture.table.unregister_all();
    assert!(fixture.table.list().is_empty());
    assert_eq!(descriptors_in(fixture.folder.path()), 0);
}

#[test]
fn a_span_outlives_its_registration_and_its_file() {
    let fixture = Fixture::new();
    fixture.write_file("k", b"old");
    fixture.register("/k", 0, 3).expect("it is there");
    let span = fixture.span(0, 3).expect("inside");
    fs::remove_file(fixture.folder.path().join("k")).expect("removed");
    fixture.write_file("k", b"new");
    fixture.table.unregister("r");
    fixture.register("/k", 0, 3).expect("the name is free");
    assert_eq!(span.read().expect("readable"), b"old".to_vec().into());
    let later = fixture.span(0, 3).expect("inside").read();
    assert_eq!(later.expect("readable"), b"new".to_vec().into());
    drop(span);
    assert_eq!(descriptors_in(fixture.folder.path()), 1);
}

#[test]
fn regions_can_be_unregistered_during_reads_and_writes() {
    let fixture = Fixture::new();
    fixture.write_file("k", &[7; 4096]);
    let use_region = || {
        for _ in 0..500 {
            let Ok(span) = fixture.span(0, 4096) else { continue };
            assert_eq!(span.read().expect("readable"), vec![7; 4096].into());
            span.place("y", &vec![7; 4096].into()).expect("it fits");
        }
    };
    let change_table = || {
        for _ in 0..500 {
            // The other thread may have registered the name first.
            let _ = fixture.register("/k", 0, 4096);
            fixture.table.unregister("r");
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(use_region);
            scope.spawn(change_table);
        }
    });
    assert!(fixture.table.list().is_empty());
    assert_eq!(descriptors_in(fixture.folder.path()), 0);
}
