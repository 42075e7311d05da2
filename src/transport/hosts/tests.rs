//! Stars whose processes are threads.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::*;
use crate::transport::far::News;
use crate::transport::waiting::Operation;

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(5);

fn soon() -> Instant {
    Instant::now() + LONG
}

fn listener() -> (TcpListener, Address) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, Address { host: "127.0.0.1".into(), port })
}

fn hello(rank: u32, nranks: u32) -> Hello {
    let (host, agreement) = (format!("host {}", rank / 2), b"test".to_vec());
    Hello { rank, nranks, process: 100 + rank, host, agreement }
}

/// How one of the processes of a test joins.
#[derive(Clone)]
struct Guest {
    me: Hello,
    secret: Secret,
    within: Duration,
    silence: Duration,
}

impl Guest {
    fn new(rank: u32, nranks: u32) -> Self {
        let secret = Secret::from_bytes(b"a secret of the test");
        Self { me: hello(rank, nranks), secret, within: LONG, silence: SILENCE }
    }

    fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    fn meeting<T>(&self, meet: impl FnOnce(Meeting<'_>) -> T) -> T {
        let deadline = Instant::now() + self.within;
        meet(Meeting { secret: &self.secret, me: &self.me, silence: self.silence, deadline })
    }

    fn host(&self, listener: TcpListener, address: &Address) -> Result<Star> {
        self.meeting(|meeting| meeting.host(listener, address))
    }

    fn come(&self, address: &Address) -> Result<Star> {
        self.meeting(|meeting| meeting.come(address))
    }
}

/// Rank 0 and others, which all come at once.
fn join(guests: &[Guest]) -> Vec<Result<Star>> {
    let (listener, address) = listener();
    std::thread::scope(|scope| {
        let others: Vec<_> = guests[1..].iter().map(|guest| scope.spawn(|| guest.come(&address))).collect();
        let first = guests[0].host(listener, &address);
        std::iter::once(first).chain(others.into_iter().map(|other| other.join().unwrap())).collect()
    })
}

fn world(nranks: u32) -> Vec<Star> {
    world_with(nranks, SILENCE)
}

fn world_with(nranks: u32, silence: Duration) -> Vec<Star> {
    let guests: Vec<_> = (0..nranks).map(|rank| Guest { silence, ..Guest::new(rank, nranks) }).collect();
    join(&guests).into_iter().map(Result::unwrap).collect()
}

/// Every rank in a thread of its own.
fn each<T: Send>(stars: Vec<Star>, body: impl Fn(u32, Star) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let body = &body;
        let ranks: Vec<_> = (0..).zip(stars).map(|(rank, star)| scope.spawn(move || body(rank, star))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// All have this error.
fn all_fail(results: Vec<Result<Star>>, kind: ErrorKind, message: &str) {
    for result in results {
        assert_eq!(result.map(|_| ()).unwrap_err(), Error::new(kind, message));
    }
}

fn exchange(star: &Star, body: &[u8]) -> Result<Vec<Vec<u8>>> {
    star.gather(Operation::Exchange, Ok(body), soon())
}

fn ears(star: &Star) -> Receiver<News> {
    let (sender, receiver) = channel();
    star.listen(Arc::new(move |news| _ = sender.send(news)));
    receiver
}

/// A message whose length and bytes depend on rank and round.
fn message(rank: u32, round: u32) -> Vec<u8> {
    let length = if round == 3 { 60_000 + rank as usize } else { (rank * 37 + round * 11) as usize };
    (0..length).map(|position| (position as u32 * 7 + rank * 31 + round * 101) as u8).collect()
}

fn exchanges(nranks: u32, rounds: u32) {
    let stars = world(nranks);
    assert!(stars.iter().all(|star| star.session() == stars[0].session() && star.hellos() == stars[0].hellos()));
    assert_eq!(stars[0].hellos(), (0..nranks).map(|rank| hello(rank, nranks)).collect::<Vec<_>>());
    each(stars, |rank, star| {
        for round in 0..rounds {
            let expected: Vec<_> = (0..nranks).map(|rank| message(rank, round)).collect();
            assert!(exchange(&star, &message(rank, round)).unwrap() == expected, "rank {rank}, round {round}");
        }
    });
}

#[test]
fn exchanges_of_few() {
    for nranks in [2, 3, 5] {
        exchanges(nranks, 20);
    }
}

#[test]
fn exchanges_of_many() {
    exchanges(100, 5);
}

/// All hear all in one order, and each sender's in its own.
#[test]
fn announcements_have_one_order() {
    const EACH: u32 = 50;
    let nranks = 12;
    let heard = each(world(nranks), |rank, star| {
        let news = ears(&star);
        for number in 0..EACH {
            star.announce(&number.to_le_bytes()).unwrap();
        }
        let heard: Vec<_> = (0..EACH * nranks).map(|_| news.recv_timeout(LONG).unwrap()).collect();
        exchange(&star, &[]).unwrap();
        let own = |news: &&News| matches!(news, News::Said { rank: from, .. } if *from == rank);
        let said = |number: u32| News::Said { rank, body: number.to_le_bytes().to_vec() };
        assert_eq!(heard.iter().filter(own).cloned().collect::<Vec<_>>(), (0..EACH).map(said).collect::<Vec<_>>());
        heard
    });
    assert!(heard.iter().all(|one| *one == heard[0]));
}

#[test]
fn leaving_is_told_and_no_loss() {
    let barrier = Barrier::new(3);
    each(world(3), |rank, star| {
        let news = ears(&star);
        exchange(&star, &[]).unwrap();
        if rank == 1 {
            drop(star);
            barrier.wait();
            return;
        }
        assert_eq!(news.recv_timeout(LONG).unwrap(), News::Left { rank: 1 });
        barrier.wait();
        assert_eq!(star.lost(), None);
        let error = exchange(&star, &[]).unwrap_err();
        assert_eq!((error.kind, &*error.message), (ErrorKind::PeerLost, "rank 1 has left the world"));
    });
}

/// Rank 0 stays as long as others speak through it.
#[test]
fn rank_0_may_leave_first() {
    each(world(3), |rank, star| {
        let news = ears(&star);
        if rank == 0 {
            return;
        }
        assert_eq!(news.recv_timeout(LONG).unwrap(), News::Left { rank: 0 });
        star.announce(&[rank as u8]).unwrap();
        let mut said: Vec<_> = (0..2).map(|_| news.recv_timeout(LONG).unwrap()).collect();
        said.sort_by_key(|news| format!("{news:?}"));
        assert_eq!(said, [1, 2].map(|rank| News::Said { rank, body: vec![rank as u8] }));
    });
}

#[test]
fn who_does_not_come_is_named() {
    each(world(4), |rank, star| {
        if rank % 2 == 0 {
            let briefly = Instant::now() + Duration::from_millis(100);
            let error = star.gather(Operation::Exchange, Ok(&[]), briefly).unwrap_err();
            let message = "ranks 1, 3 have not called exchange within 0.1 s";
            assert_eq!((error.kind, &*error.message), (ErrorKind::Timeout, message));
        } else {
            std::thread::sleep(Duration::from_millis(300));
            let error = exchange(&star, &[]).unwrap_err();
            assert!(error.message.starts_with("ranks 1, 3 have not called exchange within"), "{error}");
        }
        assert_eq!(exchange(&star, &[rank as u8]).unwrap(), [[0], [1], [2], [3]]);
    });
}

#[test]
fn one_rank_refuses_for_all() {
    each(world(3), |rank, star| {
        let refusal = Error::new(ErrorKind::NoSpace, "no space here");
        let mine = if rank == 2 { Err(refusal.clone()) } else { Ok(&[][..]) };
        assert_eq!(star.gather(Operation::Allocate, mine, soon()), Err(refusal));
        exchange(&star, &[]).unwrap();
        let operation = if rank == 1 { Operation::Allocate } else { Operation::Exchange };
        let error = star.gather(operation, Ok(&[]), soon()).unwrap_err();
        assert!(
            error.message.contains(" calls exchange while rank ") || error.message.contains(" calls allocate while ")
        );
        exchange(&star, &[]).unwrap();
    });
}

/// A process that does nothing any more is missed by all, and hears of it itself.
#[test]
fn silence_is_a_loss() {
    for victim in [0, 2] {
        each(world_with(3, Duration::from_millis(300)), |rank, star| {
            let (stop, stopped) = channel::<()>();
            let why = format!("rank {victim} has been silent for 0.3 s");
            if rank == victim {
                // Whoever listens holds up the thread that gives signs of life.
                let stopped = std::sync::Mutex::new(stopped);
                star.listen(Arc::new(move |_| _ = stopped.lock().unwrap().recv_timeout(LONG)));
                star.announce(&[]).unwrap();
                std::thread::sleep(Duration::from_millis(1500));
                stop.send(()).unwrap();
            } else {
                let news = ears(&star);
                let mut news = std::iter::from_fn(|| news.recv_timeout(LONG).ok());
                assert!(news.any(|news| news == News::Lost { rank: victim, why: why.clone() }));
                assert_eq!(star.lost(), Some(victim));
            }
            let error = exchange(&star, &[]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::PeerLost);
            if rank != victim || rank != 0 {
                assert_eq!(error.message, why);
            }
        });
    }
}

/// While others are waited for, nobody gives signs of life.
#[test]
fn a_rank_that_comes_late() {
    let silence = Duration::from_millis(300);
    let (listener, address) = listener();
    let guest = |rank| Guest { silence, ..Guest::new(rank, 3) };
    std::thread::scope(|scope| {
        let others = [1, 2].map(|rank| {
            let address = &address;
            scope.spawn(move || {
                std::thread::sleep(silence * 2 * (rank - 1));
                guest(rank).come(address).unwrap()
            })
        });
        let first = guest(0).host(listener, &address).unwrap();
        let stars = std::iter::once(first).chain(others.map(|other| other.join().unwrap()));
        each(stars.collect(), |rank, star| {
            std::thread::sleep(silence / 2);
            assert_eq!(exchange(&star, &[rank as u8]).unwrap(), [[0], [1], [2]]);
        });
    });
}

/// What one process has lost, all have lost, unless it turns out in a moment that it has died.
#[test]
fn a_rank_that_one_misses_is_lost_to_all() {
    let why = "rank 1 cannot be reached";
    each(world(3), |rank, star| {
        let news = ears(&star);
        if rank == 2 {
            star.voice().miss(1, why.into());
        }
        assert_eq!(news.recv_timeout(LONG).unwrap(), News::Lost { rank: 1, why: why.into() });
        assert_eq!(star.lost(), Some(1));
        assert_eq!(exchange(&star, &[]).unwrap_err().message, why);
    });
}

#[test]
fn two_worlds_side_by_side() {
    let (first, second) = (world(3), world(3));
    assert_ne!(first[0].session(), second[0].session());
    std::thread::scope(|scope| {
        for (number, stars) in [first, second].into_iter().enumerate() {
            scope.spawn(move || {
                each(stars, |rank, star| {
                    for round in 0..50u8 {
                        let word = |rank| vec![number as u8, rank as u8, round];
                        assert_eq!(exchange(&star, &word(rank)).unwrap(), [word(0), word(1), word(2)]);
                    }
                });
            });
        }
    });
}

#[test]
fn ranks_that_disagree_are_told_all() {
    type Lie = fn(&mut Hello);
    let cases: [(Lie, &str); 4] = [
        (|me| me.agreement = b"other".to_vec(), "rank 2 comes with other, rank 0 with test"),
        (|me| me.nranks = 4, "rank 2 says that the world has 4 ranks, rank 0 says 3"),
        (|me| me.rank = 3, "process 102 says that it is rank 3, but the world has 3 ranks"),
        (|me| me.rank = 0, "rank 0 is there twice: processes 100 and 102"),
    ];
    for (change, message) in cases {
        let mut guests: Vec<_> = (0..3).map(|rank| Guest::new(rank, 3)).collect();
        change(&mut guests[2].me);
        all_fail(join(&guests), ErrorKind::Mismatch, message);
    }
    let twice = [Guest::new(0, 4), Guest::new(1, 4), Guest::new(1, 4)];
    all_fail(join(&twice), ErrorKind::Mismatch, "rank 1 is there twice: processes 101 and 101");
}

/// Another version knows the secret, but not our words.
#[test]
fn other_versions_are_told_so() {
    let (listener, address) = listener();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| Guest::new(0, 2).host(listener, &address).map(|_| ()));
        let guest = Guest::new(1, 2);
        let Ok(Greeting::Known(mut link)) = knock::look(&address, &guest.secret, 1 << 20, soon()) else {
            panic!("rank 0 does not know the secret");
        };
        let mut bytes = frame::Frame::Hello(guest.me).encode();
        // Kind, length, magic, then the version.
        bytes[9] = 77;
        link.send(&link::Sealable::from(bytes)).unwrap();
        let message = "a rank speaks protocol 77 while rank 0 speaks 2: their libraries differ";
        let error = Error::new(ErrorKind::Mismatch, message);
        let mut frames = Vec::new();
        while frames.is_empty() && link.receive(&mut frames).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(frames, [frame::Frame::Failure(frame::JOIN, error.clone())]);
        drop(link);
        assert_eq!(first.join().unwrap(), Err(error));
    });
}

#[test]
fn another_secret_is_refused_on_both_sides() {
    let (listener, address) = listener();
    let other = Guest { secret: Secret::from_bytes(b"another secret of it"), ..Guest::new(1, 2) };
    let first = Guest::new(0, 2).within(Duration::from_millis(500));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| first.host(listener, &address).map(|_| ()).unwrap_err());
        let second = other.come(&address).map(|_| ()).unwrap_err();
        let expected = format!("rank 0 at {address} has a different secret than this process");
        assert_eq!(second, Error::new(ErrorKind::Mismatch, expected));
        let first = first.join().unwrap();
        let expected = format!(
            "rank 1 has not called join within 0.5 s, at {address}; a process at 127.0.0.1 came with a different secret"
        );
        assert_eq!(first, Error::new(ErrorKind::Timeout, expected));
    });
}

#[test]
fn whoever_comes_in_vain_is_told_who_is_missing() {
    let guests = [Guest::new(0, 4).within(Duration::from_millis(300)), Guest::new(2, 4)];
    let (listener, address) = listener();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| guests[1].come(&address).map(|_| ()).unwrap_err());
        let first = guests[0].host(listener, &address).map(|_| ()).unwrap_err();
        let expected = format!("ranks 1, 3 have not called join within 0.3 s, at {address}");
        assert_eq!(first, Error::new(ErrorKind::Timeout, expected));
        assert_eq!(second.join().unwrap(), first);
    });
    // Now nobody is there at all.
    let alone = Guest::new(1, 2).within(Duration::from_millis(100)).come(&address).map(|_| ()).unwrap_err();
    assert_eq!(alone.kind, ErrorKind::Timeout);
    let expected = format!("rank 0 has not called join within 0.1 s, at {address} (Connection refused (os error 111))");
    assert_eq!(alone.message, expected);
}

/// A rank that gives up ends it for all.
#[test]
fn an_impatient_rank() {
    let guests = [Guest::new(0, 3), Guest::new(1, 3).within(Duration::from_millis(300))];
    let expected = "rank 2 has not called join within 0.3 s";
    for result in join(&guests) {
        let error = result.map(|_| ()).unwrap_err();
        assert!(error.kind == ErrorKind::Timeout && error.message.starts_with(expected), "{error}");
    }
}

#[test]
fn a_port_that_is_in_use() {
    let (program, address) = listener();
    let first = Guest::new(0, 2);
    let error = first.meeting(|meeting| meeting.at(&address)).map(|_| ()).unwrap_err();
    let expected = format!("{address} is in use: another program listens there already");
    assert_eq!(error, Error::new(ErrorKind::Io, expected));
    // Another world, and another rank 0 of this one.
    std::thread::scope(|scope| {
        let host = scope.spawn(|| Guest::new(0, 2).host(program, &address).map(|_| ()).unwrap_err());
        let other = Guest { secret: Secret::from_bytes(b"another secret of it"), ..Guest::new(0, 2) };
        let error = other.meeting(|meeting| meeting.at(&address)).map(|_| ()).unwrap_err();
        let expected = format!("{address} is in use: a world with a different secret listens there already");
        assert_eq!(error, Error::new(ErrorKind::Io, expected));
        let error = first.meeting(|meeting| meeting.at(&address)).map(|_| ()).unwrap_err();
        let expected = Error::new(ErrorKind::Mismatch, "rank 0 is there twice: processes 100 and 100");
        assert_eq!((&error, host.join().unwrap()), (&expected, expected.clone()));
    });
    // Nobody listens there any more.
    assert!(listen(&address).is_ok());
}

/// A process too many, which has only said that it is there.
#[test]
fn a_world_that_is_complete_without_a_process() {
    let (listener, address) = listener();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| Guest::new(0, 2).host(listener, &address).map(|_| ()));
        let mut third = TcpStream::connect(target(&address)).unwrap();
        Guest::new(1, 2).come(&address).unwrap();
        first.join().unwrap().unwrap();
        let mut told = Vec::new();
        third.read_to_end(&mut told).unwrap();
        assert_eq!((told.len(), &told[..8], told[8], told[9]), (41, &b"pld-star"[..], 4, 2));
    });
}

fn target(address: &Address) -> SocketAddr {
    address.resolve().unwrap()[0]
}

/// Who scans ports, says nothing, says something else or only half of it is in nobody's way.
#[test]
fn strangers_disturb_nobody() {
    let (listener, address) = listener();
    let words: [&[u8]; 5] = [b"", b"GET / HTTP/1.1\r\n\r\n", b"pld-star", b"pld-stag", &[0xff; 5000]];
    std::thread::scope(|scope| {
        let first =
            scope.spawn(|| Guest::new(0, 3).host(listener, &address).map(|star| exchange(&star, b"0").unwrap()));
        let strangers: Vec<_> = (0..300)
            .map(|number: usize| {
                let mut stranger = TcpStream::connect(target(&address)).unwrap();
                // Rank 0 may have ended it by now.
                let _ = stranger.write_all(words[number % words.len()]);
                (!number.is_multiple_of(3)).then_some(stranger)
            })
            .collect();
        let others = [1, 2].map(|rank| {
            let (address, word) = (&address, rank.to_string());
            scope.spawn(move || exchange(&Guest::new(rank, 3).come(address).unwrap(), word.as_bytes()).unwrap())
        });
        for other in others {
            assert_eq!(other.join().unwrap(), [b"0", b"1", b"2"]);
        }
        assert_eq!(first.join().unwrap().unwrap(), [b"0", b"1", b"2"]);
        drop(strangers);
    });
}

/// Who speaks for another program at the address of rank 0 is not taken for it.
#[test]
fn somebody_else_at_the_address() {
    let (other, address) = listener();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + Duration::from_millis(800);
            other.set_nonblocking(true).unwrap();
            while Instant::now() < end {
                match other.accept() {
                    Ok((mut stream, _)) => {
                        _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\nand so on, and so on, and so on")
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let error = Guest::new(1, 2).within(Duration::from_millis(300)).come(&address).map(|_| ()).unwrap_err();
        let expected = format!("at {address} (somebody else listens there, or rank 0 has given up)");
        assert!(error.kind == ErrorKind::Timeout && error.message.ends_with(&expected), "{error}");
    });
}

fn through_engine(hosts: &[&str]) -> Vec<Result<(bool, Vec<Vec<u8>>)>> {
    let nranks = hosts.len() as u32;
    let parts = std::sync::Mutex::new(vec![Vec::new(); hosts.len()]);
    let barrier = Barrier::new(hosts.len());
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..)
            .zip(hosts)
            .map(|(rank, host)| {
                let (parts, barrier) = (&parts, &barrier);
                scope.spawn(move || {
                    let gather = move |mine: &[u8], all: &mut [u8]| {
                        parts.lock().unwrap()[rank as usize] = mine.to_vec();
                        barrier.wait();
                        all.copy_from_slice(&parts.lock().unwrap().concat());
                        barrier.wait();
                        Ok(())
                    };
                    let me = Hello { host: (*host).into(), ..hello(rank, nranks) };
                    let sight = through::look(&gather, &me)?;
                    let star = through::meet(&gather, sight, &me, SILENCE, soon())?;
                    exchange(&star, &[rank as u8]).map(|all| (sight.one_host, all))
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn through_the_engines_all_gather() {
    for (hosts, one) in [(["a", "a", "b"], false), (["a", "a", "a"], true)] {
        for result in through_engine(&hosts) {
            assert_eq!(result, Ok((one, vec![vec![0], vec![1], vec![2]])));
        }
    }
}
