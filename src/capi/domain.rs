//! Comm domains: sets of ranks that share windows.
//!
//! Without one, the ranks that share a window buffer follow from the dispatches that receive its views.

use crate::ir::program::DomainRanks;

use super::build::build;
use super::pointer::{Scalars, Text};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;

/// A comm domain: ranks that share windows, and number each other 0, 1, and so on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_domain_t {
    /// 0 is no domain.
    pub id: u32,
}

/// Names the ranks of a comm domain, one by one. A rank's number in the domain, as peers and `pld_rank` use it, is its
/// place in the list. Ranks are made of numbers, the world size and constants; the list may be NULL if `nranks` is 0.
///
/// Every rank of the world makes the same call, member or not: the host driver is one program for all of them.
/// `pld_program_finish`, or `pld_compile` once the size of the world is known, refuses an empty domain, a rank that is
/// named twice or does not exist, a dispatch of one of the domain's windows to another rank, and a member without one.
#[unsafe(no_mangle)]
pub extern "C" fn pld_domain_create(
    p: Option<&mut pld_program_t>,
    name: Text,
    ranks: Scalars,
    nranks: usize,
) -> pld_domain_t {
    build(p, |c| {
        let name = c.name(name);
        let ranks = c.known(ranks.get(nranks), "a NULL list of ranks with count", nranks)?;
        let mut extents = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            let rank = c.get(rank, "a rank")?;
            extents.push(c.builder.extent(rank)?);
        }
        Some(c.builder.domain(name, DomainRanks::List(extents)))
    })
}

/// Names the ranks of a comm domain: from `first` up to, but without, `end`, numbered from 0. As `pld_domain_create`
/// otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn pld_domain_range(
    p: Option<&mut pld_program_t>,
    name: Text,
    first: pld_scalar_t,
    end: pld_scalar_t,
) -> pld_domain_t {
    build(p, |c| {
        let (name, first, end) = (c.name(name), c.get(first, "first")?, c.get(end, "end")?);
        let (first, end) = (c.builder.extent(first)?, c.builder.extent(end)?);
        Some(c.builder.domain(name, DomainRanks::Range(first, end)))
    })
}
