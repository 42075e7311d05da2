//! The compilation of one program: what all its functions share.

use std::collections::VecDeque;
use std::rc::Rc;

use cranelift_codegen::ir::{self, Type, UserFuncName, types};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::FuncId;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::calls::calls;
use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::program::{OpData, Param, TensorData, TensorDef};
use crate::ir::{Op, OpKind, Program, Task, Tensor};
use crate::kernels::{Kernels, kernels};
use crate::passes::task_graph::{Node, tasks};
use crate::verify::domains::{DomainId, Domains};
use crate::verify::range::Ranges;

use super::abi::{Exit, Hooks, Run};
use super::code::{Binding, Code, FunctionCode, TaskAccess, TaskCode};
use super::domain::Numbering;
use super::function::{Function, Level};
use super::jit::{ADDRESS, Jit};
use super::plan_tiles::{ScratchPlan, plan_tiles};
use super::scalar::scalar_type;
use crate::codegen::arguments::{Argument, Arguments};
use crate::codegen::captures::{Capture, captures};
use crate::codegen::sites::Sites;
use crate::codegen::versions::{Version, VersionData, Versions};

/// What the function of a task takes besides the frame: its arguments, in memory, and the index of the block.
const TASK_PARAMS: [Type; 2] = [ADDRESS, types::I64];

/// A compilation.
pub struct Compiler<'p> {
    pub program: &'p Program,
    pub binding: &'p Binding<'p>,
    pub hooks: &'p Hooks,
    pub kernels: &'static Kernels,
    pub known: Known<'static>,
    pub domains: Domains,
    /// How each of the domains numbers its ranks.
    pub numberings: PrimaryMap<DomainId, Numbering>,
    pub versions: Versions,
    /// The version that code is being made for; none for the host driver.
    version: Option<Version>,
    pub ranges: Ranges,
    pub scratch: ScratchPlan,
    pub sites: Sites,
    pub jit: Jit,
    tasks: Vec<TaskInMaking>,
    functions: Vec<FunctionCode>,
    entries: SecondaryMap<Version, Option<FuncId>>,
    pending: VecDeque<Pending>,
}

/// A function that is called but not yet defined.
enum Pending {
    Entry { id: FuncId, version: Version },
    Task { id: FuncId, version: Version, op: Op, task: Task, captures: Vec<Capture> },
}

/// A task while functions have no addresses yet.
struct TaskInMaking {
    /// None for a kernel.
    id: Option<FuncId>,
    version: Version,
    node: Node,
    /// It may block.
    waits: bool,
    site: u32,
    nargs: usize,
    /// Number of the root of each access.
    roots: Vec<usize>,
    /// Numbers of the tasks of which all instances come first.
    all_of: Vec<u32>,
}

impl<'p> Compiler<'p> {
    pub fn new(program: &'p Program, binding: &'p Binding<'p>, hooks: &'p Hooks) -> Result<Self> {
        let known = Known { world: Some(i64::from(binding.nranks)), dims: &[] };
        let domains = Domains::new(program, Some(binding.nranks));
        let numberings = domains.ranks.values().map(|ranks| Numbering::new(ranks, binding.nranks));
        Ok(Self {
            program,
            binding,
            hooks,
            kernels: kernels(),
            known,
            numberings: numberings.collect(),
            versions: Versions::new(program, &domains, binding.layout, known)?,
            version: None,
            ranges: Ranges::new(program, &domains, Some(binding.nranks)),
            domains,
            scratch: plan_tiles(program, known)?,
            sites: Sites::new(program),
            jit: Jit::new()?,
            tasks: Vec::new(),
            functions: Vec::new(),
            entries: SecondaryMap::new(),
            pending: VecDeque::new(),
        })
    }

    /// Compiles the driver, then all that it calls.
    pub fn compile(mut self) -> Result<Code> {
        let Some(host) = &self.program.host else {
            return Err(Error::new(ErrorKind::Verify, "the program has no host driver"));
        };
        let driver = self.declare(&[])?;
        let mut context = FunctionBuilderContext::new();
        self.define(&mut context, driver, &[], Level::Host, |f, _| f.host(host))?;
        let is_host_task = |op: &OpData| matches!(op.kind, OpKind::HostTask { .. });
        let host_tasks = match self.program.ops.values().any(is_host_task) {
            true => Some(self.declare(&[])?),
            false => None,
        };
        if let Some(id) = host_tasks {
            self.define(&mut context, id, &[], Level::HostTasks, |f, _| f.host(host))?;
        }
        while let Some(pending) = self.pending.pop_front() {
            match pending {
                Pending::Entry { id, version } => self.define_entry(&mut context, id, version)?,
                Pending::Task { id, version, op, task, captures } => {
                    self.version = Some(version);
                    self.define(&mut context, id, &TASK_PARAMS, Level::Task(task), |f, _| f.task_body(op, &captures))?;
                }
            }
        }
        let memory = self.jit.finish()?;
        // SAFETY: the function was declared with the signature of `Driver` and is finished.
        let as_driver = |id| unsafe { std::mem::transmute::<*const u8, super::abi::Driver>(memory.address(id)) };
        let text = Text::new(self.program);
        let task = |task: TaskInMaking| TaskCode {
            name: self.program.tasks[task.node.task].name.clone(),
            site: task.site,
            origin: (task.version, task.node.op),
            // SAFETY: as above, with the signature of `Run`.
            run: task.id.map(|id| unsafe { std::mem::transmute::<*const u8, Run>(memory.address(id)) }),
            nargs: task.nargs,
            accesses: task
                .node
                .accesses
                .iter()
                .zip(task.roots)
                .map(|(access, root)| TaskAccess {
                    root,
                    name: access.root.name(&text),
                    mode: access.mode,
                    ndims: access.part.len(),
                })
                .collect(),
            ndeps: task.node.latest().count(),
            all_of: task.all_of,
            waits: task.waits,
            defers: task.node.defers,
        };
        Ok(Code {
            driver: as_driver(driver),
            host_tasks: host_tasks.map(as_driver),
            scratch_bytes: self.scratch.bytes as usize,
            sites: self.sites.finish(self.program, self.known),
            tasks: self.tasks.into_iter().map(task).collect(),
            functions: self.functions,
            calls: calls(self.program, self.known),
            code_bytes: memory.bytes(),
            _numberings: self.numberings,
            _memory: memory,
        })
    }

    /// The function of a version of an entry; it takes the parameters that [`Self::passed_params`] lists.
    pub fn entry(&mut self, version: Version) -> Result<FuncId> {
        if let Some(id) = self.entries[version] {
            return Ok(id);
        }
        let types: Vec<Type> = self.passed_params(version).iter().map(|&(_, p)| self.param_type(p)).collect();
        let id = self.declare(&types)?;
        self.entries[version] = Some(id);
        self.pending.push_back(Pending::Entry { id, version });
        Ok(id)
    }

    /// The parameters of a version of an entry that are not known when compiling, with their indices.
    pub fn passed_params(&self, version: Version) -> Vec<(usize, Param)> {
        let VersionData { entry, arguments, .. } = self.versions.get(version);
        let params = self.program.entries[*entry].params.iter().copied().enumerate();
        let argument = |param: Param| match param {
            Param::Tensor(tensor) => arguments.tensor(self.program, tensor),
            Param::Scalar(scalar) => arguments.scalar(self.program, scalar),
        };
        params.filter(|&(_, param)| argument(param) == Argument::Unknown).collect()
    }

    /// What is known of the parameters of the version at hand.
    pub fn arguments(&self) -> &Arguments {
        self.version.map_or(Arguments::NONE, |version| &self.versions.get(version).arguments)
    }

    /// For each parameter of the version at hand that is a window, the domain that shares it.
    pub fn domains_of_params(&self) -> &[Option<DomainId>] {
        self.version.map_or(&[], |version| &self.versions.get(version).domains)
    }

    fn param_type(&self, param: Param) -> Type {
        match param {
            Param::Tensor(_) => ADDRESS,
            Param::Scalar(scalar) => scalar_type(self.program.scalars[scalar].ty),
        }
    }

    fn define_entry(&mut self, context: &mut FunctionBuilderContext, id: FuncId, version: Version) -> Result<()> {
        self.version = Some(version);
        let params = self.passed_params(version);
        let types: Vec<Type> = params.iter().map(|&(_, p)| self.param_type(p)).collect();
        let entry = self.versions.get(version).entry;
        let body = self.program.entries[entry].body;
        let tasks = Rc::new(tasks(self.program, entry, self.known));
        self.define(context, id, &types, Level::Entry, |f, values| {
            // A kernel gets the value of a variable, and changes none.
            for node in tasks.nodes.iter().filter(|_| !f.unit.binding.offloaded) {
                let captures = captures(f.program(), f.unit.arguments(), node.op);
                f.shared.extend(captures.into_iter().filter(|c| matches!(c, Capture::Var(_) | Capture::Array(_))));
            }
            f.tasks = tasks.clone();
            f.make_handles();
            for (&(_, param), &value) in params.iter().zip(values) {
                match param {
                    Param::Tensor(tensor) => f.bind_capture(Capture::Tensor(tensor), value),
                    Param::Scalar(scalar) => f.bind_capture(Capture::Scalar(scalar), value),
                }
            }
            f.block(body)?;
            if !tasks.nodes.is_empty() {
                f.drain();
            }
            Ok(())
        })
    }

    /// The function of a task that uses `captures`, none for a kernel, and its number.
    pub fn task(
        &mut self,
        node: &Node,
        captures: Vec<Capture>,
        roots: Vec<usize>,
        all_of: Vec<u32>,
    ) -> Result<(Option<FuncId>, u32)> {
        let version = self.version.expect("tasks are in entries");
        let number = self.tasks.len() as u32;
        let site = self.sites.number(node.op, Some(node.task));
        let nargs = captures.len();
        let is_kernel = self.binding.offloaded && matches!(self.program.ops[node.op].kind, OpKind::Task { .. });
        let id = if is_kernel { None } else { Some(self.declare(&TASK_PARAMS)?) };
        if let Some(id) = id {
            self.pending.push_back(Pending::Task { id, version, op: node.op, task: node.task, captures });
        }
        let waits = self.may_block(node);
        self.tasks.push(TaskInMaking { id, version, node: node.clone(), waits, site, nargs, roots, all_of });
        Ok((id, number))
    }

    /// A task waits for signals, or for much to come or go.
    pub fn may_block(&self, node: &Node) -> bool {
        node.waits || self.moves_far(node.op)
    }

    /// The number of a function of the engine.
    pub fn function(&mut self, function: FunctionCode) -> u32 {
        self.functions.push(function);
        self.functions.len() as u32 - 1
    }

    /// The machine type of a captured thing.
    pub fn capture_type(&self, capture: Capture) -> Type {
        match capture {
            Capture::Scalar(scalar) => scalar_type(self.program.scalars[scalar].ty),
            Capture::Tensor(_) | Capture::Var(_) | Capture::Array(_) => ADDRESS,
        }
    }

    /// Every function takes the frame first and returns an [`Exit`].
    fn declare(&mut self, params: &[Type]) -> Result<FuncId> {
        let signature = self.signature(params);
        self.jit.declare(&signature)
    }

    fn signature(&self, params: &[Type]) -> ir::Signature {
        let params: Vec<Type> = std::iter::once(ADDRESS).chain(params.iter().copied()).collect();
        self.jit.signature(&params, Some(types::I32))
    }

    fn define(
        &mut self,
        context: &mut FunctionBuilderContext,
        id: FuncId,
        params: &[Type],
        level: Level,
        body: impl FnOnce(&mut Function<'_, 'p>, &[ir::Value]) -> Result<()>,
    ) -> Result<()> {
        let name = UserFuncName::user(0, id.as_u32());
        let mut function = ir::Function::with_name_signature(name, self.signature(params));
        let config = self.jit.isa().frontend_config();
        let mut f = Function::new(self, FunctionBuilder::new(&mut function, context), level);
        let values: Vec<ir::Value> = f.params().to_vec();
        body(&mut f, &values)?;
        f.exit(Exit::Done);
        f.finish(config);
        self.jit.define(id, function)
    }

    /// This process holds only its own rank's part of a host tensor.
    pub fn has_one_part(&self, tensor: Tensor) -> bool {
        let slices = |data: &TensorData| matches!(data.def, TensorDef::HostSlice(src, _) if src == tensor);
        self.binding.rank.is_some()
            && matches!(self.program.tensors[tensor].def, TensorDef::HostParam(..))
            && self.program.tensors.values().any(slices)
    }

    /// The tensor is symmetric memory within an entry.
    pub fn is_window(&self, tensor: Tensor) -> bool {
        matches!(self.program.tensors[self.program.root(tensor)].def, TensorDef::Window(..))
    }
}
