//! Links between hosts that are cut.

use std::thread::sleep;

use pld_test_ranks::namespaces_available;

use crate::losses::exchanging;
use crate::ranks::{SILENCE, Spread};

const NAMESPACES: Spread = Spread::Namespaces { ranks: 2 };

/// Each side of a link that is cut in the middle of an exchange is told that it has lost ranks of the other. When the
/// link is mended, all make a new world.
#[test]
fn cut_while_exchanging() {
    if !namespaces_available() {
        return;
    }
    let mut job = exchanging(NAMESPACES, &[0, 1, 2, 3]);
    job.hosts(4).network().cut(1);
    sleep(2 * SILENCE);
    job.hosts(4).network().mend(1);
    job.say("go");
    for rank in 0..4 {
        let outcome = job.outcome(rank);
        let told = outcome.done();
        let others = if rank < 2 { ["rank 2 ", "rank 3 "] } else { ["rank 0 ", "rank 1 "] };
        let of_other = |other: &str| told.starts_with(&format!("PeerLost: {other}"));
        assert!(others.iter().any(|other| of_other(other)), "rank {rank}: {told}");
    }
}

/// The link stays cut: the ranks of each host hear of it nevertheless, and make a world of their own.
#[test]
fn cut_for_ever() {
    if !namespaces_available() {
        return;
    }
    let mut job = exchanging(NAMESPACES, &[0, 1]);
    job.hosts(4).network().cut(1);
    job.say("go");
    for rank in 0..2 {
        let outcome = job.outcome(rank);
        let told = outcome.done();
        assert!(told.starts_with("PeerLost: rank 2 ") || told.starts_with("PeerLost: rank 3 "), "rank {rank}: {told}");
    }
    for rank in 2..4 {
        let outcome = job.outcome(rank);
        let told = outcome.failed("PeerLost");
        assert!(told.starts_with("rank 0 ") || told.starts_with("rank 1 "), "rank {rank}: {told}");
    }
}

/// A link that comes back in time costs nobody anything.
#[test]
fn cut_for_a_moment() {
    if !namespaces_available() {
        return;
    }
    let mut job = exchanging(NAMESPACES, &[]);
    for _ in 0..3 {
        job.hosts(4).network().cut(1);
        sleep(SILENCE / 10);
        job.hosts(4).network().mend(1);
        sleep(SILENCE / 2);
    }
    job.kill(1);
    for rank in [0, 2, 3] {
        let outcome = job.outcome(rank);
        let told = outcome.failed("PeerLost");
        assert!(told.starts_with("rank 1 "), "rank {rank}: {told}");
    }
}
