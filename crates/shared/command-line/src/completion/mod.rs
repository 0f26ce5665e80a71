//! Completion scripts for shells, made from the tables of options.

mod bash;
mod fish;
mod zsh;

use crate::outline::CommandOutline;

/// A shell with a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// GNU bash, 4 or later.
    Bash,
    /// The Z shell.
    Zsh,
    /// fish, 3 or later.
    Fish,
}

impl Shell {
    /// The names of all shells.
    pub const NAMES: &'static [&'static str] = &["bash", "zsh", "fish"];

    /// Returns the shell of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }

    /// Returns the script that completes all these commands: programs, subcommands, their options and values.
    pub fn completion(self, commands: &[CommandOutline]) -> String {
        match self {
            Self::Bash => bash::script(commands),
            Self::Zsh => zsh::script(commands),
            Self::Fish => fish::script(commands),
        }
    }
}

/// Quotes text with single quotes, as all of these shells read it when it has no quote inside.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace(['\'', '\\'], ""))
}

#[cfg(test)]
mod tests;
