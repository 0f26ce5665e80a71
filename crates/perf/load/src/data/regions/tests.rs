//! Shared memory regions: their layout and contents, and that nothing is left of them.

use std::{fs::File, io::Read, os::fd::AsRawFd, path::PathBuf};

use galatea_client::InputData;
use galatea_perf_types::{
    requests::RequestSource,
    settings::{DataSource, SharedMemory},
    summary::TensorBytes,
};
use galatea_types::{DataType, Error};

use super::{
    super::tests::{Recorder, block_on, model, settings},
    *,
};

const KINDS: [SharedMemory; 2] = [SharedMemory::System, SharedMemory::Memfd];

fn requests() -> Requests {
    let mut settings = settings(DataSource::Random);
    settings.batch_size = 2;
    let mut model = model(&[(DataType::Int16, &[3]), (DataType::Bytes, &[1])]);
    model.inputs[0].name = "a/b".to_owned();
    Requests::new(&settings, &model, &mut Recorder::default()).unwrap()
}

/// The path at which the memory can be opened while the tool has it.
fn path(memory: &RegionMemory) -> PathBuf {
    match memory.key() {
        Some(key) => PathBuf::from(format!("/dev/shm{key}")),
        None => PathBuf::from(format!("/proc/self/fd/{}", memory.descriptor().as_raw_fd())),
    }
}

fn named_files(regions: &Regions) -> Vec<PathBuf> {
    let files =
        regions.regions.iter().map(|region| PathBuf::from(format!("/dev/shm/{}", region.name)));
    files.filter(|file| file.exists()).collect()
}

#[test]
fn tensors_are_put_in_regions_named_by_the_requests() {
    for kind in KINDS {
        let mut requests = requests();
        let whole = requests.input_bytes(0, 0, 0);
        let mut regions = Regions::plan(&requests, kind, 100);
        let mut contents = Vec::new();
        block_on(regions.register_each(&requests, async |name, memory, byte_size| {
            assert_eq!(memory.key().is_some(), kind == SharedMemory::System);
            let mut content = Vec::new();
            File::open(path(memory)).unwrap().read_to_end(&mut content).unwrap();
            assert_eq!(content.len(), byte_size);
            contents.push((name.to_owned(), content));
            Ok(())
        }))
        .unwrap();
        assert_eq!(named_files(&regions), [] as [PathBuf; 0], "the server has the memory");
        regions.use_for(&mut requests, &mut Recorder::default());
        let template = requests.template(0, 0);
        let InputData::Region(slice) = &template.inputs[0].data else { panic!("inline") };
        assert!(slice.region.starts_with("ab_0_0_"), "{slice:?}");
        assert_eq!(slice.byte_size, 12);
        let (_, content) = contents.iter().find(|(name, _)| *name == slice.region).unwrap();
        assert_eq!(*content, whole);
        let outputs = template.outputs.iter();
        let sizes: Vec<_> =
            outputs.map(|output| output.region.clone().unwrap().byte_size).collect();
        // Three numbers twice; what a string takes is not known.
        assert_eq!(sizes, [12, 200]);
    }
}

#[test]
fn memory_without_a_name_keeps_its_size() {
    let memory = RegionMemory::unnamed("a", 10, b"abc").unwrap();
    assert!(File::options().write(true).open(path(&memory)).unwrap().set_len(9).is_err());
}

#[test]
fn bytes_of_tensors_are_counted_where_their_size_is_known() {
    let requests = requests();
    let strings = requests.input_byte_size(1, 0, 0);
    assert_eq!(strings, requests.input_bytes(1, 0, 0).len());
    let expected = TensorBytes {
        inputs_per_request: 12 + strings as u64,
        outputs_per_response: 12,
        uncounted_outputs: vec!["OUTPUT1".to_owned()],
    };
    assert_eq!(requests.tensor_bytes(), expected);
}

#[test]
fn outputs_in_regions_are_not_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.json");
    let json = r#"{"data":[{"INPUT0":[1]}],"validation_data":[{"OUTPUT0":[1]}]}"#;
    std::fs::write(&path, json).unwrap();
    let settings = settings(DataSource::Files(vec![path]));
    let model = model(&[(DataType::Int16, &[1])]);
    let mut console = Recorder::default();
    let mut requests = Requests::new(&settings, &model, &mut console).unwrap();
    assert!(requests.expected(0, 0).is_some());
    Regions::plan(&requests, SharedMemory::System, 1).use_for(&mut requests, &mut console);
    assert!(requests.expected(0, 0).is_none());
    assert!(console.err.starts_with("WARNING: 'validation_data' is not checked"));
}

#[test]
fn registered_regions_are_unregistered() {
    let requests = requests();
    let mut regions = Regions::plan(&requests, SharedMemory::System, 100);
    let mut registered = Vec::new();
    let failed = block_on(regions.register_each(&requests, async |name, memory, byte_size| {
        assert_eq!(memory.key(), Some(&*format!("/{name}")));
        assert!(byte_size > 0);
        registered.push(name.to_owned());
        if registered.len() == 3 { Err(Error::invalid_arg("no more")) } else { Ok(()) }
    }));
    let message = failed.expect_err("the third fails").message;
    assert_eq!(message, "error: Unable to init infer data manager: no more");
    assert_eq!(named_files(&regions), [] as [PathBuf; 0], "nothing is left of the failed one");
    let mut unregistered = Vec::new();
    let failed = block_on(regions.unregister_each(async |name| {
        unregistered.push(name.to_owned());
        Err(Error::unavailable("gone"))
    }));
    assert_eq!(failed.expect_err("each fails").message(), "gone");
    assert_eq!(unregistered, registered);
    block_on(regions.unregister_each(async |name| panic!("{name} again"))).unwrap();
}

#[test]
fn a_hasty_end_removes_a_name_that_the_server_does_not_have_yet() {
    let requests = requests();
    let mut regions = Regions::plan(&requests, SharedMemory::System, 100);
    let names = regions.names();
    let mut files = Vec::new();
    let ended = block_on(regions.register_each(&requests, async |_, memory, _| {
        files.push(path(memory));
        assert!(files[0].exists());
        names.unlink();
        assert!(!files[0].exists());
        Err(Error::unavailable("ended"))
    }));
    assert!(ended.is_err() && files.len() == 1);
}

#[test]
fn regions_of_two_runs_have_different_names() {
    let requests = requests();
    let names = || Regions::plan(&requests, SharedMemory::System, 1).names().0;
    let (first, second) = (names(), names());
    assert!(first.iter().all(|name| !second.contains(name)));
}
