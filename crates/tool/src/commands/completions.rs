//! `pld completions`.

use clap::Args;
use clap_complete::{Shell, generate};

use crate::console;
use crate::exit::{Exit, Result};

const EXAMPLES: &str = "\
Examples:
  pld completions bash > ~/.local/share/bash-completion/completions/pld
  pld completions zsh > ~/.zfunc/_pld
  pld completions fish > ~/.config/fish/completions/pld.fish";

/// Prints what a shell needs to complete command lines
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints it.
    pub fn run(self, cli: &mut clap::Command) -> Result<Exit> {
        let mut script = Vec::new();
        generate(self.shell, cli, "pld", &mut script);
        console::print(String::from_utf8_lossy(&script))?;
        Ok(Exit::Ok)
    }
}
