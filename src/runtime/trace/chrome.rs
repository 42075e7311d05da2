//! Events as the JSON that Perfetto and Chrome read: one object a line. Ranks are processes, their cores threads.
//! Launches and tasks are slices, waits are slices of a track of their own, notifies are instants, and a flow leads from a
//! notify to the wait that it ends in the same launch.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use super::ring::{Event, Kind, Ring};
use super::{Labels, TO_BEGIN};
use crate::codegen::sites::Site;

/// What is written of one core.
pub struct Timeline {
    rank: u32,
    core: u32,
    /// Number of the next event of its ring.
    next: u64,
    named: bool,
    launch: Option<Open>,
    task: Option<Open>,
    waits: u64,
}

/// A slice that has begun.
#[derive(Clone, Copy)]
struct Open {
    begun: u64,
    event: Event,
}

/// Where text goes, and by which clock and names.
struct Out<'a, C> {
    text: &'a mut String,
    ns: C,
    labels: &'a HashMap<u32, Arc<Labels>>,
}

impl Timeline {
    pub fn new(rank: u32, core: u32) -> Self {
        Self { rank, core, next: 0, named: false, launch: None, task: None, waits: 0 }
    }

    /// Appends what the ring has got since the last time.
    pub fn write(
        &mut self,
        ring: &Ring,
        ns: impl Fn(u64) -> u64,
        labels: &HashMap<u32, Arc<Labels>>,
        text: &mut String,
    ) {
        let mut out = Out { text, ns, labels };
        if !std::mem::replace(&mut self.named, true) {
            let Self { rank, core, .. } = *self;
            if core == 0 {
                out.line(format_args!(
                    r#""ph":"M","name":"process_name","pid":{rank},"args":{{"name":"rank {rank}"}}"#
                ));
                out.line(format_args!(
                    r#""ph":"M","name":"process_sort_index","pid":{rank},"args":{{"sort_index":{rank}}}"#
                ));
            }
            out.line(format_args!(
                r#""ph":"M","name":"thread_name","pid":{rank},"tid":{core},"args":{{"name":"core {core}"}}"#
            ));
        }
        let mut last = None;
        let (mut events, from) = (Vec::new(), self.next);
        let (lost, next) = ring.read(from, |event| events.push(event));
        self.next = next;
        if lost > 0 {
            // What they began has no end here.
            (self.launch, self.task) = (None, None);
            if let Some(first) = events.first() {
                let at = Micros((out.ns)(first.ticks));
                let place = self.place();
                out.line(format_args!(r#""ph":"i","s":"t","name":"{lost} events are lost",{place},"ts":{at}"#));
            }
        }
        for event in events {
            self.event(&event, &mut out);
            last = Some((out.ns)(event.ticks));
        }
        // A task that is stuck ends where its rank was last seen.
        if let Some(last) = last {
            self.end_task(last, None, &mut out);
            self.end_launch(last, &mut out);
        }
    }

    fn event<C: Fn(u64) -> u64>(&mut self, event: &Event, out: &mut Out<'_, C>) {
        let at = (out.ns)(event.ticks);
        let open = Some(Open { begun: at, event: *event });
        match event.kind {
            Kind::LaunchBegun => {
                self.end_task(at, None, out);
                self.end_launch(at, out);
                self.launch = open;
            }
            Kind::LaunchEnded => {
                self.end_task(at, None, out);
                self.end_launch(at, out);
            }
            Kind::TaskBegun | Kind::TaskResumed => {
                self.end_task(at, None, out);
                self.task = open;
            }
            Kind::TaskStopped => self.end_task(at, None, out),
            Kind::TaskEnded => self.end_task(at, Some(event), out),
            Kind::Waited => self.wait(event, at, out),
            Kind::Notified => self.notify(event, at, out),
        }
    }

    /// `"pid":0,"tid":0`
    fn place(&self) -> String {
        format!(r#""pid":{},"tid":{}"#, self.rank, self.core)
    }

    fn end_launch<C: Fn(u64) -> u64>(&mut self, at: u64, out: &mut Out<'_, C>) {
        let Some(Open { begun, event }) = self.launch.take() else { return };
        let (name, launch, place) = (out.program(&event), event.launch + 1, self.place());
        let (from, length) = (Micros(begun), Micros(at - begun));
        out.line(format_args!(
            r#""ph":"X","cat":"launch","name":{name},{place},"ts":{from},"dur":{length},"args":{{"launch":{launch}}}"#
        ));
    }

    fn end_task<C: Fn(u64) -> u64>(&mut self, at: u64, end: Option<&Event>, out: &mut Out<'_, C>) {
        let Some(Open { begun, event }) = self.task.take() else { return };
        let (from, length, place) = (Micros(begun), Micros(at - begun), self.place());
        let (name, line, launch) = (out.task(&event), out.line_of(&event), event.launch + 1);
        let block = if event.kind == Kind::TaskBegun { format!(r#","block":{}"#, event.a) } else { String::new() };
        let bytes = end.map_or_else(String::new, |end| format!(r#","written":{},"read":{}"#, end.a, end.b));
        out.line(format_args!(
            r#""ph":"X","cat":"task","name":{name},{place},"ts":{from},"dur":{length},"args":{{"launch":{launch},"line":{line}{block}{bytes}}}"#
        ));
    }

    fn wait<C: Fn(u64) -> u64>(&mut self, event: &Event, at: u64, out: &mut Out<'_, C>) {
        let begun = (out.ns)(event.a).min(at);
        self.waits += 1;
        let (place, launch) = (self.place(), event.launch + 1);
        let id = u64::from(self.core) << 48 | self.waits;
        let common = format!(r#""cat":"wait","id2":{{"local":"{id:#x}"}},{place}"#);
        let (name, line, task, cell) = if event.site == TO_BEGIN {
            (Quoted("to begin").to_string(), Quoted("").to_string(), Quoted("").to_string(), Quoted("").to_string())
        } else {
            (out.op(event), out.line_of(event), out.task(event), out.cell(event))
        };
        out.line(format_args!(
            r#""ph":"b","name":{name},{common},"ts":{},"args":{{"launch":{launch},"task":{task},"cell":{cell},"line":{line}}}"#,
            Micros(begun)
        ));
        out.line(format_args!(r#""ph":"e","name":{name},{common},"ts":{}"#, Micros(at)));
        if event.site != TO_BEGIN {
            let id = flow(event, self.rank);
            out.line(format_args!(
                r#""ph":"f","bp":"e","cat":"signal","name":"signal","id":{id},{place},"ts":{}"#,
                Micros(at)
            ));
        }
    }

    fn notify<C: Fn(u64) -> u64>(&mut self, event: &Event, at: u64, out: &mut Out<'_, C>) {
        let (place, at, peer, launch) = (self.place(), Micros(at), event.peer, event.launch + 1);
        let (name, line, cell, id) = (out.op(event), out.line_of(event), out.cell(event), flow(event, peer.into()));
        out.line(format_args!(
            r#""ph":"i","s":"t","cat":"notify","name":{name},{place},"ts":{at},"args":{{"launch":{launch},"peer":{peer},"cell":{cell},"line":{line}}}"#
        ));
        out.line(format_args!(r#""ph":"s","cat":"signal","name":"signal","id":{id},{place},"ts":{at}"#));
    }
}

/// What a notify and the wait that it ends have in common: executable, launch, rank and cell.
fn flow(event: &Event, rank: u32) -> u64 {
    let cell = u64::from(event.image) << 40 ^ u64::from(event.launch) << 20 ^ u64::from(rank);
    // Numbers of JSON are exact up to 2^53.
    crate::random::mix(cell ^ crate::random::mix(event.b)) >> 11
}

impl<C> Out<'_, C> {
    fn line(&mut self, fields: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{{{fields}}},");
    }

    fn site(&self, event: &Event) -> Option<&Site> {
        self.labels.get(&event.image)?.sites.get(event.site as usize)
    }

    fn program(&self, event: &Event) -> String {
        Quoted(self.labels.get(&event.image).map_or("?", |labels| &labels.program)).to_string()
    }

    fn task(&self, event: &Event) -> String {
        Quoted(self.site(event).map_or("?", |site| &site.task)).to_string()
    }

    fn op(&self, event: &Event) -> String {
        Quoted(self.site(event).map_or("?", |site| &site.text)).to_string()
    }

    fn line_of(&self, event: &Event) -> String {
        Quoted(self.site(event).map_or("", |site| &site.place)).to_string()
    }

    fn cell(&self, event: &Event) -> String {
        let text = |labels: &Arc<Labels>| Some(labels.cells.at(labels.sets.place(event.b)?)?.text);
        Quoted(&self.labels.get(&event.image).and_then(text).unwrap_or_default()).to_string()
    }
}

/// Nanoseconds, as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A string of JSON.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
