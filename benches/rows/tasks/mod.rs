//! Graphs of tasks: what a task costs, what waiting costs, and the exchange of a mixture of experts.

mod defer;
pub mod moe;
mod overhead;
mod routing;

use crate::row::{Row, Target, Unit};

/// The rows `tasks/...`.
pub fn rows() -> Vec<Row> {
    use Unit::{Microseconds, Nanoseconds, Percent};
    vec![
        Row::new("tasks/moe_16", Microseconds, |bench| moe::layer(bench, 16, 400))
            .ranks(2)
            .peer("moe/16")
            .target(Target::TimesBestPeer(2.0 / 3.0)),
        Row::new("tasks/moe_64", Microseconds, |bench| moe::layer(bench, 64, 100))
            .ranks(2)
            .peer("moe/64")
            .target(Target::TimesBestPeer(2.0 / 3.0)),
        Row::new("tasks/moe_128", Microseconds, |bench| moe::layer(bench, 128, 50))
            .ranks(2)
            .peer("moe/128")
            .target(Target::TimesBestPeer(2.0 / 3.0)),
        Row::new("tasks/moe_128_traced", Microseconds, moe::traced).ranks(2).target(Target::TimesLimit(1.05)),
        Row::new("tasks/step_launches", Percent, moe::launches).ranks(2).target(Target::Absolute(2.0)),
        Row::new("tasks/routing", Microseconds, routing::loops).target(Target::TimesLimit(1.3)),
        Row::new("tasks/overhead", Nanoseconds, overhead::apart).target(Target::Absolute(50.0)),
        Row::new("tasks/overhead_chain", Nanoseconds, overhead::chain).target(Target::Absolute(50.0)),
        Row::new("tasks/overhead_traced", Nanoseconds, overhead::traced),
        Row::new("tasks/overhead_submitted", Nanoseconds, overhead::submitted),
        Row::new("tasks/overhead_held", Nanoseconds, overhead::held),
        Row::new("tasks/defer_64_cpu", Percent, defer::cpu).ranks(2).target(Target::Absolute(5.0)),
    ]
}
