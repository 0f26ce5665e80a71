//! `cargo xtask tidy`: the rules a reviewer would otherwise repeat, one file per rule.

mod absent;
mod circles;
mod codes;
mod comments;
mod decisions;
mod documented;
mod environment;
mod files;
mod folders;
mod locks;
mod manifests;
mod module_lines;
mod names;
mod pages;
mod phrases;
mod platforms;
mod prepared;
mod private_fields;
mod questions;
mod ratchet;
pub mod source;
mod threats;
mod time;
mod tuples;
mod unsafe_code;

use anyhow::{Result, bail};

use self::source::Workspace;

/// Prints success, or fails with all faults, one per line. `--record` lowers the allowed counts to those of today.
pub fn run(args: &[String]) -> Result<()> {
    match args {
        [] => check(),
        [option] if option == "--record" => {
            let workspace = Workspace::read(&manifests::metadata()?)?;
            let records = [time::record, comments::record, pages::record, tuples::record];
            records.iter().try_for_each(|record| record(&workspace))
        }
        _ => bail!("tidy knows no option but --record"),
    }
}

fn check() -> Result<()> {
    let faults = faults()?;
    if faults.is_empty() {
        println!("tidy: no faults");
        return Ok(());
    }
    bail!("tidy:\n  {}", faults.join("\n  "))
}

fn faults() -> Result<Vec<String>> {
    let metadata = manifests::metadata()?;
    let workspace = Workspace::read(&metadata)?;
    let rules: [fn(&Workspace) -> Vec<String>; 22] = [
        files::faults,
        codes::faults,
        private_fields::faults,
        prepared::faults,
        circles::faults,
        module_lines::faults,
        unsafe_code::faults,
        folders::faults,
        environment::faults,
        documented::faults,
        locks::faults,
        absent::faults,
        platforms::faults,
        threats::faults,
        time::faults,
        questions::faults,
        tuples::faults,
        comments::faults,
        pages::faults,
        decisions::faults,
        phrases::faults,
        names::faults,
    ];
    let mut faults = manifests::faults(&metadata);
    faults.extend(rules.iter().flat_map(|rule| rule(&workspace)));
    Ok(faults)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        super::check().unwrap();
    }
}
