//! Landlock rules for the files a worker reaches.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::{
    IsolationLevel, KernelSupport, Sandbox,
    kernel::TCP,
    paths::{Piece, with_targets, without},
    system_files::{NAMED_MEMORY, READABLE, devices},
};

/// The version that the rules are written for. Features that an older kernel lacks are left out, see
/// [`KernelSupport::gaps`]. Features that a newer one adds are not refused.
const VERSION: ABI = ABI::V6;

/// Builds the rules for the process. `None`: this kernel has no Landlock.
pub(super) fn ruleset(sandbox: &Sandbox, kernel: KernelSupport) -> io::Result<Option<OwnedFd>> {
    if kernel.landlock == 0 {
        return Ok(None);
    }
    let created = create(sandbox.level, kernel).map_err(io::Error::other)?;
    let mut rules = Rules { created: Some(created), secrets: with_targets(&sandbox.secret) };
    let reads = AccessFs::from_read(VERSION);
    rules.allow(READABLE.split_whitespace().map(Path::new), reads)?;
    rules.allow(sandbox.readable.iter().map(PathBuf::as_path), reads)?;
    let devices = devices();
    let uses = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
    rules.allow(devices.iter().map(PathBuf::as_path), uses)?;
    if sandbox.level != IsolationLevel::Strict {
        rules.allow([Path::new(NAMED_MEMORY)].into_iter(), changes())?;
    }
    rules.allow(sandbox.writable.iter().map(PathBuf::as_path), changes())?;
    Ok(rules.created.and_then(Into::into))
}

fn create(level: IsolationLevel, kernel: KernelSupport) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?;
    // A second barrier behind the refusal of sockets.
    match level == IsolationLevel::Strict && kernel.landlock >= TCP {
        true => ruleset.handle_access(AccessNet::from_all(VERSION))?.create(),
        false => ruleset.create(),
    }
}

/// Returns all rights to change files but making devices.
fn changes() -> BitFlags<AccessFs> {
    AccessFs::from_all(VERSION) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

struct Rules {
    /// `None` only while a rule is added.
    created: Option<RulesetCreated>,
    secrets: Vec<PathBuf>,
}

impl Rules {
    /// Allows access to paths. Missing paths, and those the server itself may not open, are left out.
    fn allow<'a>(
        &mut self,
        roots: impl Iterator<Item = &'a Path>,
        access: BitFlags<AccessFs>,
    ) -> io::Result<()> {
        for root in roots {
            let Ok(pieces) = without(root, &self.secrets) else { continue };
            for piece in pieces {
                match piece {
                    Piece::Whole(path) => self.add(&path, access)?,
                    Piece::Names(path) => self.add(&path, AccessFs::ReadDir.into())?,
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
        let Ok(file) = PathFd::new(path) else { return Ok(()) };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(VERSION) };
        let Some(created) = self.created.take() else { return Ok(()) };
        let created = created.add_rule(PathBeneath::new(file, access)).map_err(io::Error::other)?;
        self.created = Some(created);
        Ok(())
    }
}
