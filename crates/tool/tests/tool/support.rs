//! Starts the tool and waits for it, with a deadline.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing takes longer, whatever else the machine does.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// What a run of the tool came to.
#[derive(Debug)]
pub struct Ran {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// The output of a success.
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// What standard error says about a failure with this code.
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stderr
    }
}

/// The tool, with nothing in its environment that changes what it does, in the folder of the test programs.
pub fn tool<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pld"));
    command.args(args).current_dir(programs()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("PLD_"));
        if is_ours || ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"].iter().any(|other| name == *other) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the tool with arguments separated by spaces.
pub fn pld(args: &str) -> Ran {
    finish(tool(args.split(' ')), "")
}

/// Runs a command with this standard input.
pub fn finish(mut command: Command, stdin: &str) -> Ran {
    let input = if stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(stdin.as_bytes()).unwrap();
    }
    finish_child(child)
}

/// Waits for a child whose output is piped.
pub fn finish_child(mut child: Child) -> Ran {
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let code = wait(&mut child);
    let text = |reader: thread::JoinHandle<Vec<u8>>| String::from_utf8(reader.join().unwrap()).unwrap();
    Ran { code, stdout: text(stdout), stderr: text(stderr) }
}

fn read(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).unwrap();
        }
        bytes
    })
}

/// The exit code of a child.
pub fn wait(child: &mut Child) -> Option<i32> {
    let mut code = None;
    await_that("the tool ends", || {
        let status = child.try_wait().unwrap();
        code = status.and_then(|status| status.code());
        status.is_some()
    });
    code
}

/// Waits until something holds.
pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Where the test programs are.
pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// Where the examples are.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pld")
}

/// An output is as it was when it was last looked at; `PLD_TEST_BLESS=1` takes it as it is now.
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("PLD_TEST_BLESS").is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, wanted, "{} differs; PLD_TEST_BLESS=1 takes it", path.display());
}

/// A folder of a test, which goes with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pld-tool-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file into it; its path as text.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }

    /// The path of a file in it as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}
