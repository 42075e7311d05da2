//! Traces: what each core of each rank did when, in a file for Perfetto and for `pld trace`.
//!
//! While programs run, events go into a [`ring`] a core, without locks or system calls: code that is compiled for a world
//! with a trace reports where tasks begin and end and whom they notify, the runtime reports launches and waits. The rings are
//! written out ([`chrome`]) when a launch has failed and when the world ends.

mod chrome;
mod clock;
mod ring;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use chrome::Timeline;
use clock::Moment;
pub(super) use clock::ticks;
use ring::{Event, Ring};

use super::cells::Cells;
use super::hooks::Context;
use super::windows::Sets;
use crate::codegen::sites::Site;
use crate::environment::TRACE;
use crate::error::{Error, ErrorKind, Result};

pub(super) use ring::Kind;

/// The site of a wait that is no op: for the windows, when a launch begins.
pub(super) const TO_BEGIN: u32 = u32::MAX;

/// What the events of an executable are called.
pub(super) struct Labels {
    pub(super) program: String,
    pub(super) sites: Vec<Site>,
    pub(super) cells: Arc<Cells>,
    pub(super) sets: Sets,
}

/// The trace of the ranks of this process.
pub(super) struct Trace {
    path: PathBuf,
    begun: Moment,
    first: u32,
    cores: u32,
    /// One a core, those of a rank side by side.
    rings: Box<[Ring]>,
    labels: Mutex<HashMap<u32, Arc<Labels>>>,
    /// How far each ring is written out.
    timelines: Mutex<Vec<Timeline>>,
}

/// Where the trace goes: what the option says, else the environment.
pub(super) fn path(option: Option<PathBuf>) -> Option<PathBuf> {
    option.or_else(|| TRACE.read().map(PathBuf::from))
}

impl Trace {
    /// Begins a trace of ranks with so many cores each. The file of all processes of a host begins anew with
    /// the first rank there.
    pub(super) fn begin(path: PathBuf, first: bool, ranks: Range<u32>, cores: u32) -> Result<Self> {
        if first {
            File::create(&path).map_err(|e| failed(&path, e))?;
        }
        let lanes = || ranks.clone().flat_map(|rank| (0..cores).map(move |core| (rank, core)));
        Ok(Self {
            path,
            begun: Moment::now(),
            first: ranks.start,
            cores,
            rings: lanes().map(|_| Ring::new()).collect(),
            labels: Mutex::default(),
            timelines: Mutex::new(lanes().map(|(rank, core)| Timeline::new(rank, core)).collect()),
        })
    }

    /// Names the events of an executable.
    pub(super) fn name(&self, image: u32, labels: Labels) {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner).insert(image, Arc::new(labels));
    }

    /// Records an event of the core that the context is of, now.
    #[inline]
    pub(super) fn record(&self, context: &Context, kind: Kind, site: u32, peer: u32, a: u64, b: u64) {
        let lane = (context.rank - self.first) * self.cores + context.lane;
        self.rings[lane as usize].push(&Event {
            ticks: ticks(),
            kind,
            peer: peer as u16,
            image: context.image.id,
            launch: context.launch as u32,
            site,
            a,
            b,
        });
    }

    /// Writes out what has been recorded since the last time. Processes take turns.
    pub(super) fn write(&self) -> Result<()> {
        let mut timelines = self.timelines.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = Moment::now();
        let mut text = String::new();
        for (timeline, ring) in timelines.iter_mut().zip(&self.rings) {
            timeline.write(ring, |ticks| self.begun.ns(&now, ticks), &labels, &mut text);
        }
        self.append(&text).map_err(|e| failed(&self.path, e))
    }

    fn append(&self, text: &str) -> std::io::Result<()> {
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        // Closing the file ends it.
        flock(&file, FlockOperation::LockExclusive)?;
        if file.metadata()?.len() == 0 {
            // The format does not ask for the closing bracket, so that others may append.
            file.write_all(b"[\n")?;
        }
        file.write_all(text.as_bytes())
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("trace {}: {error}", path.display()))
}
