//! Processes that are the ranks of one job: started, listened to, and ended together.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Color, Style};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use crate::console;
use crate::exit::{Exit, Failure, Result};

/// The hidden command that becomes a rank: see [`become_rank`].
pub const RANK_COMMAND: &str = "become-rank";

/// How long output may take to arrive when all ranks have ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How ranks are run.
pub struct Job {
    /// Number of ranks.
    pub nranks: u32,
    /// Begin every line of output with its rank.
    pub prefix: bool,
    /// End all ranks after this time.
    pub timeout: Option<Duration>,
    /// How long ranks have from the signal to end until they are killed.
    pub grace: Duration,
}

/// How the process of a rank is started.
pub struct Started {
    /// What it runs.
    pub command: Vec<OsString>,
    /// Its environment, besides its rank and the size of the world.
    pub variables: Vec<(OsString, OsString)>,
    /// What it reads. Its standard input stays open then, and is closed to tell it to end: it runs on another host, where
    /// no signal reaches it.
    pub input: Option<String>,
}

impl Started {
    /// On this host, in the job of this name.
    pub fn here(command: &[OsString], job: &OsStr) -> Self {
        Self { command: command.to_vec(), variables: vec![("PLD_JOB".into(), job.to_owned())], input: None }
    }
}

/// Why all ranks have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Each by itself, with success.
    Success,
    /// This rank was the first that failed.
    Failed(u32, ExitStatus),
    /// Time was over.
    TimedOut,
    /// The user wanted it: the signal's number.
    Signalled(i32),
    /// Nobody reads the output.
    Closed,
}

/// What happens meanwhile.
enum Event {
    Signal(i32),
    /// Standard output is closed.
    Closed,
    /// A stream of a rank has come to its end.
    Silent,
}

/// One rank's process, the leader of a process group.
struct Rank {
    child: Child,
    pid: Pid,
    status: Option<ExitStatus>,
    /// Open while a rank of another host may run.
    input: Option<ChildStdin>,
}

impl Job {
    /// Runs what each rank is to run until all have ended, and whatever they have started in their process groups. If one
    /// fails, all end: by SIGTERM, and by SIGKILL when the grace is over. If this process is killed, they are too.
    pub fn run(&self, start: &dyn Fn(u32) -> Started) -> Result<End> {
        let (sender, events) = channel();
        let mut signals = Signals::new([SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map_err(no_ranks)?;
        let handle = signals.handle();
        let forward = sender.clone();
        let listener = thread::spawn(move || {
            for signal in signals.forever() {
                // The job may have ended just now.
                let _ = forward.send(Event::Signal(signal));
            }
        });
        let mut running = Running { job: self, ranks: Vec::new(), end: End::Success, kill_at: None, streams: 0 };
        let started = (0..self.nranks).try_for_each(|rank| running.start(rank, start(rank), &sender));
        let ended = match started {
            Ok(()) => running.watch(&events),
            Err(error) => {
                running.signal_all(Signal::KILL);
                running.watch(&events).and(Err(no_ranks(error)))
            }
        };
        handle.close();
        // It only ever sends.
        let _ = listener.join();
        ended
    }
}

fn no_ranks(error: io::Error) -> Failure {
    Failure { exit: Exit::Launch, message: format!("ranks cannot be started: {error}") }
}

struct Running<'a> {
    job: &'a Job,
    ranks: Vec<Rank>,
    end: End,
    /// When those that have been told to end are killed.
    kill_at: Option<Instant>,
    /// Streams that are still open.
    streams: usize,
}

impl Running<'_> {
    fn start(&mut self, rank: u32, start: Started, events: &Sender<Event>) -> io::Result<()> {
        let mut process = Command::new(env::current_exe()?);
        process.arg(RANK_COMMAND).arg(std::process::id().to_string()).arg("--").args(start.command);
        process.env("PLD_RANK", rank.to_string()).env("PLD_WORLD_SIZE", self.job.nranks.to_string());
        process.envs(start.variables);
        // A group of its own: what a rank starts ends with it, and Ctrl-C comes here first.
        process.process_group(0).stdin(if start.input.is_some() { Stdio::piped() } else { Stdio::null() });
        if self.job.prefix {
            process.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut child = process.spawn()?;
        let pid = Pid::from_child(&child);
        let mut input = child.stdin.take();
        if let (Some(pipe), Some(text)) = (&mut input, start.input) {
            // If nobody reads it, the process has ended, which is seen.
            let _ = pipe.write_all(text.as_bytes());
        }
        let closed = Arc::new(AtomicBool::new(false));
        if let Some(stream) = child.stdout.take() {
            let prefix = prefix(rank, self.job.nranks, &io::stdout());
            self.listen(stream, prefix, io::stdout, &closed, events);
        }
        if let Some(stream) = child.stderr.take() {
            let prefix = prefix(rank, self.job.nranks, &io::stderr());
            self.listen(stream, prefix, io::stderr, &closed, events);
        }
        self.ranks.push(Rank { child, pid, status: None, input });
        Ok(())
    }

    /// Passes on what a rank says, line by line.
    fn listen<W: Write + 'static>(
        &mut self,
        stream: impl Read + Send + 'static,
        prefix: String,
        output: fn() -> W,
        closed: &Arc<AtomicBool>,
        events: &Sender<Event>,
    ) {
        self.streams += 1;
        let (events, closed) = (events.clone(), closed.clone());
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = prefix.clone().into_bytes();
            while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                if line.last() != Some(&b'\n') {
                    line.push(b'\n');
                }
                let mut output = output();
                if output.write_all(&line).and_then(|()| output.flush()).is_err()
                    && !closed.swap(true, Ordering::Relaxed)
                {
                    // Either the job has ended or it ends because of this.
                    let _ = events.send(Event::Closed);
                }
                line.truncate(prefix.len());
            }
            let _ = events.send(Event::Silent);
        });
    }

    /// Until all have ended.
    fn watch(mut self, events: &Receiver<Event>) -> Result<End> {
        let deadline = self.job.timeout.map(|timeout| Instant::now() + timeout);
        loop {
            self.collect().map_err(no_ranks)?;
            if self.ranks.iter().all(|rank| rank.status.is_some()) {
                break;
            }
            let until = self.kill_at.or(deadline.filter(|_| self.end == End::Success));
            let event = match until {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => events.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(Event::Signal(SIGCHLD)) => {}
                Ok(Event::Signal(number)) => self.pass_on(number),
                Ok(Event::Closed) => self.finish(End::Closed, Signal::TERM),
                Ok(Event::Silent) => self.streams -= 1,
                Err(RecvTimeoutError::Timeout) if self.kill_at.is_some() => {
                    self.signal_all(Signal::KILL);
                    self.kill_at = Some(Instant::now() + LAST_WORDS);
                }
                Err(_) => self.finish(End::TimedOut, Signal::TERM),
            }
        }
        let until = Instant::now() + LAST_WORDS;
        while self.streams > 0
            && let Ok(event) = events.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.streams -= usize::from(matches!(event, Event::Silent));
        }
        Ok(self.end)
    }

    /// Notes who has ended.
    fn collect(&mut self) -> io::Result<()> {
        let mut failed = None;
        for (number, rank) in self.ranks.iter_mut().enumerate().filter(|(_, rank)| rank.status.is_none()) {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if waitid(WaitId::Pid(rank.pid), ended)?.is_none() {
                continue;
            }
            // While its leader is not waited for, nobody else can have this group's number.
            let _ = kill_process_group(rank.pid, Signal::KILL);
            let status = rank.child.wait()?;
            rank.status = Some(status);
            if !status.success() && failed.is_none() {
                failed = Some(End::Failed(number as u32, status));
            }
        }
        if let Some(failed) = failed {
            self.finish(failed, Signal::TERM);
        }
        Ok(())
    }

    /// The user's signal: for all ranks, and if it comes again, the last one that they get.
    fn pass_on(&mut self, number: i32) {
        let signal = match number {
            SIGINT => Signal::INT,
            SIGHUP => Signal::HUP,
            SIGQUIT => Signal::QUIT,
            _ => Signal::TERM,
        };
        if matches!(self.end, End::Signalled(_)) {
            self.signal_all(Signal::KILL);
        } else {
            self.finish(End::Signalled(number), signal);
        }
    }

    /// Ends those that are left; the first reason counts.
    fn finish(&mut self, end: End, signal: Signal) {
        if self.end == End::Success {
            self.end = end;
            self.kill_at = Some(Instant::now() + self.job.grace);
            self.signal_all(signal);
        }
    }

    fn signal_all(&mut self, signal: Signal) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.status.is_none()) {
            // On another host the end of its input is SIGTERM, and SIGKILL when the grace is over there.
            if rank.input.take().is_some() && signal != Signal::KILL {
                continue;
            }
            // It may have ended meanwhile.
            let _ = kill_process_group(rank.pid, signal);
        }
    }
}

/// `[3] `, in the rank's colour where `stream` shows colours.
fn prefix(rank: u32, nranks: u32, stream: &impl anstream::stream::RawStream) -> String {
    const COLORS: [AnsiColor; 6] = [
        AnsiColor::Cyan,
        AnsiColor::Yellow,
        AnsiColor::Green,
        AnsiColor::Magenta,
        AnsiColor::Blue,
        AnsiColor::BrightRed,
    ];
    let width = (nranks - 1).to_string().len();
    let style = match anstream::AutoStream::choice(stream) {
        anstream::ColorChoice::Never => Style::new(),
        _ => Style::new().fg_color(Some(Color::Ansi(COLORS[rank as usize % COLORS.len()]))),
    };
    format!("{style}[{rank:>width$}]{style:#} ")
}

/// Makes this process, a child of `parent`, the rank that it was started for. Comes back only if that cannot be.
pub fn become_rank(parent: u32, command: &[OsString]) -> Result<Exit> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| no_ranks(e.into()))?;
    if std::os::unix::process::parent_id() != parent {
        // It went before it could be watched.
        return Ok(Exit::Other(128 + SIGTERM as u8));
    }
    let (program, args) = command.split_first().map_or((OsStr::new(""), &[][..]), |(p, args)| (p.as_os_str(), args));
    let error = Command::new(program).args(args).exec();
    let exit = Exit::Other(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 });
    Err(Failure { exit, message: format!("{}: {error}", program.display()) })
}

impl End {
    /// How the tool ends then, and what it says about it.
    pub fn report(self) -> Result<Exit> {
        let (exit, message) = match self {
            End::Success => return Ok(Exit::Ok),
            End::Closed => return Ok(Exit::Closed),
            End::Failed(rank, status) => match (status.code(), status.signal()) {
                (Some(code), _) => (code, format!("rank {rank} ended with exit code {code}")),
                (None, Some(signal)) => {
                    let name = signal_name(signal).map(|name| format!(" ({name})")).unwrap_or_default();
                    (128 + signal, format!("rank {rank} was ended by signal {signal}{name}"))
                }
                (None, None) => (1, format!("rank {rank} ended, and nobody knows how")),
            },
            End::TimedOut => (124, "time is over".into()),
            End::Signalled(signal) => (128 + signal, format!("ended by {}", signal_name(signal).unwrap_or("a signal"))),
        };
        console::error(&message)?;
        Ok(Exit::Other(exit as u8))
    }
}
