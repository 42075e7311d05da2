//! Executable memory: the instruction set of this host, and functions made for it.

use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, FuncRef, Function, Signature, Type, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, ModuleError};

use crate::error::{Error, ErrorKind, Result};

/// Type of an address. Hosts have 64 bits.
pub const ADDRESS: Type = types::I64;

/// The instruction set of this host with our settings; looked up once, since detection costs more than a small program.
fn host_isa() -> Result<OwnedTargetIsa> {
    static ISA: OnceLock<Result<OwnedTargetIsa>> = OnceLock::new();
    ISA.get_or_init(detect_isa).clone()
}

fn detect_isa() -> Result<OwnedTargetIsa> {
    let unsupported = |cause: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Unsupported, format!("no native code on this CPU: {cause}"))
    };
    let mut flags = settings::builder();
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "speed"),
        ("enable_verifier", verifier),
        ("unwind_info", "false"),
        ("machine_code_cfg_info", "false"),
        // Local arrays may make a frame larger than the guard page.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
    ] {
        flags.set(name, value).map_err(|e| unsupported(&e))?;
    }
    let isa = cranelift_native::builder().map_err(|e| unsupported(&e))?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(|e| unsupported(&e))?;
    if isa.pointer_type() != ADDRESS { Err(unsupported(&"addresses have not 64 bits")) } else { Ok(isa) }
}

/// Functions in the making.
pub struct Jit {
    module: JITModule,
    context: Context,
    code_bytes: usize,
}

impl Jit {
    /// No functions yet.
    pub fn new() -> Result<Self> {
        let module = JITModule::new(JITBuilder::with_isa(host_isa()?, cranelift_module::default_libcall_names()));
        let context = module.make_context();
        Ok(Self { module, context, code_bytes: 0 })
    }

    /// The host's instruction set.
    pub fn isa(&self) -> &dyn cranelift_codegen::isa::TargetIsa {
        self.module.isa()
    }

    /// A C signature.
    pub fn signature(&self, params: &[Type], result: Option<Type>) -> Signature {
        let mut signature = self.module.make_signature();
        signature.params.extend(params.iter().map(|&ty| AbiParam::new(ty)));
        signature.returns.extend(result.map(AbiParam::new));
        signature
    }

    /// Announces a function, to be defined later.
    pub fn declare(&mut self, signature: &Signature) -> Result<FuncId> {
        self.module.declare_anonymous_function(signature).map_err(internal)
    }

    /// Makes a function callable in another one.
    pub fn import(&mut self, callee: FuncId, caller: &mut Function) -> FuncRef {
        let callee = self.module.declare_func_in_func(callee, caller);
        // Nothing promises that two functions lie within reach of a short call.
        caller.dfg.ext_funcs[callee].colocated = false;
        callee
    }

    /// Compiles a function.
    pub fn define(&mut self, id: FuncId, function: Function) -> Result<()> {
        self.context.clear();
        self.context.func = function;
        self.module.define_function(id, &mut self.context).map_err(internal)?;
        self.code_bytes += self.context.compiled_code().map_or(0, |code| code.code_buffer().len());
        Ok(())
    }

    /// Makes the functions executable and read-only.
    pub fn finish(mut self) -> Result<CodeMemory> {
        self.module.finalize_definitions().map_err(internal)?;
        Ok(CodeMemory { module: ManuallyDrop::new(self.module), bytes: self.code_bytes })
    }
}

fn internal(error: ModuleError) -> Error {
    let message = match error {
        ModuleError::Compilation(error) => format!("code generation: {error:?}"),
        error => format!("code generation: {error}"),
    };
    Error::new(ErrorKind::Internal, message)
}

/// Finished machine code; unmapped when dropped.
pub struct CodeMemory {
    module: ManuallyDrop<JITModule>,
    bytes: usize,
}

// SAFETY: the module is not touched between construction and drop; the code itself is immutable.
unsafe impl Send for CodeMemory {}
// SAFETY: as above.
unsafe impl Sync for CodeMemory {}

impl CodeMemory {
    /// Where a function begins.
    pub fn address(&self, function: FuncId) -> *const u8 {
        self.module.get_finalized_function(function)
    }

    /// Bytes of instructions.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        // SAFETY: whoever holds an address into this memory also holds its owner, so nothing runs in it any more.
        unsafe { module.free_memory() };
    }
}
