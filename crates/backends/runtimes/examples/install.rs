//! Installs a runtime into the user's data folder: `cargo run -p galatea-runtimes --example install --
//! onnxruntime`. Prints the path of the library.

use galatea_runtimes::{InstallOptions, Runtime, TerminalProgress, install};
use galatea_types::{Environment, Error, Result};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "onnxruntime".to_owned());
    let runtime = Runtime::by_name(&name)
        .ok_or_else(|| Error::not_found(format!("no runtime is called '{name}'")))?;
    let environment: Environment = std::env::vars_os().collect();
    let options = InstallOptions::new(&environment);
    let library = install(runtime, &options, &mut TerminalProgress::new())?;
    println!("{}", library.display());
    Ok(())
}
