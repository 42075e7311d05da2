//! Networks: what reaches whom, when links are cut, and how ranks are spread over them.
#![allow(missing_docs, reason = "a test is its own documentation")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use pld_test_ranks::{Job, Network, Rank, Spread, namespaces_available};

/// Long for a packet between two namespaces, short for a test that waits for none.
const SOON: Duration = Duration::from_millis(300);

fn connect(network: &Network, from: u32, listener: &TcpListener) -> std::io::Result<TcpStream> {
    let address = listener.local_addr().unwrap();
    network.inside(from, || TcpStream::connect_timeout(&address, SOON))
}

fn listen(network: &Network, host: u32) -> TcpListener {
    network.inside(host, || TcpListener::bind((Network::address(host), 0)).unwrap())
}

#[test]
fn all_hosts_reach_each_other() {
    if !namespaces_available() {
        return;
    }
    let network = Network::new(4).unwrap();
    for target in 0..4 {
        let listener = listen(&network, target);
        for source in 0..4 {
            let mut stream = connect(&network, source, &listener).unwrap();
            stream.write_all(&[source as u8]).unwrap();
            let mut got = [0xff];
            listener.accept().unwrap().0.read_exact(&mut got).unwrap();
            assert_eq!(u32::from(got[0]), source, "from {source} to {target}");
        }
    }
}

/// The kernel resends what a link that was cut has lost, so a connection goes on where it was.
#[test]
fn a_link_is_cut_and_mended() {
    if !namespaces_available() {
        return;
    }
    let network = Network::new(3).unwrap();
    let listener = listen(&network, 0);
    let mut near = connect(&network, 1, &listener).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    network.cut(1);
    near.write_all(b"a").unwrap();
    far.set_read_timeout(Some(SOON)).unwrap();
    far.read_exact(&mut [0]).unwrap_err();
    connect(&network, 1, &listener).unwrap_err();
    connect(&network, 2, &listener).unwrap();
    network.mend(1);
    far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut got = [0];
    far.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"a");
}

/// Two networks have the same addresses, and know nothing of each other.
#[test]
fn networks_are_apart() {
    if !namespaces_available() {
        return;
    }
    let (one, other) = (Network::new(2).unwrap(), Network::new(2).unwrap());
    let listener = listen(&one, 0);
    connect(&one, 1, &listener).unwrap();
    connect(&other, 1, &listener).unwrap_err();
}

#[test]
fn ranks_are_spread_over_pretended_hosts() {
    for (spread, right) in
        [(Spread::Pairs, ["host-0", "host-0", "host-1"]), (Spread::Apart, ["host-0", "host-1", "host-2"])]
    {
        let mut job = Job::over(spread);
        job.spawn_world("where", 3);
        let port = job.hosts(3).port();
        for (outcome, right) in job.outcomes().iter().zip(right) {
            assert_eq!(outcome.done(), format!("{right} 127.0.0.1:{port} 127.0.0.1 {spread:?}"));
        }
    }
}

#[test]
fn ranks_are_spread_over_namespaces() {
    if !namespaces_available() {
        return;
    }
    let mut job = Job::over(Spread::Namespaces { ranks: 2 });
    job.spawn_world("devices", 3);
    let devices: Vec<String> = job.outcomes().iter().map(|outcome| outcome.done().to_owned()).collect();
    assert!(devices[0].starts_with("10.0.0.1 ") && devices[2].starts_with("10.0.0.2 "), "{devices:?}");
    assert_eq!(devices[0], devices[1]);
    assert_ne!(devices[0].split(' ').nth(1), devices[2].split(' ').nth(1));
}

/// What the environment tells a rank.
fn place(rank: &Rank) -> String {
    let variable = |name| std::env::var(name).unwrap();
    let (host, port) = rank.address("second", rank.rank() == 1);
    assert_ne!(port, 0);
    assert_eq!(host, variable("PLD_TEST_HOST_ADDRESS"));
    format!("{} {} {host} {:?}", variable("PLD_HOST"), variable("PLD_ADDRESS"), rank.spread())
}

/// The address of a rank's host, and the one of its device, where libraries look.
fn devices() -> String {
    let address = std::env::var("PLD_TEST_HOST_ADDRESS").unwrap();
    TcpListener::bind((address.as_str(), 0)).expect("the address is that of the host");
    format!("{address} {}", fs::read_to_string("/sys/class/net/eth0/address").unwrap())
}

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|name, rank| match name {
        "where" => Ok(place(rank)),
        "devices" => Ok(devices()),
        other => panic!("no scenario {other}"),
    });
}
