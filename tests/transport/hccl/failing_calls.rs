//! Every call of CANN in the life of a world of cards fails once. All ranks end with an error that names the function,
//! and give back what they had.

use std::time::{Duration, Instant};
use std::{fs, iter, thread};

use pld::error::Result;
use pld::transport::Transport;
use pld::transport::hccl::compiler::{Architecture, Source};
use pld::transport::hccl::{DeviceWindows, HcclTransport, comm_context};

use super::{Processes, RANKS, Variables, World, cards, join, left};
use crate::ranks::{Job, Outcome, Rank, Scenario, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[("spread_and_compare", |rank| {
    let threads = || fs::read_dir("/proc/self/task").expect("threads").count();
    let before = threads();
    let result = spread_and_compare(rank);
    // After an error threads may be left in calls of HCCL: what they have they give back when it lets them go.
    while result.is_err() && threads() > before {
        thread::sleep(Duration::from_millis(10));
    }
    result
})];

const NRANKS: u32 = 2;
const BLOCKS: u32 = 4;
const WINDOW: usize = 4096;

/// Each rank writes to everyone's windows.
const SPREAD: &str = r#"
#include <cstdint>

struct Context {
    uint64_t unused[2];
    uint32_t rank, nranks;
    uint64_t bytes, windows[64];
};

extern "C" void spread_sim(const uint64_t *args, uint32_t block) {
    const Context &context = *reinterpret_cast<const Context *>(args[0]);
    for (uint32_t peer = 0; peer < context.nranks; ++peer) {
        int32_t *window = reinterpret_cast<int32_t *>(context.windows[peer]);
        window[context.rank * 4 + block] = 1000 * context.rank + 10 * block + peer + 1;
    }
}
"#;

/// The life of a world of cards.
fn spread_and_compare(rank: &Rank) -> Result<String> {
    let transport = join(rank, soon())?;
    let windows = cards(&transport).allocate_windows(WINDOW, soon())?;
    for step in [spread, compare] {
        let mine = transport.local().try_for_each(|rank| step(&transport, &windows, rank));
        let failed = transport.exchange(&[u8::from(mine.is_err())], soon())?;
        mine?;
        if let Some(rank) = failed.iter().position(|failed| *failed == [1]) {
            return Ok(format!("rank {rank} has failed"));
        }
    }
    Ok("passed".into())
}

fn spread(transport: &HcclTransport, windows: &DeviceWindows, rank: u32) -> Result<()> {
    let card = cards(transport).card(rank);
    let source = Source { name: "spread", text: SPREAD, headers: &[], architecture: Architecture::of(card.soc())? };
    let binary = card.load(&cards(transport).compiler().build(&source)?)?;
    let function = binary.function("spread")?;
    let bases = (0..NRANKS).map(|peer| windows.base(peer)).collect::<Vec<_>>();
    let context = comm_context(rank, &bases, WINDOW as u64)?;
    let memory = card.allocate(context.len())?;
    memory.write(0, &context)?;
    let (first, second, event) = (card.stream()?, card.stream()?, card.event()?);
    // SAFETY: the kernel takes the context, and writes where nobody else does.
    unsafe { card.launch(&function, BLOCKS, &[memory.address()], &first) }?;
    event.record(&first)?;
    second.wait(&event)?;
    assert!(second.synchronize(soon() - Instant::now())?, "the kernel is not done");
    assert!(event.query()?, "the event is not reached");
    Ok(())
}

fn compare(transport: &HcclTransport, windows: &DeviceWindows, rank: u32) -> Result<()> {
    let mut bytes = [0; WINDOW];
    // SAFETY: the window is as long, and all kernels are done.
    unsafe { cards(transport).card(rank).read(windows.base(rank), &mut bytes) }?;
    let values = bytes.chunks_exact(4).map(|value| i32::from_ne_bytes(value.try_into().expect("four bytes")));
    let written = (0..NRANKS * BLOCKS).map(|at| (1000 * (at / BLOCKS) + 10 * (at % BLOCKS) + rank + 1) as i32);
    assert!(values.eq(written.chain(iter::repeat(0)).take(WINDOW / 4)), "the window of rank {rank}");
    Ok(())
}

/// Functions that give something back: what stays when they fail, one of each kind.
const RELEASES: &[(&str, &[&str])] = &[
    ("HcclCommDestroy", &["communicator", "context"]),
    ("aclrtBinaryUnLoad", &["binary"]),
    ("aclrtDestroyEvent", &["event"]),
    ("aclrtDestroyStream", &["stream"]),
    ("aclrtFree", &["memory"]),
    ("aclrtFreePhysical", &["physical memory"]),
    ("aclrtReleaseMemAddress", &["addresses"]),
    ("aclrtResetDevice", &["context"]),
    ("aclrtUnmapMem", &["addresses", "mapping", "physical memory"]),
];

/// Functions without which it may work too: whether an engine uses the card, and links that are not always needed.
const DISPENSABLE: &[&str] = &[
    "aclrtDeviceEnablePeerAccess",
    "aclrtDevicePeerAccessStatus",
    "aclrtGetCurrentContext",
    "aclrtGetDevice",
    "aclrtGetUserDevIdByLogicDevId",
    "aclrtGetVersion",
    ENTER,
];

/// Comes before and after the others: what it does not lead to is not given back either.
const ENTER: &str = "aclrtSetCurrentContext";

/// A world in which things go wrong on the ranks of one process.
#[derive(Clone, Copy)]
struct Victim {
    processes: Processes,
    seat: u32,
    more: Variables<'static>,
}

/// A call that fails.
struct Fault<'a> {
    function: &'a str,
    /// As the simulation is told.
    order: String,
    /// What the error says of it.
    told: &'static str,
}

impl<'a> Fault<'a> {
    fn new(function: &'a str, call: u64) -> Self {
        let (code, told) = match function {
            "aclrtGetSocName" => (507_899, "the chip has no name"),
            _ if function.starts_with("Hccl") => (4, "HCCL_E_INTERNAL (4)"),
            _ => (507_899, "ACL_ERROR_RT_DRV_INTERNAL_ERROR (507899)"),
        };
        Self { function, order: format!("{function}:{call}={code}"), told }
    }

    fn is_release(&self) -> bool {
        RELEASES.iter().any(|(release, _)| *release == self.function)
    }

    /// Whether a process may end so.
    fn is_told(&self, outcome: &Outcome, is_victim: bool) -> bool {
        match outcome {
            Outcome::Done(text) if text == "passed" => self.is_release() || DISPENSABLE.contains(&self.function),
            Outcome::Done(text) => !is_victim && text.ends_with(" has failed"),
            Outcome::Failed(_, message) => {
                !self.is_release() && message.contains(&format!("{}: {}", self.function, self.told))
            }
            _ => false,
        }
    }

    /// Whether the victim may leave this.
    fn may_leave(&self, live: &[(&str, i64)]) -> bool {
        let is_all_of = |kinds: &[&'static str]| live.iter().copied().eq(kinds.iter().map(|kind| (*kind, 1)));
        match RELEASES.iter().find(|(release, _)| *release == self.function) {
            Some((_, kinds)) => is_all_of(kinds),
            None if self.function == ENTER => live.is_empty() || RELEASES.iter().any(|(_, kinds)| is_all_of(kinds)),
            None => live.is_empty(),
        }
    }
}

impl Victim {
    /// Starts the world, with a variable for the victim.
    fn start(&self, name: &'static str, value: &str) -> World {
        let mut world = World { job: Job::new() };
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/kernels");
        // HCCL soon lets those go whom it has in a call.
        let all = [("PLD_KERNEL_CACHE", cache), ("HCCL_CONNECT_TIMEOUT", "1")];
        let with = |seat| {
            let mine: &[_] = if seat == self.seat { &[(name, value)] } else { &[] };
            [&all, self.more, mine].concat()
        };
        match self.processes {
            Processes::One => world.spawn("spread_and_compare", &[(RANKS, &NRANKS.to_string())], &with(0)),
            Processes::OneARank => {
                (0..NRANKS).for_each(|rank| world.spawn_rank("spread_and_compare", rank, NRANKS, &with(rank)));
            }
        }
        world
    }

    /// Lets each call fail, one in each run.
    fn every_call_fails_once(&self) {
        let mut world = self.start("CANN_SIM_FAIL", "");
        world.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "passed"));
        world.assert_nothing_is_left();
        let report = world.report(self.seat as usize).expect("a report");
        let calls = report["calls"].as_object().expect("counts");
        assert!(calls.len() > 30, "{calls:?}");
        let mut wrong = Vec::new();
        for (function, count) in calls {
            for call in 1..=count.as_u64().expect("a count") {
                wrong.extend(self.fails(&Fault::new(function, call)));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// What is wrong when a call fails.
    fn fails(&self, fault: &Fault<'_>) -> Vec<String> {
        let mut world = self.start("CANN_SIM_FAIL", &fault.order);
        let mut wrong = Vec::new();
        for (seat, outcome) in world.outcomes().into_iter().enumerate() {
            let is_victim = seat == self.seat as usize;
            let report = world.report(seat);
            let live: Vec<_> = report.iter().flat_map(left).collect();
            let is_clean = if is_victim { fault.may_leave(&live) } else { live.is_empty() };
            if !is_clean || !fault.is_told(&outcome, is_victim) {
                wrong.push(format!("{}: process {seat}: {outcome:?}, left {live:?}", fault.order));
            }
        }
        wrong
    }
}

#[test]
fn every_call_of_rank_0_fails_once() {
    Victim { processes: Processes::OneARank, seat: 0, more: &[] }.every_call_fails_once();
}

#[test]
fn every_call_of_rank_1_fails_once() {
    Victim { processes: Processes::OneARank, seat: 1, more: &[] }.every_call_fails_once();
}

#[test]
fn every_call_without_a_fabric_fails_once() {
    Victim { processes: Processes::OneARank, seat: 1, more: &[("CANN_SIM_FABRIC", "0")] }.every_call_fails_once();
}

#[test]
fn every_call_of_a_process_with_two_cards_fails_once() {
    Victim { processes: Processes::One, seat: 0, more: &[] }.every_call_fails_once();
}

/// CANN is there, and cannot be used.
#[test]
fn a_toolkit_that_does_not_fit() {
    let victim = Victim { processes: Processes::OneARank, seat: 1, more: &[] };
    let message = victim.start("CANN_SIM_VERSION", "2.0.0").fail("Unavailable");
    assert!(message.starts_with("rank 1: this CANN has another interface: "), "{message}");
    let message = victim.start("CANN_SIM_DEVICES", "0").fail("Unavailable");
    assert!(message.starts_with("rank 1: CANN finds no device"), "{message}");
}
