//! The host driver.

use smallvec::smallvec;

use super::{BAD_NAME, Builder, MISPLACED, Open};
use crate::ir::entity::{Buffer, Domain, Entry, Extent, Scalar, Tensor};
use crate::ir::extent::Shape;
use crate::ir::op::{OpKind, Operand};
use crate::ir::program::*;
use crate::ir::types::{DType, Direction, ScalarType};

impl Builder {
    /// Begins the host driver, where the first of its calls does not: for a driver without parameters.
    pub fn host(&mut self) {
        self.host_mut();
    }

    pub(super) fn host_mut(&mut self) -> &mut Host {
        let Program { host, blocks, .. } = &mut self.program;
        let loc = self.loc;
        host.get_or_insert_with(|| Host { params: Vec::new(), body: blocks.push(Vec::new()), loc })
    }

    fn host_param(&mut self, name: &str) -> Option<u32> {
        self.check_name("parameter", name);
        if let Some(&(open, _)) = self.open.last() {
            let message = format!("host parameter {name:?} stands inside a {}", open.name());
            self.mistake(MISPLACED, message, "host parameters come after the entries, outside every block");
            return None;
        }
        let host = self.host_mut();
        let (count, body) = (host.params.len() as u32, host.body);
        if !self.program.blocks[body].is_empty() {
            let message = format!("host parameter {name:?} comes after the first op of the host driver");
            self.mistake(MISPLACED, message, "declare parameters first");
            return None;
        }
        Some(count)
    }

    /// A tensor parameter of the host driver.
    pub fn host_tensor(&mut self, name: &str, dtype: DType, shape: Shape, direction: Direction) -> Option<Tensor> {
        let index = self.host_param(name)?;
        let tensor = self.tensor(Some(name), dtype, shape, TensorDef::HostParam(index, direction));
        self.host_mut().params.push(Param::Tensor(tensor));
        Some(tensor)
    }

    /// A scalar parameter of the host driver.
    pub fn host_scalar(&mut self, name: &str, ty: ScalarType) -> Option<Scalar> {
        let index = self.host_param(name)?;
        let scalar = self.scalar(ty, ScalarDef::HostParam(index));
        self.program.scalars[scalar].name = Some(name.into());
        self.host_mut().params.push(Param::Scalar(scalar));
        Some(scalar)
    }

    /// Names the ranks of a comm domain.
    pub fn domain(&mut self, name: &str, ranks: DomainRanks) -> Domain {
        self.check_name("domain", name);
        if !self.domain_names.insert(name.into()) {
            self.mistake(BAD_NAME, format!("domain {name:?} is declared twice"), "");
        }
        let domain = self.program.domains.push(DomainData { name: name.into(), ranks, loc: self.loc });
        self.push(OpKind::Domain { domain });
        domain
    }

    /// Reserves a window of a shape.
    pub fn alloc_window(&mut self, name: &str, dtype: DType, shape: Shape) -> Buffer {
        self.alloc_window_in(None, name, BufferSize::Shape(dtype, shape))
    }

    /// Reserves a window of a number of bytes.
    pub fn alloc_window_bytes(&mut self, name: &str, bytes: Extent) -> Buffer {
        self.alloc_window_in(None, name, BufferSize::Bytes(bytes))
    }

    /// Reserves a window for the ranks of a domain; without one, for those that its views are dispatched to.
    pub fn alloc_window_in(&mut self, domain: Option<Domain>, name: &str, size: BufferSize) -> Buffer {
        if let BufferSize::Shape(_, shape) = &size {
            self.check_rank("a window", shape.len());
        }
        self.check_name("window", name);
        if !self.buffer_names.insert(name.into()) {
            self.mistake(BAD_NAME, format!("window buffer {name:?} is allocated twice"), "");
        }
        let buffer = self.program.buffers.push(BufferData { name: name.into(), size, domain, loc: self.loc });
        self.push(OpKind::AllocWindow { buffer });
        buffer
    }

    /// A typed view of a window buffer.
    pub fn window(&mut self, buffer: Buffer, dtype: DType, shape: Shape) -> Tensor {
        let dst = self.tensor(None, dtype, shape, TensorDef::View(buffer));
        self.push(OpKind::Window { dst, buffer });
        dst
    }

    /// Begins `ranks index in first..end`.
    pub fn ranks_begin(&mut self, first: Scalar, end: Scalar) -> Scalar {
        self.loop_begin(ScalarType::I32, |index, body| OpKind::Ranks { index, first, end, body }, Open::Ranks)
    }

    /// Ends a `ranks` loop.
    pub fn ranks_end(&mut self) {
        self.close("ranks", |o| matches!(o, Open::Ranks(_)));
    }

    /// One rank's part of a host tensor, without the leading axis.
    pub fn slice_rank(&mut self, src: Tensor, rank: Scalar) -> Tensor {
        let TensorData { dtype, shape, .. } = &self.program.tensors[src];
        let (dtype, mut rest) = (*dtype, Shape::from_slice(shape.get(1..).unwrap_or_default()));
        if rest.is_empty() {
            rest = smallvec![self.program.extents.int(1)];
        }
        let dst = self.tensor(None, dtype, rest, TensorDef::HostSlice(src, rank));
        self.push(OpKind::SliceRank { dst, src, rank });
        dst
    }

    /// Runs an entry on a rank. A view without a name takes that of the parameter it is passed to.
    pub fn dispatch(&mut self, entry: Entry, device: Scalar, args: Vec<Operand>) {
        let Program { entries, tensors, .. } = &mut self.program;
        for (arg, param) in args.iter().zip(&entries[entry].params) {
            if let (&Operand::Tensor(tensor), &Param::Tensor(param)) = (arg, param)
                && matches!(tensors[tensor].def, TensorDef::View(_))
                && tensors[tensor].name.is_none()
            {
                tensors[tensor].name = tensors[param].name.clone();
            }
        }
        self.push(OpKind::Dispatch { entry, args, device });
    }
}
