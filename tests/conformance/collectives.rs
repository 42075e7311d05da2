//! Vectors of the examples that call collectives.

use super::*;

/// Rows that rank `from` sends to rank `to` in the example.
fn rows(from: i64, to: i64) -> i64 {
    (from + 2 * to) % 4
}

pub fn vectors() -> Vec<Vector> {
    use DType::{F32, I32};
    let (each, square) = (|_| vec![1, 256], |p| vec![p, 64]);
    let (shares, counts) = (|p| vec![p * 3, 16], |p| vec![p]);
    vec![
        vector(
            "D1 allreduce",
            include_str!("../../examples/pld/host_collectives.pld"),
            vec![In(F32, each, ramp), Out(F32, each, |p, _, i| Some(ramp_sum(p, i)))],
        ),
        vector(
            "sharded update",
            include_str!("../../examples/pld/task_collectives.pld"),
            // Three steps, the gradients of which are one, two and three times x.
            vec![In(F32, square, ramp), Out(F32, square, |p, _, i| Some(6.0 * ramp_sum(p, i)))],
        ),
        vector(
            "rows by count",
            include_str!("../../examples/pld/all_to_all_v.pld"),
            vec![
                In(F32, shares, ramp),
                Out(F32, shares, |p, r, i| {
                    let (share, row) = (i / (3 * 16), i / 16 % 3);
                    let there = (r * 3 + row) * 16 + i % 16;
                    Some(if row < rows(share, r) { ramp(p, share, there) } else { 0.0 })
                }),
                Out(I32, counts, |_, r, i| Some(rows(r, i) as f64)),
                Out(I32, counts, |_, r, i| Some(rows(i, r) as f64)),
            ],
        ),
    ]
}
