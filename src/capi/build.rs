//! One builder call: operands are resolved, mistakes noted, and the result becomes a handle.

use std::fmt::Display;

use crate::error::{Error, ErrorKind};
use crate::ir::builder::{BAD_ARGUMENT, BAD_SHAPE, INVALID_HANDLE, MAX_RANK};
use crate::ir::extent::Shape;
use crate::ir::op;
use crate::ir::{Array, Buffer, Builder, DType, Domain, Entry, Extent, Scalar, ScalarType, Task, Tensor, Tile, Var};

use super::callback::Functions;
use super::control::{pld_array_t, pld_var_t};
use super::dim::{Dim, pld_dim_t};
use super::domain::pld_domain_t;
use super::dtype::{dtype, pld_dtype_t};
use super::entry::pld_entry_t;
use super::guard;
use super::handle::{CAPACITY, MISTAKEN, Tag, Unusable};
use super::host::pld_buffer_t;
use super::pointer::{Dims, Scalars, Text};
use super::program::{State, invalid_state, pld_program_t};
use super::reserve;
use super::scalar::pld_scalar_t;
use super::task::pld_task_t;
use super::tensor::pld_tensor_t;
use super::tile::pld_tile_t;

/// Runs a builder call, which returns nothing if one of its operands is unusable: then its handle is marked.
pub(super) fn build<R: Returned>(
    p: Option<&mut pld_program_t>,
    call: impl FnOnce(&mut Call) -> Option<R>,
) -> R::Handle {
    let Some(p) = p else {
        guard::fail(Error::invalid("the program is NULL"));
        return R::MISTAKEN;
    };
    let (tag, functions) = (p.tag, &mut p.functions);
    let result = guard::caught(|| match &mut p.state {
        State::Building(builder) => {
            reserve::ensure(0)?;
            let mut call_state = Call { builder, functions, tag };
            let returned = call(&mut call_state);
            Ok(returned.and_then(|r| call_state.handle(r)).unwrap_or(R::MISTAKEN))
        }
        State::Finished(_) => {
            let late = invalid_state("a builder call came after pld_program_finish");
            p.state = State::Refused(late.clone());
            Err(late)
        }
        State::Refused(error) => Err(error.clone()),
    });
    result.unwrap_or_else(|error| {
        if matches!(error.kind, ErrorKind::Internal | ErrorKind::NoMemory) {
            p.state = State::Refused(error.clone());
        }
        guard::fail(error);
        R::MISTAKEN
    })
}

/// What a builder call returns.
pub(super) trait Returned {
    /// The type that C sees.
    type Handle: Copy;
    /// What a mistake returns.
    const MISTAKEN: Self::Handle;
    /// The handle; none if the program has too many values of this kind.
    fn handle(self, tag: Tag) -> Option<Self::Handle>;
}

/// A handle that is an operand of a call.
pub(super) trait Handle: Copy {
    /// What it names.
    type Entity;
    /// What the header calls it.
    const NOUN: &'static str;
    /// The entity.
    fn resolve(self, call: &mut Call) -> Result<Self::Entity, Unusable>;
}

/// A builder call under way.
pub(super) struct Call<'a> {
    pub(super) builder: &'a mut Builder,
    pub(super) functions: &'a mut Functions,
    tag: Tag,
}

impl Call<'_> {
    fn handle<R: Returned>(&mut self, returned: R) -> Option<R::Handle> {
        let handle = returned.handle(self.tag);
        if handle.is_none() {
            let message = format!("the program has more than {CAPACITY} values of one kind");
            self.builder.mistake(BAD_ARGUMENT, message, "");
        }
        handle
    }

    /// What an operand names; a mistake if it names nothing.
    pub(super) fn get<H: Handle>(&mut self, handle: H, what: &str) -> Option<H::Entity> {
        let noun = H::NOUN;
        match handle.resolve(self) {
            Ok(entity) => Some(entity),
            Err(Unusable::Mistaken) => None,
            Err(Unusable::Unset) => {
                let hint = "it was never set: handles come from the calls that make values";
                self.builder.mistake(INVALID_HANDLE, format!("{what} is no {noun}: the handle is zero"), hint);
                None
            }
            Err(Unusable::Foreign) => {
                self.builder.mistake(INVALID_HANDLE, format!("{what} is no {noun} of this program"), "");
                None
            }
        }
    }

    /// An operand whose absence must not keep a block from being opened.
    pub(super) fn get_or_zero(&mut self, scalar: pld_scalar_t, what: &str) -> Scalar {
        self.get(scalar, what).unwrap_or_else(|| self.builder.int(0))
    }

    /// A required name. NULL becomes the empty name, which the builder refuses.
    pub(super) fn name<'t>(&mut self, text: Text) -> &'t str {
        self.optional_name(text).unwrap_or("")
    }

    /// A name that may be NULL.
    pub(super) fn optional_name<'t>(&mut self, text: Text) -> Option<&'t str> {
        text.get().map(|name| {
            // What is not UTF-8 is no name either.
            name.to_str().unwrap_or("")
        })
    }

    /// The value of an enum; a mistake if it is none.
    pub(super) fn known<T>(&mut self, value: Option<T>, what: &str, raw: impl Display) -> Option<T> {
        if value.is_none() {
            self.builder.mistake(BAD_ARGUMENT, format!("{what} {raw} is unknown"), "");
        }
        value
    }

    /// An element type.
    pub(super) fn dtype(&mut self, raw: pld_dtype_t) -> Option<DType> {
        self.known(dtype(raw), "dtype", raw)
    }

    /// The type of a scalar.
    pub(super) fn scalar_type(&mut self, raw: pld_dtype_t) -> Option<ScalarType> {
        let dtype = self.dtype(raw)?;
        let scalar = dtype.scalar().filter(|s| s.dtype() == dtype);
        if scalar.is_none() {
            let message = format!("{dtype} is not a type of scalars");
            self.builder.mistake(BAD_ARGUMENT, message, "scalars are i32, i64, f32 or bool");
        }
        scalar
    }

    fn list<'t, T>(&mut self, list: Option<&'t [T]>, count: usize, what: &str) -> Option<&'t [T]> {
        if count > MAX_RANK {
            let hint = format!("at most {MAX_RANK} dimensions are possible");
            self.builder.mistake(BAD_SHAPE, format!("{what} has {count} dimensions"), hint);
            return None;
        }
        if list.is_none() {
            self.builder.mistake(BAD_ARGUMENT, format!("{what} is NULL, but its count is {count}"), "");
        }
        list
    }

    /// Offsets.
    pub(super) fn offsets(&mut self, list: Scalars, count: usize) -> Option<op::Dims> {
        let offsets = self.list(list.get(count), count, "the list of offsets")?;
        self.scalars(offsets, "an offset")
    }

    /// Scalars, one by one.
    pub(super) fn scalars(&mut self, list: &[pld_scalar_t], what: &str) -> Option<op::Dims> {
        list.iter().map(|&s| self.get(s, what)).collect()
    }

    /// The extents of a tensor, window or tile.
    pub(super) fn shape(&mut self, list: Dims, count: usize) -> Option<Shape> {
        let dims = self.list(list.get(count), count, "the shape")?;
        dims.iter().map(|&d| self.extent(d)).collect()
    }

    /// The extents of a transfer.
    pub(super) fn transfer_shape(&mut self, dims: &[pld_dim_t]) -> Option<op::Dims> {
        dims.iter().map(|&d| self.dim(d)).collect()
    }

    /// A size that is constant during a launch.
    pub(super) fn extent(&mut self, dim: pld_dim_t) -> Option<Extent> {
        let scalar = self.dim(dim)?;
        self.builder.extent(scalar)
    }

    /// A dimension as a value.
    pub(super) fn dim(&mut self, dim: pld_dim_t) -> Option<Scalar> {
        let known = match Dim::decode(dim) {
            Dim::Int(value) => return Some(self.builder.int(value)),
            Dim::World => return Some(self.builder.world()),
            Dim::Value(id) => self.tag.entity(id, self.builder.program().scalars.len()),
            Dim::Garbage => Err(Unusable::Foreign),
        };
        match known {
            Ok(scalar) => Some(scalar),
            Err(Unusable::Mistaken) => None,
            Err(_) => {
                let hint = "a dimension is 0 or more, PLD_WORLD, or comes from pld_dim, pld_dim_const or pld_dim_of";
                self.builder.mistake(INVALID_HANDLE, format!("{dim} is not a dimension of this program"), hint);
                None
            }
        }
    }
}

impl Returned for () {
    type Handle = ();
    const MISTAKEN: () = ();
    fn handle(self, _: Tag) -> Option<()> {
        Some(())
    }
}

impl Returned for Scalar {
    type Handle = pld_scalar_t;
    const MISTAKEN: pld_scalar_t = pld_scalar_t::value(MISTAKEN);
    fn handle(self, tag: Tag) -> Option<pld_scalar_t> {
        tag.id(self).map(pld_scalar_t::value)
    }
}

impl Handle for pld_scalar_t {
    type Entity = Scalar;
    const NOUN: &'static str = "scalar";
    fn resolve(self, call: &mut Call) -> Result<Scalar, Unusable> {
        match self.immediate() {
            Some(value) => Ok(call.builder.int(value)),
            None => call.tag.entity(self.id, call.builder.program().scalars.len()),
        }
    }
}

/// A scalar that is used as a dimension.
pub(super) struct AsDim(pub(super) Scalar);

impl Returned for AsDim {
    type Handle = pld_dim_t;
    const MISTAKEN: pld_dim_t = Dim::Value(MISTAKEN).encode();
    fn handle(self, tag: Tag) -> Option<pld_dim_t> {
        tag.id(self.0).map(|id| Dim::Value(id).encode())
    }
}

macro_rules! handles {
    ($($handle:ident names $entity:ident in $map:ident, $noun:literal;)*) => {$(
        impl Returned for $entity {
            type Handle = $handle;
            const MISTAKEN: $handle = $handle { id: MISTAKEN };
            fn handle(self, tag: Tag) -> Option<$handle> {
                tag.id(self).map(|id| $handle { id })
            }
        }

        impl Handle for $handle {
            type Entity = $entity;
            const NOUN: &'static str = $noun;
            fn resolve(self, call: &mut Call) -> Result<$entity, Unusable> {
                call.tag.entity(self.id, call.builder.program().$map.len())
            }
        }
    )*};
}

handles! {
    pld_tensor_t names Tensor in tensors, "tensor";
    pld_tile_t names Tile in tiles, "tile";
    pld_var_t names Var in vars, "variable";
    pld_array_t names Array in arrays, "local array";
    pld_buffer_t names Buffer in buffers, "window buffer";
    pld_domain_t names Domain in domains, "domain";
    pld_entry_t names Entry in entries, "entry";
    pld_task_t names Task in tasks, "task";
}
