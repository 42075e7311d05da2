//! Worlds of ranks, and programs that run in them.
//!
//! A [`World`] is made over a transport; an [`Executable`] is a program compiled for it, with its windows. A launch
//! calls the program's driver once a rank: a process that is one rank does so on the calling thread, a process that
//! drives all ranks runs rank 0 on the calling thread and the others on threads that live as long as the world.
//!
//! A launch allocates nothing, takes no lock and makes no system call while nobody sleeps. What goes wrong on one rank
//! is recorded where all ranks see it, and ends the launch of every one of them with the same error. The next call
//! recovers from that, unless the world has ended: a rank was lost, or somebody aborted.

mod aligned;
mod announcement;
mod args;
mod callback;
mod cards;
mod cells;
mod chaos;
mod control;
mod core;
mod cores;
mod executable;
mod failure;
mod far;
mod fork;
mod hooks;
mod info;
mod launch;
mod line;
mod memo;
mod pools;
mod recovery;
mod report;
mod resident;
mod run;
mod tasks;
mod threads;
mod time;
mod trace;
mod traffic;
mod wait;
mod windows;
mod world;

pub use args::{Arg, TensorArg};
pub use callback::{Callback, CallbackContext, CallbackFn, View, check_names};
pub use executable::{CompileOptions, Executable};
pub use info::Info;
pub use resident::Resident;
pub use run::Run;
pub use wait::WaitPolicy;
pub use world::{CardOptions, EngineComm, MAX_CORES, MAX_RANKS, World, WorldOptions};
