//! What people see: colours where they are wanted, progress on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;
use indicatif::{ProgressBar, ProgressStyle};

/// For errors.
pub const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
/// For warnings.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// For what is as it should be.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// For line numbers and frames.
pub const FRAME: Style = AnsiColor::BrightBlue.on_default();
/// For what a sentence is about.
pub const STRONG: Style = Style::new().bold();

/// Decides about colours for the whole process.
pub fn choose(color: ColorChoice) {
    match color {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::AlwaysAnsi,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Writes text to standard output.
pub fn print(text: impl AsRef<str>) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    out.flush()
}

/// Writes text to standard error.
pub fn print_error(text: impl AsRef<str>) -> io::Result<()> {
    anstream::stderr().lock().write_all(text.as_ref().as_bytes())
}

/// Says on standard error what went wrong.
pub fn error(message: &str) -> io::Result<()> {
    print_error(format!("{ERROR}error{ERROR:#}: {message}\n"))
}

/// Says on standard error what is worth knowing.
pub fn warning(message: &str) -> io::Result<()> {
    print_error(format!("{WARNING}warning{WARNING:#}: {message}\n"))
}

/// Shows how far something of `count` parts is: on standard error, if that is a terminal, from the moment that it takes
/// long. Ends with the bar.
pub fn progress(count: u64, what: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{bar:32}] {human_pos} of {human_len}, {elapsed}");
    let bar = ProgressBar::new(count).with_message(what.to_string());
    bar.set_style(style.expect("a template of known keys").progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
