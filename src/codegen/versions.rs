//! Versions of entries: an entry is compiled once for each combination of domains that its windows come with.
//!
//! So the numbers of ranks that its code computes with are constants, and what every dispatch of a version passes is
//! folded into it.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

use crate::error::{Error, ErrorKind, Result};
use crate::ir::extent::Known;
use crate::ir::program::TensorDef;
use crate::ir::{Entry, Op, OpKind, Operand, Program};
use crate::passes::plan_windows::Layout;
use crate::verify::domains::{DomainId, Domains};

use super::arguments::Arguments;

/// A version of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u32);
entity_impl!(Version, "version");

/// What a version consists of.
#[derive(Debug)]
pub struct VersionData {
    /// The entry.
    pub entry: Entry,
    /// For each parameter that is a window, the domain that shares it.
    pub domains: Vec<Option<DomainId>>,
    /// What every dispatch of it passes.
    pub arguments: Arguments,
}

/// All versions of a program's entries.
#[derive(Debug, Default)]
pub struct Versions {
    data: PrimaryMap<Version, VersionData>,
    of: SecondaryMap<Op, PackedOption<Version>>,
}

impl Versions {
    /// Reads the dispatches of the host driver.
    pub fn new(program: &Program, domains: &Domains, layout: &Layout, known: Known) -> Result<Self> {
        let mut versions = Self::default();
        for (op, data) in &program.ops {
            let OpKind::Dispatch { entry, args, .. } = &data.kind else { continue };
            let Some(devices) = domains.devices(op) else { continue };
            if devices.ranks.as_ref().is_some_and(|ranks| ranks.is_empty()) {
                continue;
            }
            let shared = args.iter().map(|&arg| shared_by(program, domains, arg)).collect::<Result<Vec<_>>>()?;
            let same = versions.data.iter().find(|(_, v)| v.entry == *entry && v.domains == shared).map(|(v, _)| v);
            let version = same.unwrap_or_else(|| {
                versions.data.push(VersionData { entry: *entry, domains: shared, arguments: Arguments::default() })
            });
            versions.of[op] = version.into();
            versions.data[version].arguments.add(program, layout, known, op);
        }
        Ok(versions)
    }

    /// The version that a dispatch runs; none if no rank ever runs it.
    pub fn of(&self, dispatch: Op) -> Option<Version> {
        self.of[dispatch].expand()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (Version, &VersionData)> {
        self.data.iter()
    }

    /// A version.
    pub fn get(&self, version: Version) -> &VersionData {
        &self.data[version]
    }
}

/// The domain of an argument that is a window.
fn shared_by(program: &Program, domains: &Domains, arg: Operand) -> Result<Option<DomainId>> {
    let Operand::Tensor(tensor) = arg else { return Ok(None) };
    let TensorDef::View(buffer) = program.tensors[tensor].def else { return Ok(None) };
    let unknown = || {
        let message = format!("it is not known which ranks share {}", program.buffers[buffer].name);
        Error::new(ErrorKind::Verify, message)
    };
    domains.of(buffer).map(Some).ok_or_else(unknown)
}
