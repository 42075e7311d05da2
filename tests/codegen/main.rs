//! Generated code on plain threads, without the runtime.

#[path = "../support/choices.rs"]
mod choices;
#[path = "../support/compare.rs"]
mod compare;
#[path = "../support/random_scalars.rs"]
mod random_scalars;
#[path = "../support/random_transfers.rs"]
mod random_transfers;
#[path = "../support/ranks.rs"]
mod ranks;
#[path = "../support/text.rs"]
mod text;

mod allreduce;
mod faults;
mod host;
mod scalars;
mod signals;
mod stops;
mod transfers;
