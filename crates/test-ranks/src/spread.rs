//! How the ranks of a job are spread over hosts.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names the spread of every job that says nothing else, so that whole test programs can be run over hosts.
pub(crate) const SPREAD: &str = "PLD_TEST_SPREAD";

/// How the ranks of a job are spread over hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All on one.
    Together,
    /// Two on each. The hosts are only pretended, and their network is the loopback.
    Pairs,
    /// Each on its own, likewise.
    Apart,
    /// So many in each of some network namespaces, between which are links.
    Namespaces {
        /// Ranks of a namespace.
        ranks: u32,
    },
}

impl Spread {
    /// What the environment says, `Together` if nothing.
    pub fn from_environment() -> Self {
        let Ok(name) = std::env::var(SPREAD) else { return Self::Together };
        Self::named(&name).unwrap_or_else(|| panic!("{SPREAD} is {name:?}, not together, pairs, apart or namespaces"))
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "together" => Self::Together,
            "pairs" => Self::Pairs,
            "apart" => Self::Apart,
            "namespaces" => Self::Namespaces { ranks: 2 },
            "namespaces-apart" => Self::Namespaces { ranks: 1 },
            _ => return None,
        })
    }

    /// What the environment has to say.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Together => "together",
            Self::Pairs => "pairs",
            Self::Apart => "apart",
            Self::Namespaces { ranks: 1 } => "namespaces-apart",
            Self::Namespaces { .. } => "namespaces",
        }
    }

    /// The host of a rank.
    pub fn host(self, rank: u32) -> u32 {
        match self {
            Self::Together => 0,
            Self::Pairs => rank / 2,
            Self::Apart => rank,
            Self::Namespaces { ranks } => rank / ranks,
        }
    }

    /// Number of hosts of so many ranks.
    pub fn hosts(self, nranks: u32) -> u32 {
        self.host(nranks - 1) + 1
    }
}

/// A port of this host at which nobody listens, none of those that the system gives to connections.
pub fn free_port(host: &str) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const PORTS: u32 = 10_000;
    let first = std::process::id().wrapping_mul(61).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
    let mut candidates = (0..PORTS).map(|n| 20_000 + (first.wrapping_add(n) % PORTS) as u16);
    candidates.find(|&port| TcpListener::bind((host, port)).is_ok()).expect("one of them is free")
}
