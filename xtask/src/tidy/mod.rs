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
mod platforms;
mod prepared;
mod private_fields;
mod source;
mod threats;
mod time;
mod unsafe_code;

use anyhow::{Result, bail};

use self::source::Workspace;

/// Prints that all is well, or fails with every fault there is, a line each. `--record-time` lowers the counts of the rule
/// about time to what there is today.
pub fn run(args: &[String]) -> Result<()> {
    match args {
        [] => check(),
        [option] if option == "--record-time" => {
            time::record(&Workspace::read(&manifests::metadata()?)?)
        }
        _ => bail!("tidy knows no option but --record-time"),
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
    let rules: [fn(&Workspace) -> Vec<String>; 15] = [
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
