//! Kernels from source: CANN's compiler, and what it has made before.
//!
//! A built file lies in a directory of the cache that is named after everything that it was made of. It is made in a
//! directory beside it that becomes the real one when all is done; whoever holds that directory's lock is the one who
//! makes it, and others wait.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::toolkit;
use crate::environment;
use crate::error::{Error, ErrorKind, Result};

/// How long a run of the compiler may take.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Most bytes of what the compiler says that go into a message.
const LONGEST_TEXT: usize = 4000;

/// The instruction set of a card's cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// Atlas A2 and A3.
    A2A3,
    /// Ascend 950.
    A5,
}

impl Architecture {
    /// That of a chip by its name.
    pub fn of(soc: &str) -> Result<Self> {
        const CHIPS: [(&str, Architecture); 4] = [
            ("Ascend910_95", Architecture::A5),
            ("Ascend950", Architecture::A5),
            ("Ascend910B", Architecture::A2A3),
            ("Ascend910_93", Architecture::A2A3),
        ];
        let found = CHIPS.iter().find(|(name, _)| soc.starts_with(name)).map(|(_, architecture)| *architecture);
        let unknown = || {
            let known = CHIPS.map(|(name, _)| name).join(", ");
            Error::new(ErrorKind::Unsupported, format!("no kernels are made for {soc}; there are those for {known}"))
        };
        found.ok_or_else(unknown)
    }

    /// What the compiler is told of kernels, besides where headers and files are.
    pub fn compiler_arguments(self) -> Vec<&'static str> {
        let (own, backend): (&[_], &[_]) = match self {
            Architecture::A2A3 => (&["--cce-aicore-arch=dav-c220-vec", "-DMEMORY_BASE"], &[]),
            Architecture::A5 => {
                (&["--cce-aicore-arch=dav-c310-vec", "-DREGISTER_BASE"], &["-cce-vf-aa-between-iters=true"])
            }
        };
        let shared = [
            "-cce-aicore-stack-size=0x8000",
            "-cce-aicore-function-stack-size=0x8000",
            "-cce-aicore-record-overflow=false",
            "-cce-aicore-addr-transform",
            "-cce-aicore-dcci-insert-for-scalar=false",
        ];
        let backend = shared.iter().chain(backend).flat_map(|option| ["-mllvm", option]);
        ["-c", "-O3", "-x", "cce", "-std=c++17", "--cce-aicore-only"]
            .iter()
            .chain(own)
            .copied()
            .chain(backend)
            .collect()
    }
}

/// What the linker is told, besides where files are.
pub const LINKER_ARGUMENTS: [&str; 4] = ["-m", "aicorelinux", "-Ttext=0", "-static"];

/// Kernels as C++.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// For messages and the cache, and its file's name: `NAME.cpp`.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
    /// What it includes beside PTO-ISA, by name.
    pub headers: &'a [(&'a str, &'a str)],
    /// For which cards.
    pub architecture: Architecture,
}

/// CANN's compiler and linker, and PTO-ISA's headers.
#[derive(Clone, Debug)]
pub struct Compiler {
    compiler: PathBuf,
    linker: PathBuf,
    /// Where headers are.
    include: Vec<PathBuf>,
    /// What the compiler says of itself.
    version: String,
    /// Where built files are kept.
    cache: PathBuf,
}

impl Compiler {
    /// The compiler that the environment names, or the toolkit's, and the cache. The environment is read here and never
    /// again.
    pub fn find() -> Result<Self> {
        let toolkit = toolkit();
        let named = environment::CCEC.read().map(PathBuf::from);
        let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message);
        let compiler = named.or_else(|| toolkit.as_ref().map(|home| home.join("bin/ccec"))).ok_or_else(|| {
            unavailable("the compiler of kernels, ccec: set ASCEND_HOME_PATH, or PLD_CCEC to its path".into())
        })?;
        let linker = compiler.with_file_name("ld.lld");
        for tool in [&compiler, &linker] {
            if !tool.is_file() {
                let what = "ASCEND_HOME_PATH names the toolkit, or PLD_CCEC the compiler, with ld.lld beside it";
                return Err(unavailable(format!("{} is missing: {what}", tool.display())));
            }
        }
        let pto = environment::read("PTO_ISA_ROOT").map(|root| PathBuf::from(root).join("include"));
        let include: Vec<_> = pto.into_iter().chain(toolkit.map(|home| home.join("include"))).collect();
        if !include.iter().any(|folder| folder.join("pto").is_dir()) {
            let looked = include.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" and ");
            return Err(unavailable(format!("no pto/ in {looked}: set PTO_ISA_ROOT to a copy of PTO-ISA")));
        }
        let mut ask = Command::new(&compiler);
        ask.arg("--version").stdin(Stdio::null());
        let answer = ask.output().map_err(|e| unavailable(format!("running {}: {e}", compiler.display())))?;
        if !answer.status.success() {
            let message = format!("{} --version ends with {}", compiler.display(), answer.status);
            return Err(unavailable(message));
        }
        let version = String::from_utf8_lossy(&answer.stdout).into_owned();
        Ok(Self { compiler, linker, include, version, cache: cache()? })
    }

    /// The file of `source`'s kernels, from the cache if it was built before.
    pub fn build(&self, source: &Source<'_>) -> Result<PathBuf> {
        let built = self.cache.join(format!("{}-{}", source.name, self.key(source)));
        let file = built.join(format!("{}.elf", source.name));
        if file.is_file() {
            return Ok(file);
        }
        let unfinished = built.with_extension("unfinished");
        loop {
            make_folder(&unfinished)?;
            let lock = File::open(&unfinished).map_err(|e| Error::io(unfinished.display(), e))?;
            flock(&lock, FlockOperation::LockExclusive).map_err(|e| Error::io("flock", e))?;
            if file.is_file() {
                // Somebody else has built it; what was locked has become it, or was made a moment too late.
                let _ = fs::remove_dir(&unfinished);
                return Ok(file);
            }
            // Somebody else has failed, and removed what was locked.
            if !is_at(&lock, &unfinished) {
                continue;
            }
            let result = self.build_in(&unfinished, source);
            let result =
                result.and_then(|()| fs::rename(&unfinished, &built).map_err(|e| Error::io(built.display(), e)));
            if result.is_err() {
                let _ = fs::remove_dir_all(&unfinished);
            }
            return result.map(|()| file);
        }
    }

    fn build_in(&self, folder: &Path, source: &Source<'_>) -> Result<()> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|e| Error::io(format!("writing {}", path.display()), e))
        };
        let name = source.name;
        write(&format!("{name}.cpp"), source.text)?;
        source.headers.iter().try_for_each(|(header, text)| write(header, text))?;
        run(folder, name, Command::new(&self.compiler).args(self.compile_arguments(source)))?;
        let files = ["-o", &format!("{name}.elf"), &format!("{name}.o")];
        run(folder, name, Command::new(&self.linker).args(LINKER_ARGUMENTS).args(files))
    }

    fn compile_arguments(&self, source: &Source<'_>) -> Vec<String> {
        let mut arguments: Vec<_> = source.architecture.compiler_arguments().into_iter().map(str::to_owned).collect();
        arguments.extend(self.include.iter().map(|folder| format!("-I{}", folder.display())));
        arguments.extend(["-o".into(), format!("{}.o", source.name), format!("{}.cpp", source.name)]);
        arguments
    }

    /// Everything that the built file depends on, in 128 bits.
    fn key(&self, source: &Source<'_>) -> String {
        let half = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            let what =
                (seed, source.text, source.headers, self.compile_arguments(source), &self.compiler, &self.version);
            what.hash(&mut hasher);
            self.include.iter().for_each(|folder| hash_folder(&folder.join("pto"), &mut hasher));
            hasher.finish()
        };
        format!("{:016x}{:016x}", half(0), half(1))
    }
}

/// Where built kernels are kept.
fn cache() -> Result<PathBuf> {
    let set = |name| environment::read(name).map(PathBuf::from);
    let named = environment::KERNEL_CACHE.read().map(PathBuf::from);
    let usual = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))).map(|home| home.join("pld"));
    let missing = || Error::new(ErrorKind::Unavailable, "no place for built kernels: set PLD_KERNEL_CACHE or HOME");
    named.or_else(usual).ok_or_else(missing)
}

/// Names, sizes and times of the files in a folder.
fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) {
    let mut paths: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|item| item.path()).collect();
    paths.sort();
    for path in paths {
        path.hash(hasher);
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => hash_folder(&path, hasher),
            Ok(meta) => (meta.len(), meta.mtime(), meta.mtime_nsec()).hash(hasher),
            Err(_) => {}
        }
    }
}

/// A folder that only this user can write to.
fn make_folder(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|e| Error::io(format!("making {}", path.display()), e))
}

/// Whether the open `folder` is the one at `path`.
fn is_at(folder: &File, path: &Path) -> bool {
    match (folder.metadata(), fs::metadata(path)) {
        (Ok(mine), Ok(there)) => (mine.dev(), mine.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Runs a tool in `folder`. What it says goes to a file, so that it never waits for a reader.
fn run(folder: &Path, source: &str, command: &mut Command) -> Result<()> {
    let name = PathBuf::from(command.get_program()).display().to_string();
    let log = folder.join("log.txt");
    let output = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
    let (stdout, stderr) = output.map_err(|e| Error::io(log.display(), e))?;
    let command = command.current_dir(folder).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let mut child = command.spawn().map_err(|e| Error::io(format!("running {name}"), e))?;
    let end = Instant::now() + TIME_LIMIT;
    let status = loop {
        match child.try_wait().map_err(|e| Error::io(format!("waiting for {name}"), e))? {
            Some(status) => break status,
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                let message = format!("{name} has not built {source} within {} s", TIME_LIMIT.as_secs());
                return Err(Error::new(ErrorKind::Timeout, message));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    let text = text.lines().flat_map(|line| ["\n    ", line]).collect::<String>();
    let text = text.char_indices().nth(LONGEST_TEXT).map_or(text.as_str(), |(end, _)| &text[..end]);
    let message = format!("{name} cannot build the kernels of {source} ({status}):{text}");
    Err(Error::new(ErrorKind::Unsupported, message))
}
