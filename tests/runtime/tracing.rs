//! Traces: what is in the file, of ranks that are threads and ranks that are processes, of launches that end and that fail.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pld::error::{ErrorKind, Result};
use pld::runtime::{World, WorldOptions};
use serde_json::Value;

use crate::programs::{ALLREDUCE, allreduce_all, allreduce_as, compile, tensor};
use crate::ranks::{Job, Join, Outcome, Rank, Scenario};
use crate::tasks::WAIT_FIRST;

pub const SCENARIOS: &[(&str, Scenario)] = &[("traced", traced_rank)];

/// A file that is not there afterwards.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pld-{name}-{}.json", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn options(file: &Path) -> WorldOptions {
    WorldOptions { timeout: Duration::from_secs(20), trace: Some(file.into()), ..WorldOptions::default() }
}

/// The events of a trace: each line is one.
fn events(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.strip_prefix("[\n").expect("a list begins").lines();
    lines.map(|line| serde_json::from_str(line.strip_suffix(',').expect("others may follow")).unwrap()).collect()
}

/// Those of a phase and category.
fn of<'v>(events: &'v [Value], phase: &str, category: &str) -> Vec<&'v Value> {
    events.iter().filter(|event| event["ph"] == phase && event["cat"] == category).collect()
}

fn rank(event: &Value) -> u64 {
    event["pid"].as_u64().unwrap()
}

/// Nanoseconds.
fn at(event: &Value, field: &str) -> i64 {
    (event[field].as_f64().unwrap() * 1000.0).round() as i64
}

/// Slices of a core follow one another, or lie in one another.
fn assert_nested(events: &[Value]) {
    let mut slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    slices.sort_by_key(|event| (rank(event), event["tid"].as_u64(), at(event, "ts"), -at(event, "dur")));
    let mut open: Vec<(u64, Option<u64>, i64)> = Vec::new();
    for slice in slices {
        let (lane, begin) = ((rank(slice), slice["tid"].as_u64()), at(slice, "ts"));
        open.retain(|&(rank, core, end)| (rank, core) == lane && end > begin);
        let end = begin + at(slice, "dur");
        assert!(open.iter().all(|&(.., outer)| end <= outer), "{slice} reaches out of another one");
        open.push((lane.0, lane.1, end));
    }
}

fn launch_wait_first(world: &Arc<World>, nranks: usize, launches: i64) {
    let executable = compile(WAIT_FIRST, world, false).unwrap();
    for k in 0..launches {
        let mut outs = vec![-1; nranks];
        executable.launch(&[tensor(&mut outs, &[nranks as i64, 1]), pld::runtime::Arg::Int(k)]).unwrap();
        let right: Vec<i32> = (0..nranks).map(|r| 100 * ((r + nranks - 1) % nranks) as i32 + k as i32).collect();
        assert_eq!(outs, right);
    }
}

#[test]
fn launches_tasks_waits_and_notifies_are_there() {
    const LAUNCHES: usize = 20;
    for nranks in [2usize, 3] {
        let file = Temporary::new("ring");
        let world = World::create(nranks as u32, &options(&file.0)).unwrap();
        launch_wait_first(&world, nranks, LAUNCHES as i64);
        world.close().unwrap();
        let events = events(&file.0);
        assert_nested(&events);

        let launches = of(&events, "X", "launch");
        assert_eq!(launches.len(), nranks * LAUNCHES);
        assert!(launches.iter().all(|launch| launch["name"] == "wait_first"));
        let named = |name: &str| {
            let tasks = of(&events, "X", "task").into_iter().filter(|task| task["name"] == name);
            tasks.collect::<Vec<_>>()
        };
        let sends = named("send");
        assert_eq!(sends.len(), nranks * LAUNCHES);
        for send in &sends {
            let args = &send["args"];
            assert_eq!((&args["written"], &args["read"], &args["block"]), (&4.into(), &0.into(), &0.into()));
            assert_eq!(args["line"], "wait_first.pld:7");
        }
        // One that has waited is in pieces.
        assert!(named("receive").len() >= nranks * LAUNCHES);

        let notifies = of(&events, "i", "notify");
        assert_eq!(notifies.len(), nranks * LAUNCHES);
        for notify in &notifies {
            let to = (rank(notify) as usize + 1) % nranks;
            assert_eq!(notify["args"]["peer"], to);
            assert_eq!(notify["args"]["cell"], format!("sig[{}]", rank(notify)));
            assert_eq!(notify["name"], "notify sig[me] @((me + 1) % world) += 1");
        }

        let (begun, ended) = (of(&events, "b", "wait"), of(&events, "e", "wait"));
        assert_eq!(begun.len(), ended.len());
        for (wait, end) in begun.iter().zip(&ended) {
            assert_eq!((&wait["id2"], rank(wait)), (&end["id2"], rank(end)));
            assert!(at(wait, "ts") <= at(end, "ts"));
            if wait["name"] == "to begin" {
                continue;
            }
            let from = (rank(wait) as usize + nranks - 1) % nranks;
            assert_eq!(wait["args"]["cell"], format!("sig[{from}]"));
            assert_eq!(wait["args"]["task"], "receive");
            let told =
                |notify: &&&Value| rank(notify) == from as u64 && notify["args"]["launch"] == wait["args"]["launch"];
            let notify = notifies.iter().find(told).expect("somebody has told it");
            assert!(at(notify, "ts") <= at(end, "ts"), "{notify} comes after {end}");
        }
    }
}

/// Bytes that come from others are counted, and cores have timelines of their own.
#[test]
fn bytes_and_cores() {
    let file = Temporary::new("cores");
    let world = World::create(4, &WorldOptions { cores_per_rank: 2, ..options(&file.0) }).unwrap();
    let executable = compile(ALLREDUCE, &world, false).unwrap();
    (0..30).for_each(|round| allreduce_all(&executable, 4, round).unwrap());
    drop(executable);
    world.close().unwrap();
    let events = events(&file.0);
    assert_nested(&events);
    let read: u64 = of(&events, "X", "task").iter().filter_map(|task| task["args"]["read"].as_u64()).sum();
    assert_eq!(read, 30 * 4 * 3 * 256 * 4);
    let names: Vec<&Value> = events.iter().filter(|event| event["name"] == "thread_name").collect();
    assert_eq!(names.len(), 8);
}

/// A wait that only the end of a task does, while its core does something else.
#[test]
fn deferred_waits_are_there() {
    let text = "program deferred
entry e(y: tensor[1] i32 out, sig: window[1] i32, ask: window[1] i32, me: i32) {
  arrived = at arrive { if me == 1 { defer_wait sig[0] >= 1 } }
  at request { if me == 1 { notify ask[0] @0 += 1 } }
  at tell no_dep [sig] { if me == 0 {
    wait ask[0] >= 1
    notify sig[0] @1 += 1
  } }
  at go_on deps [arrived] { y[0] = sig[0] + me }
}
host (ys: tensor[world, 1] i32 out) {
  sig_buf = alloc_window [1] i32
  ask_buf = alloc_window [1] i32
  ranks r in 0..world {
    sig = window sig_buf [1] i32
    ask = window ask_buf [1] i32
    dispatch e(ys[r], sig, ask, r) device r
  }
}
";
    let file = Temporary::new("deferred");
    let world = World::create(2, &options(&file.0)).unwrap();
    let executable = compile(text, &world, false).unwrap();
    for _ in 0..20 {
        let mut ys = vec![-1; 2];
        executable.launch(&[tensor(&mut ys, &[2, 1])]).unwrap();
        assert_eq!(ys, [0, 2]);
    }
    world.close().unwrap();
    let events = events(&file.0);
    assert_nested(&events);
    let waits = of(&events, "b", "wait");
    let deferred: Vec<_> = waits.iter().filter(|wait| wait["args"]["task"] == "arrive").collect();
    assert_eq!(deferred.len(), 20);
    assert!(deferred.iter().all(|wait| rank(wait) == 1 && wait["args"]["cell"] == "sig[0]"));
}

/// A launch that fails is in the file before the world ends, with what the ranks waited for.
#[test]
fn a_failed_launch_is_written_at_once() {
    let text = "program stuck
entry e(sig: window[1] i32, me: i32) {
  at tell { if me == 0 { notify sig[0] @1 += 1 } }
  at listen { wait sig[0] >= 1 }
}
host () {
  sig_buf = alloc_window [1] i32
  ranks r in 0..world {
    sig = window sig_buf [1] i32
    dispatch e(sig, r) device r
  }
}
";
    let file = Temporary::new("stuck");
    let world = World::create(2, &WorldOptions { timeout: Duration::from_secs(2), ..options(&file.0) }).unwrap();
    let executable = compile(text, &world, false).unwrap();
    assert_eq!(executable.launch(&[]).unwrap_err().kind, ErrorKind::Timeout);
    let events = events(&file.0);
    assert_nested(&events);
    let waits = of(&events, "b", "wait");
    let stuck = waits.iter().find(|wait| rank(wait) == 0 && wait["args"]["cell"] == "sig[0]");
    assert!(stuck.is_some_and(|wait| wait["args"]["line"] == "stuck.pld:4"), "{waits:?}");
    assert_eq!(of(&events, "X", "launch").len(), 2);
}

/// A core keeps so many events; the file says how many are lost.
#[test]
fn the_last_events_are_kept() {
    let file = Temporary::new("many");
    let world = World::create(1, &options(&file.0)).unwrap();
    launch_wait_first(&world, 1, 20_000);
    world.close().unwrap();
    let events = events(&file.0);
    assert_nested(&events);
    let lost = events.iter().find(|event| event["name"].as_str().is_some_and(|name| name.ends_with("events are lost")));
    assert!(lost.is_some());
    let last = of(&events, "X", "launch").iter().filter_map(|launch| launch["args"]["launch"].as_u64()).max();
    assert_eq!(last, Some(20_000));
}

#[test]
fn a_file_that_cannot_be_made_is_an_error() {
    let error = World::create(2, &options(Path::new("/proc/nothing/trace.json"))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.message.starts_with("trace /proc/nothing/trace.json: "), "{error}");
}

/// Ranks that are processes write into one file, one after the other.
#[test]
fn processes_share_a_file() {
    for nranks in [2, 4] {
        let mut job = Job::start("traced", nranks);
        let file = job.meeting_place().join("trace.json");
        // What an earlier run has left there goes.
        std::fs::write(&file, "old").unwrap();
        job.say("go");
        assert_eq!(job.outcomes(), vec![Outcome::Done("fine".into()); nranks as usize]);
        let events = events(&file);
        assert_nested(&events);
        for me in 0..u64::from(nranks) {
            assert_eq!(of(&events, "X", "launch").iter().filter(|launch| rank(launch) == me).count(), 50);
        }
        assert_eq!(of(&events, "i", "notify").len() as u32, 50 * nranks * (nranks - 1));
    }
}

fn traced_rank(me: &Rank) -> Result<String> {
    me.hear("go");
    let world = me.join(&options(&me.meeting_place().join("trace.json")))?;
    let executable = compile(ALLREDUCE, &world, false)?;
    for round in 0..50 {
        allreduce_as(&executable, me.rank(), me.nranks(), round)?;
    }
    world.close()?;
    Ok("fine".into())
}
