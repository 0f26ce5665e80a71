//! Writes `src/generated/` of galatea-proto. With `--check` it writes nothing and fails on a difference.

use std::{error::Error, fs, path::Path};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let out_dir = crate_dir.join("src/generated");
    let files = ["model_config.proto", "kserve.proto", "health.proto"];
    let descriptors = protox::compile(files, [crate_dir.join("proto")])?;

    let fresh = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/generated");
    fs::create_dir_all(&fresh)?;
    fs::write(fresh.join("descriptors.bin"), descriptors.encode_to_vec())?;
    let mut config = prost_build::Config::new();
    // Tensor contents stay slices of the network buffer; maps keep one order, so answers repeat exactly.
    config.bytes([".inference"]).btree_map([".inference"]);
    tonic_prost_build::configure().out_dir(&fresh).build_client(true).build_transport(false).compile_fds_with_config(descriptors, config)?;

    let check = std::env::args().any(|a| a == "--check");
    fs::create_dir_all(&out_dir)?;
    for entry in fs::read_dir(&fresh)? {
        let entry = entry?;
        let target = out_dir.join(entry.file_name());
        let bytes = fs::read(entry.path())?;
        if !check {
            fs::write(&target, &bytes)?;
        } else if fs::read(&target).ok().as_deref() != Some(&bytes[..]) {
            return Err(format!("{} is not what the .proto files give: run `cargo xtask codegen`", target.display()).into());
        }
    }
    Ok(())
}
