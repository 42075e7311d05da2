//! The environment variables of the library: all of them in one list. What launchers and CANN set for their own purposes
//! is known to [`crate::transport`] only. A variable that is empty counts as not set.

use std::env;
use std::ffi::OsString;

/// An environment variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What holds while it is not set.
    pub default: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

impl Variable {
    /// Its value, if it has one.
    pub fn read(&self) -> Option<OsString> {
        read(self.name)
    }
}

/// The value of any variable, if it has one.
pub fn read(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// This process's rank.
pub const RANK: Variable =
    Variable { name: "PLD_RANK", default: "what the launcher says", meaning: "rank of this process, from 0" };

/// The number of ranks.
pub const WORLD_SIZE: Variable =
    Variable { name: "PLD_WORLD_SIZE", default: "what the launcher says", meaning: "number of ranks" };

/// Tells jobs apart.
pub const JOB: Variable = Variable {
    name: "PLD_JOB",
    default: "what the launcher says",
    meaning: "name of the job, the same on all its ranks",
};

/// Where ranks meet.
pub const DIR: Variable = Variable {
    name: "PLD_DIR",
    default: "XDG_RUNTIME_DIR, or /tmp/pld-UID",
    meaning: "directory where ranks meet; it belongs to the user, with mode 0700",
};

/// Tells hosts apart.
pub const HOST: Variable = Variable {
    name: "PLD_HOST",
    default: "the running system and its network",
    meaning: "name of this host: ranks with the same name map each other's memory",
};

/// Where rank 0 listens.
pub const ADDRESS: Variable = Variable {
    name: "PLD_ADDRESS",
    default: "what the launcher says",
    meaning: "HOST:PORT where rank 0 listens, if ranks run on several hosts",
};

/// Who may join.
pub const SECRET: Variable = Variable {
    name: "PLD_SECRET",
    default: "what is in PLD_SECRET_FILE",
    meaning: "what only processes of this job know, if ranks run on several hosts",
};

/// Where that is.
pub const SECRET_FILE: Variable = Variable {
    name: "PLD_SECRET_FILE",
    default: "none",
    meaning: "file with the secret; it belongs to the user, with mode 0600",
};

/// Shakes the timing.
pub const CHAOS: Variable = Variable {
    name: "PLD_CHAOS",
    default: "0",
    meaning: "seed with which ranks are held up at random places; 0 for none",
};

/// Records what ranks do.
pub const TRACE: Variable =
    Variable { name: "PLD_TRACE", default: "none", meaning: "file that gets a trace of what the ranks do" };

/// Builds kernels.
pub const CCEC: Variable = Variable {
    name: "PLD_CCEC",
    default: "ASCEND_HOME_PATH/bin/ccec",
    meaning: "compiler of kernels for cards, with ld.lld beside it",
};

/// Keeps built kernels.
pub const KERNEL_CACHE: Variable = Variable {
    name: "PLD_KERNEL_CACHE",
    default: "XDG_CACHE_HOME/pld, or HOME/.cache/pld",
    meaning: "directory of built kernels",
};

/// Names a UCX.
pub const UCX: Variable = Variable {
    name: "PLD_UCX",
    default: "what the dynamic linker finds",
    meaning: "directory of OpenUCX's libraries, libucp.so.0 and others",
};

/// All of them.
pub const VARIABLES: &[Variable] =
    &[RANK, WORLD_SIZE, JOB, DIR, HOST, ADDRESS, SECRET, SECRET_FILE, CHAOS, TRACE, CCEC, KERNEL_CACHE, UCX];
