//! Writes `src/generated/` of galatea-proto, and the clients of the tests of galatea-grpc. With `--check` it writes nothing and fails on a difference.

use std::{error::Error, fs, path::Path};

use prost::Message as _;

const AS_JSON: [&str; 7] = [
    "ServerMetadataResponse",
    "ModelMetadataResponse",
    "RepositoryIndexResponse.ModelIndex",
    "StatisticDuration",
    "InferStatistics",
    "InferResponseStatistics",
    "InferBatchStatistics",
];
const LEFT_OUT_WHERE_EMPTY: [&str; 3] = ["version", "state", "reason"];

fn main() -> Result<(), Box<dyn Error>> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = [
        "model_config.proto",
        "kserve.proto",
        "health.proto",
        "load_report.proto",
        "load_report_service.proto",
    ];
    let descriptors = protox::compile(files, [crate_dir.join("proto")])?;
    let fresh = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/generated");
    let (messages, clients) = (fresh.join("messages"), fresh.join("clients"));
    fs::create_dir_all(&messages)?;
    fs::create_dir_all(&clients)?;

    fs::write(messages.join("descriptors.bin"), descriptors.encode_to_vec())?;
    let mut config = prost_build::Config::new();
    // Tensor contents stay slices of the network buffer; maps keep one order, so answers repeat exactly.
    config.bytes([".inference"]).btree_map([".inference", ".xds"]);
    // What HTTP answers with the same content, as JSON.
    for message in AS_JSON {
        config.type_attribute(format!(".inference.{message}"), "#[derive(::serde::Serialize)]");
    }
    for field in LEFT_OUT_WHERE_EMPTY {
        let path = format!(".inference.RepositoryIndexResponse.ModelIndex.{field}");
        config.field_attribute(path, "#[serde(skip_serializing_if = \"::prost::alloc::string::String::is_empty\")]");
    }
    config.out_dir(&messages).compile_fds(descriptors.clone())?;

    // Clients of the services, for the tests of the front end. It answers calls by their names.
    tonic_prost_build::configure()
        .out_dir(&clients)
        .build_server(false)
        .build_transport(false)
        .extern_path(".inference", "::galatea_proto::inference")
        .extern_path(".grpc.health.v1", "::galatea_proto::health")
        .extern_path(".xds.data.orca.v3", "::galatea_proto::load_report")
        .extern_path(".xds.service.orca.v3", "::galatea_proto::load_report_service")
        .compile_fds(descriptors)?;

    let check = std::env::args().any(|a| a == "--check");
    compare(&messages, &crate_dir.join("src/generated"), check)?;
    compare(&clients, &crate_dir.join("../../front/grpc/tests/service/generated"), check)?;
    Ok(())
}

/// Copies the fresh files, or only looks whether those that are there are the same.
fn compare(fresh: &Path, target: &Path, check: bool) -> Result<(), Box<dyn Error>> {
    if !check {
        fs::create_dir_all(target)?;
    }
    for entry in fs::read_dir(fresh)? {
        let entry = entry?;
        let target = target.join(entry.file_name());
        let bytes = fs::read(entry.path())?;
        if !check {
            fs::write(&target, &bytes)?;
        } else if fs::read(&target).ok().as_deref() != Some(&bytes[..]) {
            return Err(format!("{} is not what the .proto files give: run `cargo xtask codegen`", target.display()).into());
        }
    }
    Ok(())
}
