//! The hosts that the ranks of a job run on.

use std::process::Command;

use crate::network::Network;
use crate::rank::HOST_ADDRESS;
use crate::spread::{Spread, free_port};

/// Hosts, pretended ones or namespaces; and where their ranks meet.
pub struct Hosts {
    spread: Spread,
    network: Option<Network>,
    port: u16,
}

impl Hosts {
    /// The hosts of a world of `nranks`; an error says why there can be none.
    pub fn new(spread: Spread, nranks: u32) -> Result<Self, String> {
        let network = match spread {
            Spread::Namespaces { .. } => Some(Network::new(spread.hosts(nranks))?),
            Spread::Together | Spread::Pairs | Spread::Apart => None,
        };
        Ok(Self { spread, network, port: free_port(LOOPBACK) })
    }

    /// Lets `command`, which is to be a rank, run on its host and find the others.
    pub fn place(&self, rank: u32, command: &mut Command) {
        if self.spread == Spread::Together {
            return;
        }
        let host = self.spread.host(rank);
        match &self.network {
            // All of the machine's memory can be reached from all of them, which is not what is to be tested.
            Some(network) => network.enter(host, command.env("UCX_TLS", "tcp,self")),
            None => _ = command.env("PLD_HOST", format!("host-{host}")),
        }
        command
            .env(HOST_ADDRESS, self.address(host))
            .env("PLD_ADDRESS", format!("{}:{}", self.address(0), self.port))
            .env("PLD_SECRET", format!("the secret of the job at port {}", self.port));
    }

    /// The address of a host.
    pub fn address(&self, host: u32) -> String {
        match self.network {
            Some(_) => Network::address(host),
            None => LOOPBACK.to_owned(),
        }
    }

    /// The port at which ranks meet.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs `body` in a thread that is on a host.
    pub fn inside<T: Send>(&self, host: u32, body: impl FnOnce() -> T + Send) -> T {
        match &self.network {
            Some(network) => network.inside(host, body),
            None => body(),
        }
    }

    /// What joins the hosts, if they are namespaces.
    pub fn network(&self) -> &Network {
        self.network.as_ref().expect("the hosts are namespaces")
    }
}

const LOOPBACK: &str = "127.0.0.1";
