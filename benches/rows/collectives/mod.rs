//! Collectives, call after call inside one launch.

mod call;
mod ideal;

use call::Exchange;
use ideal::Ideal;

use crate::limits;
use crate::rank::Bench;
use crate::row::{LIMIT, Row, Target, Unit, VALUE};

pub use call::{Call, Collective};

/// Ranks of the rows: as many as there are CPUs, and more.
pub const RANKS: [u32; 3] = [2, 4, 8];

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The rows `collectives/OP/RANKS/BYTES`.
pub fn rows() -> Vec<Row> {
    let all = RANKS.into_iter().flat_map(|ranks| Collective::ALL.map(|collective| (ranks, collective)));
    let calls = all.flat_map(|(ranks, collective)| {
        let call = move |bytes| Call { collective, ranks, bytes, mode: "auto" };
        sizes(collective, ranks).into_iter().map(call)
    });
    calls.map(row).collect()
}

/// A row that only measures `call`.
pub fn trial(name: String, call: Call) -> Row {
    Row::new(name, Unit::Microseconds, move |bench| measure(bench, call, call.times(bench), None)).ranks(call.ranks)
}

/// The same with so many calls a sample.
pub fn repeated(name: String, call: Call, times: u32) -> Row {
    Row::new(name, Unit::Microseconds, move |bench| measure(bench, call, bench.times(times), None)).ranks(call.ranks)
}

fn row(call: Call) -> Row {
    let name = format!("collectives/{}", call.name());
    let row = Row::new(name, Unit::Microseconds, move |bench| {
        measure(bench, call, call.times(bench), Ideal::new(bench, call)?)
    })
    .ranks(call.ranks)
    .peer(call.series())
    .target(peer_target(call));
    // MPI has two kinds; the better one counts.
    let row = match call.collective {
        Collective::Allreduce => row.peer(format!("allreduce_in_place/{}", call.bytes)),
        _ => row,
    };
    let has_ideal = !matches!(call.collective, Collective::Barrier | Collective::AllToAllV);
    if has_ideal && call.bytes >= 16 * KIB { row.target(Target::TimesLimit(1.3)) } else { row }
}

/// Bytes that are measured.
pub fn sizes(collective: Collective, ranks: u32) -> Vec<usize> {
    // One element for each rank at least.
    let smallest = match collective {
        Collective::ReduceScatter | Collective::AllToAll => size_of::<f32>() * ranks.max(2) as usize,
        _ => 8,
    };
    match collective {
        Collective::Barrier => vec![0],
        Collective::AllToAllV => vec![64, 16 * KIB, 4 * MIB],
        // Of more ranks this takes gigabytes.
        _ if ranks == 2 => vec![smallest, KIB, 16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB],
        _ => vec![smallest, KIB, 16 * KIB, 256 * KIB, 4 * MIB],
    }
}

fn peer_target(call: Call) -> Target {
    use Collective::*;
    use Target::{AheadOfPeers, TimesBestPeer};
    let large = call.bytes >= 16 * KIB;
    if call.ranks > 2 {
        return TimesBestPeer(if large { 0.6 } else { 1.0 });
    }
    match (call.collective, call.bytes) {
        (Barrier, _) => TimesBestPeer(0.6),
        (Allreduce, 8) => TimesBestPeer(0.75),
        (Allreduce, 1024) => TimesBestPeer(0.6),
        (Allreduce, 16_384) => TimesBestPeer(0.8),
        (Allreduce, 262_144) => TimesBestPeer(0.98),
        (Allreduce, 4_194_304) => TimesBestPeer(0.65),
        (Allreduce, _) => TimesBestPeer(0.6),
        (_, bytes) if bytes >= 64 * MIB => AheadOfPeers,
        (Broadcast, _) if large => TimesBestPeer(0.6),
        (Broadcast, _) => AheadOfPeers,
        (ReduceScatter | Allgather | AllToAll | AllToAllV, _) => TimesBestPeer(0.8),
    }
}

fn measure(bench: &Bench, call: Call, times: u32, ideal: Option<Ideal>) -> Result<(), String> {
    let (board, rank) = (bench.board(), bench.rank());
    let align = || {
        if call.ranks == 2 {
            limits::align(board, rank);
        }
    };
    let mut exchange = Exchange::new(bench, call)?;
    let mut value = || {
        align();
        exchange.measure(times)
    };
    if let Some(mut ideal) = ideal {
        let mut limit = || {
            align();
            Ok(ideal.measure(times))
        };
        bench.sample(&mut [(LIMIT, &mut limit), (VALUE, &mut value)])?;
        ideal.check()?;
    } else {
        bench.sample(&mut [(VALUE, &mut value)])?;
    }
    exchange.check()
}
