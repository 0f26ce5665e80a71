//! The installed files of every package: the program, its other names, its manual and completions.

use std::{fs, path::Path, process::Command, sync::Arc};

use anyhow::{Context, Result, bail};

use crate::process;

/// An entry that a package installs.
#[derive(Clone)]
pub struct Entry {
    /// Path below the package's root, without a slash at its start.
    pub path: String,
    /// Permissions.
    pub mode: u32,
    pub content: Content,
}

#[derive(Clone)]
pub enum Content {
    File(Arc<[u8]>),
    /// A symbolic link to this path.
    Link(String),
}

impl Entry {
    pub fn file(path: impl Into<String>, mode: u32, content: impl Into<Arc<[u8]>>) -> Self {
        Self { path: path.into(), mode, content: Content::File(content.into()) }
    }

    fn link(path: impl Into<String>, to: &str) -> Self {
        Self { path: path.into(), mode: 0o777, content: Content::Link(to.to_owned()) }
    }

    /// Returns the size of its content in bytes.
    pub fn size(&self) -> usize {
        match &self.content {
            Content::File(bytes) => bytes.len(),
            Content::Link(_) => 0,
        }
    }
}

/// Other names of the program, under which it accepts the command lines of the programs it replaces.
pub const OTHER_NAMES: [&str; 2] = ["tritonserver", "perf_analyzer"];

/// Contents of every package.
pub struct Contents {
    pub program: Arc<[u8]>,
    pub licence: Arc<[u8]>,
    pub manual: Arc<[u8]>,
    /// Pairs of path below `share` and text.
    completions: Vec<(&'static str, Arc<[u8]>)>,
}

const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/galatea"),
    ("zsh", "zsh/site-functions/_galatea"),
    ("fish", "fish/vendor_completions.d/galatea.fish"),
];

impl Contents {
    /// Collects the contents. `speaking` is the same program for this machine, which prints its own texts.
    pub fn gather(program: &Path, speaking: &Path) -> Result<Self> {
        let text = |words: &[&str]| printed(speaking, words);
        let completions = SHELLS
            .iter()
            .map(|(shell, path)| Ok((*path, text(&["completions", shell])?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            program: read(program)?,
            licence: read(&process::root().join("LICENSE"))?,
            manual: text(&["manual"])?,
            completions,
        })
    }

    /// Returns the program and its names, for a folder of programs.
    pub fn programs(&self, folder: &str) -> Vec<Entry> {
        let names =
            OTHER_NAMES.iter().map(|name| Entry::link(format!("{folder}/{name}"), "galatea"));
        names
            .chain([Entry::file(format!("{folder}/galatea"), 0o755, self.program.clone())])
            .collect()
    }

    /// Returns the completions, for a folder like `usr/share`. Shells find those of bash and fish by the command's name.
    pub fn completions(&self, share: &str) -> Vec<Entry> {
        let file = |(path, text): &(&str, Arc<[u8]>)| {
            Entry::file(format!("{share}/{path}"), 0o644, text.clone())
        };
        self.completions.iter().map(file).collect()
    }
}

pub fn read(path: &Path) -> Result<Arc<[u8]>> {
    Ok(fs::read(path).with_context(|| path.display().to_string())?.into())
}

fn printed(program: &Path, words: &[&str]) -> Result<Arc<[u8]>> {
    let output = Command::new(program).args(words).output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() || output.stdout.is_empty() {
        bail!("{} {} printed nothing to pack", program.display(), words.join(" "));
    }
    Ok(output.stdout.into())
}
