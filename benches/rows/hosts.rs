//! Ranks on several hosts, which UCX is between: puts against UCX's own benchmark, exchanges against Open MPI over the
//! same link.

use super::collectives::{Call, Collective, repeated};
use super::core::{ping_pong, stream};
use super::limits::copies;
use super::tasks::moe;
use crate::link::Link;
use crate::rank::Bench;
use crate::row::{LIMIT, Row, Target, Unit, VALUE};
use crate::tcp::Connection;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Links between two ranks, by name.
const LINKS: [(&str, Link); 2] = [("loopback", Link::Loopback), ("network", Link::Network { ranks: 1 })];

/// Two hosts of two ranks.
const PAIRS: Link = Link::Network { ranks: 2 };

/// The rows `hosts/...`.
pub fn rows() -> Vec<Row> {
    let puts = LINKS.into_iter().flat_map(|(name, link)| puts(name, link));
    let allreduces = [KIB, 64 * KIB, MIB].map(all_reduce);
    let moe = Row::new("hosts/network/moe_16", Unit::Microseconds, |bench| moe::layer(bench, 16, 20))
        .ranks(4)
        .over(PAIRS)
        .peer("moe/16")
        .target(Target::AheadOfPeers);
    puts.chain(allreduces).chain([moe]).collect()
}

fn puts(name: &str, link: Link) -> Vec<Row> {
    let row = |what: &str, unit, measure: fn(&Bench) -> Result<(), String>| {
        Row::new(format!("hosts/{name}/{what}"), unit, measure).ranks(2).over(link)
    };
    let bandwidth = |what, bytes: usize, measure| {
        let row = row(what, Unit::GigabytesPerSecond, measure);
        row.peer(format!("ucp_put_bw/{bytes}")).target(Target::TimesBestPeer(0.9))
    };
    let latency = row("put_notify_8", Unit::Microseconds, put_notify);
    vec![
        latency.peer("ucp_put_lat/8").target(Target::TimesBestPeer(1.3)),
        bandwidth("put_bw_64k", 64 * KIB, |bench| put_bandwidth(bench, 64 * KIB)),
        bandwidth("put_bw_1m", MIB, |bench| put_bandwidth(bench, MIB)),
    ]
}

/// What TCP does over the link is the limit.
fn put_notify(bench: &Bench) -> Result<(), String> {
    let (rank, rounds) = (bench.rank(), bench.times(1000));
    let mut value = ping_pong(bench, rounds)?;
    let mut connection = Connection::new(bench)?;
    bench.sample(&mut [(LIMIT, &mut || connection.trip(rank, rounds)), (VALUE, &mut value)])
}

fn put_bandwidth(bench: &Bench, bytes: usize) -> Result<(), String> {
    let (rank, times) = (bench.rank(), bench.times(copies(4 * bytes)));
    let mut value = stream(bench, bytes, times)?;
    let (mut connection, mut data) = (Connection::new(bench)?, vec![1; bytes]);
    bench.sample(&mut [(LIMIT, &mut || connection.stream(rank, &mut data, times)), (VALUE, &mut value)])
}

fn all_reduce(bytes: usize) -> Row {
    let call = Call { collective: Collective::Allreduce, ranks: 4, bytes, mode: "auto" };
    repeated(format!("hosts/network/allreduce_{bytes}"), call, 20)
        .over(PAIRS)
        .peer(call.series())
        .peer(format!("allreduce_in_place/{bytes}"))
        .target(Target::AheadOfPeers)
}
