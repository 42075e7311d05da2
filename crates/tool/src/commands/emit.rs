//! `pld emit`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use pld::codegen::pto::{self, Options, export};
use pld::error::ErrorKind;

use crate::console;
use crate::exit::{Exit, Failure, Result};
use crate::kernels::{build_file, manifest};
use crate::source::Source;

const EXAMPLES: &str = "\
Examples:
  pld emit --target a2a3 --ranks 8 exchange.pld -o kernels
  cmake -S kernels -B build && cmake --build build               with CANN's compiler
  cmake -S kernels -B build -DPLD_CPU_SIM=ON && cmake --build build   for this machine, with g++";

/// Writes a program's tasks as kernels for NPUs: C++, a manifest, and what builds them
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Emit {
    /// The program; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The generation of NPUs
    #[arg(long, value_name = "TARGET", value_enum)]
    target: Target,
    /// Size of the world
    #[arg(long, short = 'n', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Leave out what is checked when kernels run
    #[arg(long)]
    unchecked: bool,
    /// The folder for the files; made if it is missing
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// Atlas A2 and A3: Ascend 910B and 910C
    A2a3,
    /// Ascend 950
    A5,
}

impl From<Target> for pto::Target {
    fn from(target: Target) -> Self {
        match target {
            Target::A2a3 => pto::Target::A2A3,
            Target::A5 => pto::Target::A5,
        }
    }
}

impl Emit {
    /// Writes them.
    pub fn run(self) -> Result<Exit> {
        let source = Source::read(&self.file)?;
        let program = source.verified(Some(self.ranks))?;
        let options = Options { target: self.target.into(), nranks: self.ranks, checked: !self.unchecked };
        let export = export(&program, &options).map_err(|error| match error.kind {
            ErrorKind::Unsupported => Failure::usage(error.message),
            _ => error.into(),
        })?;
        let module = &export.module;
        let (manifest, build) = (format!("{:#}\n", manifest(&export, &options)), build_file(module, options.target));
        let mut files = vec![(module.file.as_str(), module.source.as_str())];
        files.extend(module.headers);
        files.extend([("manifest.json", manifest.as_str()), ("CMakeLists.txt", build.as_str())]);
        fs::create_dir_all(&self.output).map_err(|cause| Failure::file(&self.output, cause))?;
        for &(name, text) in &files {
            let path = self.output.join(name);
            fs::write(&path, text).map_err(|cause| Failure::file(&path, cause))?;
        }
        console::print(listed(&self.output, files.iter().map(|(name, _)| *name)))?;
        Ok(Exit::Ok)
    }
}

/// The paths of files, one a line.
fn listed<'n>(folder: &Path, names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("{}\n", folder.join(name).display())).collect()
}
