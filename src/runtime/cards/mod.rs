//! Ranks that are cards: tasks are kernels, which the host queues on streams.
//!
//! The host runs the program's driver and entries as ever; each task that they submit is queued with what it comes after
//! ([`order`]), and the card does the rest. Kernels that find a mistake, or wait for long, write it into memory of the
//! card ([`reports`]), where whoever watches the launch ([`watch`]) finds it and tells all ranks.

mod flight;
mod kernels;
mod order;
mod queue;
mod reports;
mod watch;

pub(super) use flight::{Flights, run};
pub(super) use kernels::Kernels;
pub(super) use queue::Queue;
