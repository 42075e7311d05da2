//! What this library is and what it finds here: the first thing to look at, and to send along, when something is odd.

use std::ffi::OsString;
use std::fmt;

use super::cores::own_cores;
use crate::codegen::cpu::instructions;
use crate::environment::{VARIABLES, Variable};
use crate::error::Result;
use crate::transport;

/// The library and its surroundings, at one moment.
#[derive(Clone, Debug)]
pub struct Info {
    /// Version of the library.
    pub version: &'static str,
    /// Architecture of the CPU.
    pub architecture: &'static str,
    /// Instructions that the kernels use.
    pub instructions: &'static str,
    /// Number of CPUs that this process may use.
    pub cpus: usize,
    /// Each transport, and why it cannot be used here.
    pub transports: Vec<(&'static str, Result<()>)>,
    /// Every environment variable of the library, with its value if it is set.
    pub variables: Vec<(Variable, Option<OsString>)>,
}

impl Info {
    /// Looks around.
    pub fn gather() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            architecture: std::env::consts::ARCH,
            instructions: instructions(),
            cpus: own_cores(),
            transports: transport::availability(),
            variables: VARIABLES.iter().map(|variable| (*variable, variable.read())).collect(),
        }
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, architecture, instructions, cpus, transports, variables } = self;
        writeln!(f, "libpld {version}, {architecture}, kernels for {instructions}, {cpus} CPUs\n\ntransports")?;
        for (name, available) in transports {
            match available {
                Ok(()) => writeln!(f, "  {name}: available")?,
                Err(error) => writeln!(f, "  {name}: unavailable: {error}")?,
            }
        }
        writeln!(f, "\nenvironment")?;
        for (Variable { name, default, meaning }, value) in variables {
            match value {
                Some(value) => writeln!(f, "  {name}={} (environment): {meaning}", value.to_string_lossy())?,
                None => writeln!(f, "  {name} is not set (default: {default}): {meaning}")?,
            }
        }
        Ok(())
    }
}
