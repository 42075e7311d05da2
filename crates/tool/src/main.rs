//! `pld`: exchange programs at a terminal. Thin over the library: each command is a file of `commands`.

#![forbid(unsafe_code)]

mod commands;
mod comments;
mod console;
mod drawing;
mod excerpt;
mod exit;
mod hosts;
mod kernels;
mod launch;
mod ranks;
mod seconds;
mod source;
mod tensors;
mod timeline;

use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, Parser};

use commands::Command;
use exit::Exit;

const EXIT_CODES: &str = "\
Exit codes:
  0    all is well
  1    the program is wrong, a file is not formatted, or results are not as expected
  2    the command line is wrong, or what it gives does not fit the program
  3    a launch failed, or there is no world for it
  4    a file could not be read or written
  124  time is over (spawn)
  141  nobody reads the output any more
  spawn ends with the exit code of the first rank that failed; 128 + N if signal N ended it.";

/// Exchanges between ranks, at a terminal: check, format, draw, run and measure programs, and start ranks.
#[derive(Parser)]
#[command(name = "pld", version, after_help = EXIT_CODES, arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always or never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    console::choose(cli.color);
    match cli.command.run(&mut Cli::command()) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.message.is_empty() && failure.exit != Exit::Closed {
                // Nobody is left to tell if this fails too.
                let _ = console::error(&failure.message);
            }
            failure.exit.into()
        }
    }
}
