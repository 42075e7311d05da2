//! Dimensions: the sizes that shapes are made of.

use super::build::{AsDim, build};
use super::pointer::Text;
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;

/// An extent of a tensor, window, tile or transfer, in elements: 0 or more; `PLD_WORLD`; or what `pld_dim`,
/// `pld_dim_const` or `pld_dim_of` returned (negative numbers that mean something in their program only).
pub type pld_dim_t = i64;

/// As an extent: the number of ranks of the world.
pub const PLD_WORLD: pld_dim_t = -1;

/// Most dimensions of a tensor, window, tile or transfer.
pub const PLD_MAX_RANK: usize = 8;

const _: () = assert!(PLD_MAX_RANK == crate::ir::builder::MAX_RANK);

/// What a `pld_dim_t` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dim {
    /// A number.
    Int(i64),
    /// The world size.
    World,
    /// The scalar with this id.
    Value(u32),
    /// Nothing.
    Garbage,
}

impl Dim {
    /// The C form. Values lie at the far end of the negative numbers, where no mistaken size is.
    pub(super) const fn encode(self) -> pld_dim_t {
        match self {
            Dim::Int(value) => value,
            Dim::World => PLD_WORLD,
            Dim::Value(id) => i64::MIN + id as i64,
            Dim::Garbage => i64::MIN,
        }
    }

    /// What the C form says.
    pub(super) fn decode(dim: pld_dim_t) -> Dim {
        match dim {
            0.. => Dim::Int(dim),
            PLD_WORLD => Dim::World,
            _ => u32::try_from(dim.wrapping_sub(i64::MIN)).map_or(Dim::Garbage, Dim::Value),
        }
    }
}

/// A dimension with this name that is bound at launch, from the shapes of the arguments. Not for tiles, local arrays
/// and windows, whose sizes must be known when the program is compiled. Once a name and program.
#[unsafe(no_mangle)]
pub extern "C" fn pld_dim(p: Option<&mut pld_program_t>, name: Text) -> pld_dim_t {
    build(p, |c| {
        let name = c.name(name);
        let extent = c.builder.dim(name);
        Some(AsDim(c.builder.size(extent)))
    })
}

/// A constant with a name, such as `D = 4096`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_dim_const(p: Option<&mut pld_program_t>, name: Text, value: pld_dim_t) -> pld_dim_t {
    build(p, |c| {
        let (name, value) = (c.name(name), c.extent(value)?);
        let extent = c.builder.constant(name, value);
        Some(AsDim(c.builder.size(extent)))
    })
}

/// A scalar as an extent. One made of numbers, the world size and dimensions by `pld_add`, `pld_sub`, `pld_mul`,
/// `pld_div`, `pld_mod`, `pld_min` and `pld_max` may stand in every shape; any other in that of a transfer, where it
/// is evaluated when the transfer runs.
#[unsafe(no_mangle)]
pub extern "C" fn pld_dim_of(p: Option<&mut pld_program_t>, value: pld_scalar_t) -> pld_dim_t {
    build(p, |c| Some(AsDim(c.get(value, "the value")?)))
}

/// An extent as a scalar, of type `i64`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_dim_value(p: Option<&mut pld_program_t>, dim: pld_dim_t) -> pld_scalar_t {
    build(p, |c| c.dim(dim))
}

/// The number of ranks of the world, as a scalar of type `i64`; the same as `pld_dim_value(p, PLD_WORLD)`. Where windows
/// are shared by some of the ranks only, `pld_nranks` counts those.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_size(p: Option<&mut pld_program_t>) -> pld_scalar_t {
    build(p, |c| Some(c.builder.world()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dims_come_back() {
        for dim in [Dim::Int(0), Dim::Int(i64::MAX), Dim::World, Dim::Value(1 << 24), Dim::Value(u32::MAX)] {
            assert_eq!(Dim::decode(dim.encode()), dim);
        }
        assert_eq!(Dim::decode(-2), Dim::Garbage, "a size that went wrong is not a handle");
        assert_eq!(Dim::decode(-1_000_000_000_000), Dim::Garbage);
    }
}
