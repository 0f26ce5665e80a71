//! Options for the permissions of the processes of Python models.

use galatea_backend_python::IsolationLevel;
use galatea_command_line::{Kind, Occurrence, options, set};

use super::{
    super::{error::StoreResult, serve_flags::ServeFlags, setting},
    row::Row,
};

pub const PYTHON: &[Row] = options! {
    /// Isolation of the processes of Python models, by Landlock and seccomp of the kernel. "standard" allows their own
    /// folder, files of the system and temporary files, and refuses access to other processes. "strict" also refuses
    /// the network and changes to the model's folder.
    "python-isolation" => Row::of(Kind::Choice(&IsolationLevel::NAMES))
        .default("none").stores(isolation),
    /// Environment variable that Python models get although its name suggests a secret (AWS_..., HF_TOKEN,
    /// ..._PASSWORD, ..._KEY). May be repeated.
    "python-environment-variable" => Row::of(Kind::Name)
        .stores(set!(|o, v| o.python.variables.insert(v.text.to_owned()))),
    /// File or folder that isolated Python models may read beside their own. May be repeated.
    "python-readable-path" => Row::of(Kind::Name).fills(|o| &mut o.python.readable),
    /// File or folder that isolated Python models may read and change. May be repeated.
    "python-writable-path" => Row::of(Kind::Name).fills(|o| &mut o.python.writable),
    /// Most memory that the processes of one instance of a Python model may take together, in bytes or with a unit
    /// (512M, 4G). Each process gets an error if it asks for more; the server restarts an instance that takes more.
    /// Default: no limit.
    "python-memory" => Row::of(Kind::Form("<bytes>"))
        .stores(|o, v| setting::process_memory(&mut o.python.memory, v)),
    /// Python model that may load and unload models even if it is isolated or --hardened is given. An isolated model
    /// may load them only as the model repository has them. May be repeated.
    "python-model-control" => Row::of(Kind::Name)
        .stores(set!(|o, v| o.python.controlling_models.insert(v.text.to_owned()))),
};

fn isolation(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    // The kind of the option has already checked it.
    flags.python.isolation = IsolationLevel::parse(&given.text).unwrap_or_default();
    Ok(())
}
