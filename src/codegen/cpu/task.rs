//! The code of a task: a function of the values that it uses from outside, and of the index of its block.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::{BinaryOp, CallbackArg, DType, Op, OpKind, Predicate, Scalar, ScalarType, Tensor};

use super::abi::{Exit, View};
use super::code::FunctionCode;
use super::function::{Function, PLAIN};
use super::size::Size;
use crate::codegen::captures::Capture;

impl Function<'_, '_> {
    /// The whole function of a task: the parameters are its arguments in memory, and the index of the block.
    pub fn task_body(&mut self, op: Op, captures: &[Capture]) -> Result<()> {
        let (args, block) = (self.params()[0], self.params()[1]);
        for (index, &capture) in captures.iter().enumerate() {
            let ty = self.unit.capture_type(capture);
            let value = self.constant_load(ty, args, 8 * index as i64);
            self.bind_capture(capture, value);
        }
        self.mark_place(op);
        self.stop();
        self.transfers = self.unit.touches_far(op);
        let kind = &self.program().ops[op].kind;
        if let Some(predicate) = kind.task().and_then(|(_, options)| options.predicate.as_ref()) {
            self.retire_unless(predicate);
        }
        self.report_begin(block);
        match kind {
            OpKind::Task { grid, body, .. } => {
                if let Some(grid) = grid {
                    let index = self.b.ins().ireduce(types::I32, block);
                    self.scalars.insert(grid.index, index);
                }
                self.block(*body)?;
            }
            OpKind::Extern { task, blocks, args, .. } => {
                let name = self.program().tasks[*task].name.clone();
                let blocks = blocks.map_or(Size::Const(1), |blocks| self.size(blocks));
                self.callback(name, args, block, blocks);
            }
            _ => unreachable!("{} is no task", kind.name()),
        }
        self.settle();
        self.report_end(op);
        self.stop();
        Ok(())
    }

    /// Ends the task here if the comparison does not hold.
    fn retire_unless(&mut self, predicate: &Predicate) {
        let dtype = self.program().tensors[predicate.tensor].dtype;
        let element = self.integer_element(predicate.tensor, &predicate.at, dtype);
        let condition = match predicate.cmp {
            BinaryOp::Eq => IntCC::Equal,
            BinaryOp::Ne => IntCC::NotEqual,
            BinaryOp::Lt => IntCC::SignedLessThan,
            BinaryOp::Le => IntCC::SignedLessThanOrEqual,
            BinaryOp::Gt => IntCC::SignedGreaterThan,
            _ => IntCC::SignedGreaterThanOrEqual,
        };
        let value = self.b.ins().iconst(types::I64, predicate.value);
        let holds = self.b.ins().icmp(condition, element, value);
        let (on, retired) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(holds, on, &[], retired, &[]);
        self.b.switch_to_block(retired);
        self.exit(Exit::Done);
        self.b.switch_to_block(on);
    }

    /// An element of an integer or bool tensor, as 64 bits.
    fn integer_element(&mut self, tensor: Tensor, at: &[Scalar], dtype: DType) -> Value {
        let address = self.element(tensor, None, at);
        match dtype {
            DType::I8 => self.b.ins().sload8(types::I64, PLAIN, address, 0),
            DType::I16 => self.b.ins().sload16(types::I64, PLAIN, address, 0),
            DType::U16 => self.b.ins().uload16(types::I64, PLAIN, address, 0),
            DType::I32 => self.b.ins().sload32(PLAIN, address, 0),
            DType::U32 => self.b.ins().uload32(PLAIN, address, 0),
            DType::I64 | DType::U64 => self.b.ins().load(types::I64, PLAIN, address, 0),
            _ => self.b.ins().uload8(types::I64, PLAIN, address, 0),
        }
    }

    /// Calls the engine's function with its arguments laid out on the stack.
    pub fn callback(&mut self, name: String, args: &[CallbackArg], block: Value, blocks: Size) {
        let (mut tensors, mut scalars) = (SmallVec::<[Tensor; 8]>::new(), SmallVec::<[Scalar; 8]>::new());
        for arg in args {
            match *arg {
                CallbackArg::Tensor(tensor, _) => tensors.push(tensor),
                CallbackArg::Scalar(scalar) => scalars.push(scalar),
            }
        }
        let views = self.stack_slot((tensors.len() * size_of::<View>()) as i64);
        for (index, &tensor) in tensors.iter().enumerate() {
            let at = (index * size_of::<View>()) as i32;
            let (mut shape, strides) = (self.shape(tensor), self.strides(tensor));
            if self.unit.has_one_part(tensor) {
                shape[0] = Size::Const(1);
            }
            let (dtype, ndims) = (self.program().tensors[tensor].dtype, shape.len());
            let zeros: SmallVec<[Size; 4]> = SmallVec::from_elem(Size::Const(0), ndims);
            let data = self.address(tensor, None, &zeros);
            let table = self.stack_slot(16 * ndims as i64);
            for (dim, (extent, stride)) in shape.into_iter().zip(strides).enumerate() {
                let extent = self.size_value(extent);
                self.b.ins().store(PLAIN, extent, table, 8 * dim as i32);
                let stride = self.elements(stride, dtype);
                self.b.ins().store(PLAIN, stride, table, 8 * (ndims + dim) as i32);
            }
            let type_and_rank = dtype as i64 | (ndims as i64) << 32;
            let type_and_rank = self.b.ins().iconst(types::I64, type_and_rank);
            let strides = self.b.ins().iadd_imm_s(table, 8 * ndims as i64);
            for (offset, value) in [(0, data), (8, type_and_rank), (16, table), (24, strides)] {
                self.b.ins().store(PLAIN, value, views, at + offset);
            }
        }
        let values = self.stack_slot(8 * scalars.len() as i64);
        for (index, &scalar) in scalars.iter().enumerate() {
            let value = match self.program().scalars[scalar].ty {
                ScalarType::F32 => {
                    let value = self.value(scalar);
                    self.b.ins().fpromote(types::F64, value)
                }
                ScalarType::Bool => {
                    let value = self.value(scalar);
                    self.b.ins().uextend(types::I64, value)
                }
                ScalarType::I32 | ScalarType::I64 => self.value_as(scalar, ScalarType::I64),
            };
            self.b.ins().store(PLAIN, value, values, 8 * index as i32);
        }
        let function = FunctionCode { name, ntensors: tensors.len(), nscalars: scalars.len(), site: self.site() };
        let number = self.unit.function(function);
        let number = self.b.ins().iconst(types::I32, i64::from(number));
        let blocks = self.size_value(blocks);
        let hook = self.unit.hooks.callback as *const u8;
        let args = [self.frame, number, views, values, block, blocks];
        let exit = self.call(hook, Some(types::I32), &args).expect("the hook has a result");
        self.unless(exit, |f| {
            f.b.ins().return_(&[exit]);
        });
    }

    /// A stride in bytes as a number of elements.
    fn elements(&mut self, stride: Size, dtype: DType) -> Value {
        match stride {
            Size::Const(bytes) => self.b.ins().iconst(types::I64, bytes / dtype.size()),
            Size::Value(bytes) => self.b.ins().ushr_imm_u(bytes, i64::from(dtype.size().trailing_zeros())),
        }
    }
}

// A view is laid out by the code above.
const _: () = {
    assert!(size_of::<View>() == 32);
    assert!(std::mem::offset_of!(View, dtype) == 8 && std::mem::offset_of!(View, ndims) == 12);
    assert!(std::mem::offset_of!(View, shape) == 16 && std::mem::offset_of!(View, strides) == 24);
};
