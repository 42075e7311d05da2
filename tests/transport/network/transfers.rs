//! Bytes arrive where they belong, and nowhere else.

use std::sync::Arc;

use pld::error::Result;

use super::*;

pub const SCENARIOS: &[(&str, Scenario)] =
    &[("network_puts", puts), ("network_gets", gets), ("network_accumulates", accumulates), ("network_bounds", bounds)];

/// Rows of all kinds: bytes, count, stride there, stride here, and where they begin there and here.
const SHAPES: &[(Rows, usize, usize)] = &[
    (Rows { bytes: 1, count: 1, far_stride: 1, near_stride: 1 }, 3, 5),
    (Rows { bytes: 8, count: 1, far_stride: 8, near_stride: 8 }, 64, 128),
    (Rows { bytes: 1, count: 1000, far_stride: 3, near_stride: 2 }, 1, 7),
    (Rows { bytes: 4, count: 5000, far_stride: 4, near_stride: 12 }, 8, 4),
    (Rows { bytes: 4, count: 5000, far_stride: 12, near_stride: 4 }, 0, 4),
    (Rows { bytes: 100, count: 999, far_stride: 128, near_stride: 100 }, 16, 0),
    (Rows { bytes: 4097, count: 33, far_stride: 5000, near_stride: 4200 }, 11, 13),
    (Rows { bytes: 16384, count: 1, far_stride: 0, near_stride: 0 }, 0, 1),
    (Rows { bytes: 16385, count: 3, far_stride: 20000, near_stride: 16385 }, 0, 1),
    (Rows { bytes: 70001, count: 7, far_stride: 70001, near_stride: 80000 }, 1, 1),
    (Rows { bytes: 8 << 20, count: 1, far_stride: 0, near_stride: 0 }, 4096, 64),
    (Rows { bytes: 1 << 10, count: 8 << 10, far_stride: 2 << 10, near_stride: 1 << 10 }, 0, 0),
];

/// Which place of one side holds what; `None` for places between rows.
fn source(rows: &Rows, to: usize, from: usize, to_stride: usize, from_stride: usize, at: usize) -> Option<usize> {
    let place = at.checked_sub(to)?;
    let (row, column) = if rows.count == 1 { (0, place) } else { (place / to_stride, place % to_stride) };
    (row < rows.count && column < rows.bytes).then(|| from + row * from_stride + column)
}

fn puts(process: &Rank) -> Result<String> {
    let end = End::connect(process)?;
    let (next, previous) = ((end.rank + 1) % end.nranks, (end.rank + end.nranks - 1) % end.nranks);
    for (salt, (rows, far, near)) in (0..).zip(SHAPES) {
        end.fill(salt);
        // What is sent is not what is written over.
        // SAFETY: the memory is there, and nobody writes it now.
        let copy = unsafe { std::slice::from_raw_parts(end.own.rank(0), BYTES) }.to_vec();
        end.meet();
        // SAFETY: the rows lie in both memories, and the copy lives on.
        unsafe { end.memory().put(next, *far as u64, copy.as_ptr().cast::<u8>().add(*near), *rows, &end.pending) };
        end.progress_until(|| end.pending.none());
        end.reach();
        end.meet();
        let expected = |at| match source(rows, *far, *near, rows.far_stride, rows.near_stride, at) {
            Some(at) => value(previous, at, salt),
            None => value(end.rank, at, salt),
        };
        let wrong = (0..CELLS).find(|at| end.byte(*at) != expected(*at));
        assert_eq!(wrong, None, "rank {} {rows:?}", end.rank);
        end.meet();
    }
    end.close()
}

fn gets(process: &Rank) -> Result<String> {
    let end = End::connect(process)?;
    let next = (end.rank + 1) % end.nranks;
    end.fill(0);
    end.meet();
    for (rows, far, near) in SHAPES {
        let mut copy = vec![0xa5u8; CELLS];
        // SAFETY: the rows lie in both memories, and the copy lives on.
        unsafe { end.memory().get(next, *far as u64, copy.as_mut_ptr().add(*near), *rows, &end.pending) };
        end.progress_until(|| end.pending.none());
        let expected = |at| {
            let source = source(rows, *near, *far, rows.near_stride, rows.far_stride, at);
            source.map_or(0xa5, |at| value(next, at, 0))
        };
        let wrong = (0..CELLS).find(|at| copy[*at] != expected(*at));
        assert_eq!(wrong, None, "rank {} {rows:?}", end.rank);
    }
    end.close()
}

/// Every rank adds to rank 0, all at the same time; rows begin at any place where an element may.
fn accumulates(process: &Rank) -> Result<String> {
    const ROWS: usize = 300;
    const COLUMNS: usize = 333;
    let end = End::connect(process)?;
    let numbers: Vec<f32> = (0..ROWS * COLUMNS).map(|at| (at % 1000) as f32 + end.rank as f32).collect();
    let shape = rows(COLUMNS * 4, ROWS, COLUMNS * 8, COLUMNS * 4);
    if end.rank > 0 {
        for _ in 0..3 {
            // SAFETY: the rows lie in both memories; the numbers live on.
            unsafe { end.memory().accumulate(0, 4, numbers.as_ptr().cast(), shape, 0, &end.pending) };
        }
        end.progress_until(|| end.pending.none());
        end.reach();
    }
    end.meet();
    if end.rank == 0 {
        for place in 0..ROWS * COLUMNS * 2 {
            // SAFETY: it is in memory, and aligned.
            let sum = unsafe { end.at(4 + place * 4).cast::<f32>().read_volatile() };
            let (row, column) = (place / (COLUMNS * 2), place % (COLUMNS * 2));
            let one = ((row * COLUMNS + column) % 1000) as f32;
            let all = (1..end.nranks).map(|rank| 3.0 * (one + rank as f32)).sum();
            assert_eq!(sum, if column < COLUMNS { all } else { 0.0 }, "{row} {column}");
        }
    }
    end.close()
}

/// A get is executed where it stands: it sees what was put before, and not what is put after.
fn bounds(process: &Rank) -> Result<String> {
    const SIZE: usize = 3 << 20;
    let end = End::connect(process)?;
    if end.rank == 0 {
        let before = vec![1u8; SIZE];
        let after = vec![2u8; SIZE];
        let mut seen = vec![0u8; SIZE];
        let pending = Arc::clone(&end.pending);
        // SAFETY: the rows lie in both memories, and the vectors live on.
        unsafe {
            end.memory().put(1, 0, before.as_ptr(), rows(SIZE, 1, SIZE, SIZE), &pending);
            end.memory().get(1, 0, seen.as_mut_ptr(), rows(SIZE, 1, SIZE, SIZE), &pending);
            end.memory().put(1, 0, after.as_ptr(), rows(SIZE, 1, SIZE, SIZE), &pending);
        }
        end.progress_until(|| pending.none());
        assert!(seen == before);
        end.reach();
    }
    end.meet();
    if end.rank == 1 {
        assert!((0..SIZE).all(|at| end.byte(at) == 2));
    }
    end.close()
}

#[test]
fn rows_are_put_where_they_belong() {
    run("network_puts", 3);
}

#[test]
fn rows_are_got_from_where_they_are() {
    run("network_gets", 2);
}

#[test]
fn sums_of_all_ranks_are_complete() {
    run("network_accumulates", 4);
}

#[test]
fn gets_and_puts_keep_their_order() {
    run("network_bounds", 2);
}
