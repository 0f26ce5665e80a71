//! Finds and installs the native runtime libraries that the backends open.
//!
//! A runtime is one pinned file of the Python package index. Its library and licences are kept.
//! [`find`] looks for an installed one, [`install`] fetches it, [`remove()`] removes it:
//!
//! ```no_run
//! use galatea_runtimes::{FindOptions, InstallOptions, Runtime, TerminalProgress, find, install};
//! use galatea_types::Environment;
//!
//! # fn main() -> galatea_types::Result<()> {
//! let runtime = &Runtime::ONNXRUNTIME;
//! let environment = Environment::of([("GALATEA_HOME", "/var/lib/galatea")]);
//! let library = match find(runtime, &FindOptions::new(&environment)) {
//!     Some(path) => path,
//!     None => install(runtime, &InstallOptions::new(&environment), &mut TerminalProgress::new())?,
//! };
//! # let _ = library; Ok(())
//! # }
//! ```
//!
//! Other files of the index, such as example models, are a [`Package`]. [`install_package`] fetches them by the same rules.
//! For parts of a runtime that only C++ can use, a backend has a shim, which [`prepare_shim`] compiles.
//!
//! # Invariants
//! - Only files with exactly the pinned content are installed, wherever they came from.
//! - A folder of an installed version is complete: it appears by one rename.
//! - The machine's pip settings (index, certificates, proxy) apply. The only host named here is the public
//!   index, which is their default.

#![warn(missing_docs)]

mod download;
mod error;
mod find;
mod http;
mod index;
mod install;
mod libtorch;
mod package;
mod pip;
mod progress;
mod remove;
mod runtime;
mod shim;
mod subprocess;
mod unpack;

pub use find::{FindOptions, data_folder, find};
pub use install::{InstallOptions, find_package, install, install_package};
pub use libtorch::Libtorch;
pub use package::{Package, Part};
pub use pip::PipSettings;
#[cfg(test)]
pub(crate) use progress::SilentProgress;
pub use progress::{LogProgress, Progress, ProgressMaker, TerminalProgress};
pub use remove::{RemovedEntry, disk_usage, remove, runtime_folder};
pub use runtime::{Runtime, Wheel};
pub use shim::{ShimOptions, ShimSource, prepare_shim, shim_folder};
