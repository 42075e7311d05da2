//! Which ranks of a domain are near each other: those of one host.

use super::{Call, Target, channels};
use crate::ir::Program;
use crate::verify::domains::Domains;

/// Where the ranks of a call run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// On one host.
    OneHost,
    /// On several, equally many on each, side by side.
    Levels(Levels),
    /// On several, in some other way.
    Mixed,
}

impl Spread {
    pub(super) fn levels(self) -> Option<Levels> {
        match self {
            Spread::Levels(levels) => Some(levels),
            _ => None,
        }
    }
}

/// Hosts with equally many ranks: rank `r` of the domain is at position `r % width` of host `r / width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) hosts: i64,
    /// Ranks of a host.
    pub(super) width: i64,
}

/// Where the ranks of each call run.
///
/// Code is made once for all ranks that an entry is dispatched to. If that are several domains that differ in where
/// their ranks run, no call of the program has levels: calls of other entries on the same channel could not meet them.
pub(super) fn spreads(program: &Program, calls: &[Call], target: &Target) -> Vec<Spread> {
    if target.is_one_host() {
        return vec![Spread::OneHost; calls.len()];
    }
    let domains = Domains::new(program, Some(target.nranks));
    let of_calls: Vec<Vec<Spread>> = calls.iter().map(|call| of_dispatches(program, &domains, call, target)).collect();
    let differ = of_calls.iter().any(|spreads| spreads.windows(2).any(|pair| pair[0] != pair[1]));
    let of_call = |spreads: &Vec<Spread>| match spreads[..] {
        [first, ..] if !differ => first,
        _ if spreads.iter().all(|&spread| spread == Spread::OneHost) => Spread::OneHost,
        _ => Spread::Mixed,
    };
    of_calls.iter().map(of_call).collect()
}

fn of_dispatches(program: &Program, domains: &Domains, call: &Call, target: &Target) -> Vec<Spread> {
    let key = channels::key(program, call);
    let of_dispatch = |dispatch| {
        let domain = channels::argument(program, dispatch, key).and_then(|buffer| domains.of(buffer));
        let hosts: Vec<u32> = match domain {
            Some(domain) => domains.ranks[domain].iter().map(|&rank| target.hosts[rank as usize]).collect(),
            None => target.hosts.clone(),
        };
        spread(&hosts)
    };
    channels::dispatches(program, call.entry).into_iter().map(of_dispatch).collect()
}

/// Of ranks on these hosts.
fn spread(hosts: &[u32]) -> Spread {
    let groups: Vec<&[u32]> = hosts.chunk_by(|a, b| a == b).collect();
    let mut different: Vec<u32> = groups.iter().map(|group| group[0]).collect();
    different.sort_unstable();
    different.dedup();
    let even = groups.windows(2).all(|pair| pair[0].len() == pair[1].len());
    match groups[..] {
        [] | [_] => Spread::OneHost,
        [first, ..] if even && different.len() == groups.len() => {
            Spread::Levels(Levels { hosts: groups.len() as i64, width: first.len() as i64 })
        }
        _ => Spread::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_of_hosts_with_equally_many_ranks_side_by_side() {
        let levels = |hosts, width| Spread::Levels(Levels { hosts, width });
        let cases: &[(&[u32], Spread)] = &[
            (&[], Spread::OneHost),
            (&[3, 3, 3], Spread::OneHost),
            (&[0, 0, 1, 1], levels(2, 2)),
            (&[1, 1, 0, 0, 2, 2], levels(3, 2)),
            (&[0, 1, 2], levels(3, 1)),
            (&[0, 0, 1], Spread::Mixed),
            (&[0, 1, 0, 1], Spread::Mixed),
            (&[0, 0, 1, 1, 0, 0], Spread::Mixed),
        ];
        for &(hosts, expected) in cases {
            assert_eq!(spread(hosts), expected, "{hosts:?}");
        }
    }
}
