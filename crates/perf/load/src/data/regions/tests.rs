//! Shared memory regions: their layout and contents.

use std::{io::Read, path::PathBuf};

use galatea_client::InputData;
use galatea_perf_types::{requests::RequestSource, settings::DataSource};
use galatea_types::{DataType, Error};

use super::{
    super::tests::{Recorder, block_on, model, settings},
    *,
};

fn requests() -> Requests {
    let mut settings = settings(DataSource::Random);
    settings.batch_size = 2;
    let mut model = model(&[(DataType::Int16, &[3]), (DataType::Bytes, &[1])]);
    model.inputs[0].name = "a/b".to_owned();
    Requests::new(&settings, &model, &mut Recorder::default()).unwrap()
}

fn memory(region: &Region) -> PathBuf {
    PathBuf::from(format!("/dev/shm{}", region.key()))
}

#[test]
fn tensors_are_put_in_regions_named_by_the_requests() {
    let mut requests = requests();
    let whole = requests.input_bytes(0, 0, 0);
    let regions = Regions::create(&requests, 100).unwrap();
    regions.use_for(&mut requests, &mut Recorder::default());
    let template = requests.template(0, 0);
    let InputData::Region(slice) = &template.inputs[0].data else { panic!("inline") };
    assert!(slice.region.starts_with("ab_0_0_"), "{slice:?}");
    assert_eq!(slice.byte_size, 12);
    let region = regions.regions.iter().find(|region| region.name == slice.region).unwrap();
    let mut content = Vec::new();
    File::open(memory(region)).unwrap().read_to_end(&mut content).unwrap();
    assert_eq!(content, whole);
    let sizes: Vec<_> =
        template.outputs.iter().map(|output| output.region.clone().unwrap().byte_size).collect();
    // Three numbers twice; what a string takes is not known.
    assert_eq!(sizes, [12, 200]);
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
    Regions::create(&requests, 1).unwrap().use_for(&mut requests, &mut console);
    assert!(requests.expected(0, 0).is_none());
    assert!(console.err.starts_with("WARNING: 'validation_data' is not checked"));
}

#[test]
fn dropping_the_regions_removes_their_memory() {
    let regions = Regions::create(&requests(), 100).unwrap();
    let memories: Vec<_> = regions.regions.iter().map(memory).collect();
    assert_eq!(memories.len(), 4);
    assert!(memories.iter().all(|memory| memory.exists()));
    drop(regions);
    assert!(memories.iter().all(|memory| !memory.exists()));
}

#[test]
fn registered_regions_are_unregistered() {
    let mut regions = Regions::create(&requests(), 100).unwrap();
    let mut registered = Vec::new();
    let failed = block_on(regions.register_each(async |name, key, byte_size| {
        assert_eq!(key, format!("/{name}"));
        assert!(byte_size > 0);
        registered.push(name.to_owned());
        if registered.len() == 3 { Err(Error::invalid_arg("no more")) } else { Ok(()) }
    }));
    let message = failed.expect_err("the third fails").message;
    assert_eq!(message, "error: Unable to init infer data manager: no more");
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
fn regions_of_two_runs_have_different_names() {
    let requests = requests();
    let names = |regions: &Regions| -> Vec<String> {
        regions.regions.iter().map(|region| region.name.clone()).collect()
    };
    let (first, second) =
        (Regions::create(&requests, 1).unwrap(), Regions::create(&requests, 1).unwrap());
    assert!(names(&first).iter().all(|name| !names(&second).contains(name)));
}
