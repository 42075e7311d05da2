//! What is between the ranks of a row.

use std::process::Command;

use pld_test_ranks::{Hosts, Spread, why_no_namespaces};

/// What is between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// Windows: all run on one host.
    Windows,
    /// The loopback: hosts are only pretended, one for each rank.
    Loopback,
    /// Network namespaces with so many ranks each, and links between them.
    Network {
        /// Ranks of a namespace.
        ranks: u32,
    },
}

impl Link {
    fn spread(self) -> Spread {
        match self {
            Link::Windows => Spread::Together,
            Link::Loopback => Spread::Apart,
            Link::Network { ranks } => Spread::Namespaces { ranks },
        }
    }

    /// There can be such links here.
    pub fn available(self) -> bool {
        !matches!(self, Link::Network { .. }) || why_no_namespaces().is_none()
    }

    /// The hosts of `ranks`.
    pub fn hosts(self, ranks: u32) -> Result<Hosts, String> {
        Hosts::new(self.spread(), ranks)
    }

    /// Lets UCX use this link in `command`, and nothing else.
    pub fn choose(self, command: &mut Command) {
        if self != Link::Windows {
            command.env("UCX_TLS", "tcp,self");
        }
    }
}
