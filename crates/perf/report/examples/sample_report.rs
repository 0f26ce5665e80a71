//! Writes pages of made-up runs, to look at them: `cargo run --example sample_report -- FOLDER`.
//!
//! The numbers follow the usual laws (throughput saturates, latency grows with the queue behind it), so that the
//! pages look like real ones; then there are pages with all that seldom happens.

#[path = "samples/mod.rs"]
mod samples;

use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let Some(folder) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "usage: sample_report FOLDER"));
    };
    fs::create_dir_all(&folder)?;
    for (name, runs) in samples::all() {
        let path = folder.join(name).with_extension("html");
        fs::write(&path, galatea_perf_report::html::page(&runs)?)?;
        println!("{}", path.display());
    }
    Ok(())
}
