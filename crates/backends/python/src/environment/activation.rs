//! The variables that activating an environment sets. As in Triton, its script `bin/activate` runs, and the variables are
//! then read from the shell's environment.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use galatea_types::Environment as Variables;

use super::{
    confinement::{Confinement, ProgramAccess},
    interpreter::installations,
    search,
};

/// Path of the script in the environment.
const SCRIPT: &str = "bin/activate";
/// Time limit of the script, which should only set variables.
const TIMEOUT: Duration = Duration::from_secs(30);
const MARK: &str = "galatea-activated ";
/// `$1` is the script, `$2` the interpreter, which writes the environment as JSON, and `$3` its program.
const COMMANDS: &str = ". \"$1\" >/dev/null 2>&1; exec \"$2\" -I -c \"$3\"";
const REPORT: &str = "import json, os\nprint('galatea-activated ' + json.dumps(dict(os.environ)))";
/// Variables of the shell that runs the script.
const OF_THE_SHELL: [&str; 6] = ["PWD", "OLDPWD", "SHLVL", "_", "PS1", "BASH_ENV"];

/// Returns the path of the script, if there is one.
pub(super) fn script(root: &Path) -> Option<PathBuf> {
    Some(root.join(SCRIPT)).filter(|script| script.is_file())
}

pub(super) struct Activation<'a> {
    pub root: &'a Path,
    /// Interpreter of the environment.
    pub python: &'a Path,
    /// The variables that the interpreter has without the script.
    pub settings: &'a [(OsString, OsString)],
    /// The server's own variables.
    pub server: &'a Variables,
}

impl Activation<'_> {
    /// Returns the variables that the script sets to other values than the interpreter or the server has. A script that
    /// cannot be run is logged.
    pub fn variables(&self, confinement: &Confinement) -> Vec<(OsString, OsString)> {
        let Some(script) = script(self.root) else { return Vec::new() };
        let Some(shell) = search::on_path("bash", self.server) else {
            log::warn!("cannot run '{}': there is no bash on PATH", script.display());
            return Vec::new();
        };
        let mut command = Command::new(shell);
        command.args(["--norc", "--noprofile", "-c", COMMANDS, "activate"]);
        command.args([script.as_os_str(), self.python.as_os_str(), REPORT.as_ref()]);
        command.envs(self.settings.iter().cloned()).current_dir("/");
        let readable = [installations(self.python), vec![self.root.to_owned()]].concat();
        let reach = ProgramAccess { readable, ..ProgramAccess::default() };
        let mut report = None;
        let done = confinement.run(command, reach, TIMEOUT, &mut |line: &str| {
            if let Some(json) = line.strip_prefix(MARK) {
                report = serde_json::from_str(json).ok();
            }
        });
        match (done, report) {
            (Ok(()), Some(report)) => self.changed(report),
            (done, _) => {
                let reason =
                    done.err().map_or_else(String::new, |failure| format!(": it {failure}"));
                log::warn!("'{}' sets no variables{reason}", script.display());
                Vec::new()
            }
        }
    }

    fn changed(&self, report: BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
        let is_changed = |(name, value): &(String, String)| {
            let given = self.settings.iter().rev().find(|(known, _)| known == name.as_str());
            let before = given.map(|(_, value)| value.clone()).or_else(|| self.server.get(name));
            // An empty variable counts as unset.
            before.unwrap_or_default() != OsString::from(value)
        };
        let all = report.into_iter().filter(|pair| is_kept(pair) && is_changed(pair));
        all.map(|(name, value)| (name.into(), value.into())).collect()
    }
}

fn is_kept((name, value): &(String, String)) -> bool {
    let is_of_the_shell = OF_THE_SHELL.contains(&name.as_str()) || name.starts_with("BASH_FUNC_");
    !is_of_the_shell && !name.contains(['=', '\0']) && !value.contains('\0')
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// Prints two variables instead of all, like the interpreter.
    const INTERPRETER: &str = "#!/bin/sh\nprintf 'galatea-activated {\"MINE\":\"%s\",\"KNOWN\":\"%s\",\"PWD\":\"x\"}\\n' \"$MINE\" \"$KNOWN\"\n";

    #[test]
    fn variables_exported_by_the_activation_script_are_set() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        let script = "export MINE=\"$KNOWN and more\"\nNOT_EXPORTED=1\necho noise\n";
        fs::create_dir(root.join("bin")).expect("created");
        fs::write(root.join(SCRIPT), script).expect("written");
        let python = root.join("bin/python");
        fs::write(&python, INTERPRETER).expect("written");
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("set");
        let server = Variables::of([("PATH", "/usr/bin:/bin")]);
        let settings = [("KNOWN".into(), "this".into())];
        let set = |root: &Path| {
            let script = Activation { root, python: &python, settings: &settings, server: &server };
            script.variables(&Confinement::none())
        };
        assert_eq!(set(root), [("MINE".into(), "this and more".into())]);
        assert_eq!(set(Path::new("/nowhere")), []);
        fs::write(root.join(SCRIPT), "exit 3").expect("written");
        assert_eq!(set(root), [], "it cannot be run");
    }
}
