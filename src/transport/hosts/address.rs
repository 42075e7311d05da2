//! Where rank 0 listens: `PLD_ADDRESS`; or, if the launcher says that ranks run on several hosts, torchrun's
//! `MASTER_ADDR` with the port after `MASTER_PORT`, which is torch's own.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::environment::ADDRESS;
use crate::error::{Error, Result};
use crate::transport::launcher::{Assignment, Environment};

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl Address {
    /// The address that the environment names; none if ranks run on one host, as far as it says.
    pub fn read(env: Environment<'_>, assignment: &Assignment) -> Result<Option<Self>> {
        if let Some(address) = Self::own(env)? {
            return Ok(Some(address));
        }
        let Some(elsewhere) = &assignment.elsewhere else { return Ok(None) };
        Self::of_master(env)?.map(Some).ok_or_else(|| {
            Error::invalid(format!("{elsewhere}, so PLD_ADDRESS=HOST:PORT must say where rank 0 listens"))
        })
    }

    /// Where rank 0 may listen if only it has to know.
    pub fn of_rank_0(env: Environment<'_>) -> Result<Option<Self>> {
        let own = Self::own(env)?;
        let master = || Ok(Self::of_master(env)?.map(|address| Self { port: 0, ..address }));
        own.map_or_else(master, |address| Ok(Some(address)))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        let ambiguous = bracketed.is_none() && host.contains(':');
        let port = port.parse().ok()?;
        (!host.is_empty() && !ambiguous).then(|| Self { host: host.to_owned(), port })
    }

    /// It names this host for itself.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// What the name stands for.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        found.map(Iterator::collect).map_err(|e| Error::io(format!("finding host {}", self.host), e))
    }

    fn own(env: Environment<'_>) -> Result<Option<Self>> {
        let Some(value) = env(ADDRESS.name) else { return Ok(None) };
        let address = value.to_str().and_then(Self::parse);
        address.map(Some).ok_or_else(|| Error::invalid(format!("{} is {value:?}, not HOST:PORT", ADDRESS.name)))
    }

    fn of_master(env: Environment<'_>) -> Result<Option<Self>> {
        let (Some(host), Some(port)) = (env("MASTER_ADDR"), env("MASTER_PORT")) else { return Ok(None) };
        let number = port.to_str().and_then(|port| port.trim().parse::<u16>().ok());
        let port = number.ok_or_else(|| Error::invalid(format!("MASTER_PORT is {port:?}, not a port")))?;
        let port = port.checked_add(1).unwrap_or(port - 1);
        Ok(Some(Self { host: host.to_string_lossy().into_owned(), port }))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], elsewhere: Option<&str>) -> Result<Option<String>, String> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let elsewhere = elsewhere.map(str::to_owned);
        let assignment = Assignment { rank: 0, nranks: 2, job: String::new(), by_ancestor: false, elsewhere };
        let address = Address::read(&find, &assignment).map_err(|error| error.message)?;
        Ok(address.map(|address| address.to_string()))
    }

    #[test]
    fn addresses() {
        let parse = |text| Address::parse(text).map(|address| address.to_string());
        for good in ["localhost:1", "10.0.0.1:65535", "[::1]:80", "node-3.cluster:5000"] {
            assert_eq!(parse(good).as_deref(), Some(good));
        }
        for bad in ["", "localhost", "localhost:", ":80", "localhost:65536", "::1:80", "localhost:-1"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn from_the_environment() {
        let torchrun = [("MASTER_ADDR", "node0"), ("MASTER_PORT", "29500")];
        assert_eq!(read(&torchrun, None), Ok(None));
        assert_eq!(read(&torchrun, Some("elsewhere")), Ok(Some("node0:29501".into())));
        assert_eq!(read(&[("MASTER_ADDR", "a"), ("MASTER_PORT", "65535")], Some("")), Ok(Some("a:65534".into())));
        assert_eq!(read(&[("PLD_ADDRESS", "host:7"), torchrun[0], torchrun[1]], Some("")), Ok(Some("host:7".into())));
        assert_eq!(read(&[("PLD_ADDRESS", "host:7")], None), Ok(Some("host:7".into())));
        assert_eq!(read(&[("PLD_ADDRESS", "host")], None), Err("PLD_ADDRESS is \"host\", not HOST:PORT".into()));
        let expected = "Slurm has started ranks on other hosts, so PLD_ADDRESS=HOST:PORT must say where rank 0 listens";
        assert_eq!(read(&[], Some("Slurm has started ranks on other hosts")), Err(expected.into()));
    }
}
