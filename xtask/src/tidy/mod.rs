//! `cargo xtask tidy`: the rules a reviewer would otherwise repeat, one file per rule.

mod absent;
mod circles;
mod codes;
mod documented;
mod environment;
mod files;
mod folders;
mod locks;
mod manifests;
mod module_lines;
mod prepared;
mod private_fields;
mod source;
mod threats;
mod unsafe_code;

use anyhow::{Result, bail};

use self::source::Workspace;

/// Prints that all is well, or fails with every fault there is, a line each.
pub fn run() -> Result<()> {
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
    let rules: [fn(&Workspace) -> Vec<String>; 13] = [
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
        threats::faults,
    ];
    let mut faults = manifests::faults(&metadata);
    faults.extend(rules.iter().flat_map(|rule| rule(&workspace)));
    Ok(faults)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        super::run().unwrap();
    }
}
