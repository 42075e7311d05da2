//! Window memory on cards: zeroed, symmetric, seen by all.

use pld::error::Result;
use pld::transport::Transport;
use pld::transport::hccl::{Cards, DeviceWindows, HcclTransport};

use super::{Processes, World, cards, everywhere, join, meet};
use crate::ranks::{Rank, Scenario, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("windows", |rank| suite(rank, &[0, 1, 64, 4097, 100_000, (2 << 20) + 8])),
    ("many_windows", many_windows),
    ("windows_of_different_sizes", |rank| {
        let transport = join(rank, soon())?;
        let bytes = 1000 + transport.local().start as usize;
        let failed = cards(&transport).allocate_windows(bytes, soon()).map(drop);
        suite_with(&transport, &[4096])?;
        failed.map(|()| "allocated".into())
    }),
    ("windows_that_do_not_fit", |rank| {
        let transport = join(rank, soon())?;
        let failed = cards(&transport).allocate_windows(8 << 20, soon()).map(drop);
        suite_with(&transport, &[4096])?;
        failed.map(|()| "allocated".into())
    }),
    ("windows_after_a_failure", |rank| {
        let transport = join(rank, soon())?;
        let failed = cards(&transport).allocate_windows(5000, soon()).map(drop);
        suite_with(&transport, &[5000])?;
        failed.map(|()| "allocated".into())
    }),
    ("windows_in_use_when_dropped", in_use_when_dropped),
    ("windows_of_the_lost", |rank| {
        let transport = join(rank, soon())?;
        let windows = cards(&transport).allocate_windows(5000, soon())?;
        rank.say("ready");
        if transport.local().start == 1 {
            rank.hear("never");
        }
        let failed = cards(&transport).allocate_windows(5000, soon()).map(drop);
        // The memory of the lost is there as long as it is mapped.
        read(cards(&transport), transport.local().start, &windows, 1)?;
        failed.map(|()| "allocated".into())
    }),
];

/// Depends on who writes where in whose windows.
fn value(writer: u32, owner: u32, position: usize) -> u8 {
    (position.wrapping_mul(2_654_435_761) >> 9) as u8 ^ (writer * 29 + owner * 67 + 0x55) as u8
}

fn pattern(writer: u32, owner: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|position| value(writer, owner, position)).collect()
}

/// The windows of `owner`, read by the card of `reader`.
fn read(cards: &Cards, reader: u32, windows: &DeviceWindows, owner: u32) -> Result<Vec<u8>> {
    let mut bytes = vec![0xee; windows.bytes()];
    // SAFETY: the windows have that many bytes, and `meet` orders the accesses of ranks.
    unsafe { cards.card(reader).read(windows.base(owner), &mut bytes) }?;
    Ok(bytes)
}

fn suite(rank: &Rank, sizes: &[usize]) -> Result<String> {
    suite_with(&join(rank, soon())?, sizes)
}

fn suite_with(transport: &HcclTransport, sizes: &[usize]) -> Result<String> {
    let (cards, local, all) = (cards(transport), transport.local(), 0..transport.nranks());
    for &bytes in sizes {
        let windows = cards.allocate_windows(bytes, soon())?;
        assert_eq!(windows.bytes(), bytes);
        for reader in local.clone() {
            for owner in all.clone() {
                let seen = read(cards, reader, &windows, owner)?;
                assert!(seen.iter().all(|byte| *byte == 0), "{bytes} bytes of rank {owner}, seen by rank {reader}");
            }
        }
        meet(transport)?;
        // Each rank writes its share of everyone's windows.
        let share = bytes / all.len();
        for writer in local.clone() {
            for owner in all.clone() {
                let offset = share * writer as usize;
                let written = &pattern(writer, owner, bytes)[offset..offset + share];
                // SAFETY: as in `read`.
                unsafe { cards.card(writer).write(windows.base(owner) + offset as u64, written) }?;
            }
        }
        meet(transport)?;
        for reader in local.clone() {
            for owner in all.clone() {
                let seen = read(cards, reader, &windows, owner)?;
                for writer in all.clone() {
                    let range = share * writer as usize..share * (writer as usize + 1);
                    let expected = pattern(writer, owner, bytes);
                    assert!(seen[range.clone()] == expected[range], "{writer} to {owner}, seen by {reader}");
                }
            }
        }
        meet(transport)?;
    }
    Ok("passed".into())
}

/// Windows are independent and may be dropped in any order, which may differ from rank to rank.
fn many_windows(rank: &Rank) -> Result<String> {
    let transport = join(rank, soon())?;
    let (cards, local) = (cards(&transport), transport.local());
    let mut windows = (1..=3).map(|n| Some(cards.allocate_windows(n * 3000, soon())));
    let mut windows: Vec<_> = std::iter::from_fn(|| windows.next()).flatten().collect::<Result<_>>()?;
    for (index, windows) in windows.iter().enumerate() {
        for rank in local.clone() {
            // SAFETY: the windows have that many bytes, and each rank writes to its own.
            unsafe { cards.card(rank).write(windows.base(rank), &pattern(rank, index as u32, windows.bytes())) }?;
        }
    }
    meet(&transport)?;
    windows.rotate_left(local.start as usize % 3);
    while let Some(dropped) = windows.pop() {
        drop(dropped);
        for kept in &windows {
            let index = kept.bytes() as u32 / 3000 - 1;
            for reader in local.clone() {
                for owner in 0..transport.nranks() {
                    assert!(read(cards, reader, kept, owner)? == pattern(owner, index, kept.bytes()));
                }
            }
        }
    }
    Ok("passed".into())
}

/// A rank drops its windows while another one still writes to them.
fn in_use_when_dropped(rank: &Rank) -> Result<String> {
    let transport = join(rank, soon())?;
    let cards = cards(&transport);
    let windows = cards.allocate_windows(5000, soon())?;
    let me = transport.local().start;
    if me == 0 {
        drop(windows);
        meet(&transport)?;
    } else {
        meet(&transport)?;
        // One of the others, so that nobody else writes there.
        if transport.local().end == transport.nranks() {
            // SAFETY: the memory stays as long as it is mapped here.
            unsafe { cards.card(me).write(windows.base(0), &pattern(me, 0, 5000)) }?;
            assert!(read(cards, me, &windows, 0)? == pattern(me, 0, 5000));
        }
    }
    meet(&transport)?;
    suite_with(&transport, &[5000])
}

#[test]
fn cards_see_each_others_windows() {
    everywhere("windows", &[]);
    everywhere("many_windows", &[]);
}

/// Calls of a function in the process at `seat`.
fn calls(world: &World, seat: usize, function: &str) -> u64 {
    world.report(seat).expect("a report")["calls"][function].as_u64().unwrap_or(0)
}

#[test]
fn handles_are_those_of_the_fabric_where_there_is_one() {
    let mut world = World::start("windows", 2, Processes::OneARank, &[]);
    world.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "passed"));
    for seat in 0..2 {
        assert_eq!(calls(&world, seat, "aclrtMemImportFromShareableHandleV2"), 6);
        assert_eq!(calls(&world, seat, "aclrtMemImportFromShareableHandle"), 0);
    }
}

/// If one rank has no fabric, none uses it, and none asks again.
#[test]
fn handles_are_those_of_the_driver_where_a_rank_has_no_fabric() {
    for without in [0..3, 1..2] {
        let mut world = World { job: crate::ranks::Job::new() };
        for rank in 0..3 {
            let fabric = if without.contains(&rank) { "0" } else { "1" };
            world.spawn_rank("windows", rank, 3, &[("CANN_SIM_FABRIC", fabric)]);
        }
        world.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "passed"));
        for seat in 0..3 {
            assert_eq!(calls(&world, seat, "aclrtMemExportToShareableHandleV2"), 1);
            assert_eq!(calls(&world, seat, "aclrtMemImportFromShareableHandle"), 12);
            assert_eq!(calls(&world, seat, "aclrtDeviceEnablePeerAccess"), 2);
        }
        world.assert_nothing_is_left();
    }
}

/// One process imports nothing: its cards see the same addresses.
#[test]
fn a_process_imports_nothing_from_itself() {
    let mut world = World::start("windows", 4, Processes::One, &[]);
    world.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "passed"));
    for function in ["aclrtMemExportToShareableHandleV2", "aclrtMemImportFromShareableHandleV2"] {
        assert_eq!(calls(&world, 0, function), 0, "{function}");
    }
    assert_eq!(calls(&world, 0, "aclrtDeviceEnablePeerAccess"), 4 * 3);
}

/// The process counts its devices otherwise than the driver does.
#[test]
fn devices_that_are_not_all_visible() {
    let visible = [("ASCEND_RT_VISIBLE_DEVICES", "5,2,7,4")];
    for fabric in ["0", "1"] {
        let more = [visible[0], ("CANN_SIM_FABRIC", fabric)];
        World::start("windows", 4, Processes::OneARank, &more).succeed();
    }
    World::start("windows", 4, Processes::One, &visible).succeed();
}

#[test]
fn different_sizes() {
    let message = World::start("windows_of_different_sizes", 3, Processes::OneARank, &[]).fail("Mismatch");
    assert_eq!(message, "rank 0 allocates 1000 bytes while rank 1 allocates 1001");
}

#[test]
fn windows_that_do_not_fit() {
    let mut world = World { job: crate::ranks::Job::new() };
    for rank in 0..3 {
        let memory = if rank == 1 { "6000000" } else { "60000000" };
        world.spawn_rank("windows_that_do_not_fit", rank, 3, &[("CANN_SIM_MEMORY", memory)]);
    }
    let message = world.fail("NoSpace");
    let expected = "rank 1: windows need 8388608 bytes on device 1, but only 6000000 are free; aclrtMallocPhysical: ";
    assert!(message.starts_with(expected), "{message}");
}

/// Each step fails once on one rank: all have its error, and can go on.
#[test]
fn a_failing_call_fails_on_all_ranks() {
    let steps = [
        "aclrtMemGetAllocationGranularity",
        "aclrtMallocPhysical",
        "aclrtReserveMemAddress",
        "aclrtMapMem",
        "aclrtMemSetAccess",
        "aclrtMemset",
        "aclrtMemExportToShareableHandleV2",
        "aclrtMemImportFromShareableHandleV2",
    ];
    for step in steps {
        let mut world = World { job: crate::ranks::Job::new() };
        let order = format!("{step}:1=507899");
        for rank in 0..3 {
            let more: &[_] = if rank == 1 { &[("CANN_SIM_FAIL", &*order)] } else { &[] };
            world.spawn_rank("windows_after_a_failure", rank, 3, more);
        }
        let message = world.fail("Device");
        let about = if step.contains("Import") { "rank 1: the windows of rank 0: " } else { "rank 1: " };
        let expected =
            format!("{about}{step}: ACL_ERROR_RT_DRV_INTERNAL_ERROR (507899): [cann_sim] {step}: call 1 was");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn a_rank_that_dies() {
    let mut world = World::start("windows_of_the_lost", 3, Processes::OneARank, &[]);
    world.job.hear_all("ready");
    world.job.kill(1);
    let outcomes = world.outcomes();
    for seat in [0, 2] {
        let message = outcomes[seat].failed("PeerLost");
        assert!(message.starts_with("rank 1 "), "{message}");
    }
    world.assert_nothing_is_left();
}

#[test]
fn memory_lives_as_long_as_somebody_maps_it() {
    for fabric in ["0", "1"] {
        World::start("windows_in_use_when_dropped", 3, Processes::OneARank, &[("CANN_SIM_FABRIC", fabric)]).succeed();
    }
}
