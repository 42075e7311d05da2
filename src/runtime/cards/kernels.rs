//! The kernels of a program, on the cards of this process.

use std::sync::Arc;

use crate::codegen::cpu::TaskCode;
use crate::codegen::pto::{self, Kernel, KernelParam, Module, Target};
use crate::codegen::sites::Site;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::Program;
use crate::passes::plan_windows::Layout;
use crate::runtime::core::Core;
use crate::runtime::windows::Windows;
use crate::transport::hccl::compiler::{Architecture, Source};
use crate::transport::hccl::{CONTEXT_BYTES, Card, DeviceMemory, Function, comm_context};
use crate::verify::domains::{DomainId, Domains};

/// Where an argument of a kernel comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The rank's stop word.
    Stop,
    /// The reports of the stream.
    Reports,
    /// The rank.
    Rank,
    /// The dimension with this number.
    Dim(usize),
    /// This address of a context.
    Context(u64),
    /// What the task was submitted with, by number.
    Argument(usize),
}

/// The kernels of a program.
pub(in crate::runtime) struct Kernels {
    /// One a rank of this process, of which `first` is the first.
    ranks: Vec<OnCard>,
    first: u32,
    /// The number of the first site of kernels among those of the program.
    pub(super) sites: u32,
    /// Kernels say what they wait for, and stop when they are told to.
    pub(super) checked: bool,
}

/// The kernels of a rank.
struct OnCard {
    /// By the number of the task; none for functions of the engine.
    tasks: Vec<Option<(Function, Vec<Slot>)>>,
    /// What `tasks` refers to.
    _contexts: Vec<DeviceMemory>,
}

impl Kernels {
    /// Makes the kernels of a program for the cards of this process. `sites` are those of the host's code, and get those
    /// of the kernels too.
    pub(in crate::runtime) fn build(
        core: &Core,
        program: &Program,
        layout: &Layout,
        windows: &Windows,
        tasks: &[TaskCode],
        checked: bool,
        sites: &mut Vec<Site>,
    ) -> Result<Option<Self>> {
        let Some(cards) = core.transport.cards() else { return Ok(None) };
        let own = core.local.clone().map(|rank| cards.card(rank).clone()).collect::<Vec<_>>();
        let architecture = architecture(&own)?;
        let target = match architecture {
            Architecture::A2A3 => Target::A2A3,
            Architecture::A5 => Target::A5,
        };
        let module = pto::emit(program, layout, &pto::Options { target, nranks: core.nranks, checked })?;
        let name = module.file.strip_suffix(".cpp").unwrap_or(&module.file);
        let source = Source { name, text: &module.source, headers: module.headers, architecture };
        let file = cards.compiler().build(&source)?;
        let domains = Domains::new(program, Some(core.nranks));
        let mut ranks = Vec::new();
        for (rank, card) in core.local.clone().zip(&own) {
            let mut contexts = Contexts { card, windows, domains: &domains, rank, made: Vec::new() };
            let binary = card.load(&file)?;
            let tasks = tasks.iter().map(|task| match task.run {
                Some(_) => Ok(None),
                None => {
                    let kernel = kernel(&module, task)?;
                    Ok(Some((binary.function(&kernel.name)?, contexts.slots(&kernel.params)?)))
                }
            });
            let tasks = tasks.collect::<Result<_>>()?;
            ranks.push(OnCard { tasks, _contexts: contexts.made.into_iter().map(|(_, memory)| memory).collect() });
        }
        let number = sites.len() as u32;
        sites.extend(module.sites);
        Ok(Some(Self { ranks, first: core.local.start, sites: number, checked }))
    }

    /// The kernel of a task, and its arguments.
    pub(super) fn of(&self, rank: u32, task: u32) -> (&Function, &[Slot]) {
        let (function, slots) = self.ranks[(rank - self.first) as usize].tasks[task as usize]
            .as_ref()
            .expect("a task without code for the host is a kernel");
        (function, slots)
    }
}

/// The kernel that a task is.
fn kernel<'m>(module: &'m Module, task: &TaskCode) -> Result<&'m Kernel> {
    let found = module.kernels.iter().find(|kernel| (kernel.version, kernel.op) == task.origin);
    found.ok_or_else(|| Error::new(ErrorKind::Internal, format!("task {} has no kernel", task.name)))
}

/// The architecture of the cards.
fn architecture(cards: &[Arc<Card>]) -> Result<Architecture> {
    let soc = cards[0].soc();
    if let Some(other) = cards.iter().find(|card| card.soc() != soc) {
        let message = format!("cards of one process are {soc} and {}; they must be the same", other.soc());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Architecture::of(soc)
}

/// The contexts of a rank, made as kernels ask for them.
struct Contexts<'a> {
    card: &'a Arc<Card>,
    windows: &'a Windows,
    domains: &'a Domains,
    rank: u32,
    made: Vec<(DomainId, DeviceMemory)>,
}

impl Contexts<'_> {
    /// Where the arguments of a kernel with these parameters come from.
    fn slots(&mut self, params: &[KernelParam]) -> Result<Vec<Slot>> {
        let mut arguments = 0..;
        let slot = |param: &KernelParam| {
            Ok(match *param {
                KernelParam::Stop => Slot::Stop,
                KernelParam::Reports => Slot::Reports,
                KernelParam::Rank => Slot::Rank,
                KernelParam::Dim(dim) => Slot::Dim(dim.as_u32() as usize),
                KernelParam::Context(domain) => Slot::Context(self.address(domain)?),
                KernelParam::Capture(_) => Slot::Argument(arguments.next().expect("numbers do not end")),
            })
        };
        params.iter().map(slot).collect()
    }

    /// Address of the context of a domain; 0 if the rank is not in it and so runs none of its kernels.
    fn address(&mut self, domain: DomainId) -> Result<u64> {
        if let Some((_, memory)) = self.made.iter().find(|(made, _)| *made == domain) {
            return Ok(memory.address());
        }
        let ranks = &self.domains.ranks[domain];
        let Some(number) = ranks.iter().position(|&rank| rank == self.rank) else { return Ok(0) };
        let bases: Vec<u64> = ranks.iter().filter_map(|&rank| self.windows.on_card(rank)).collect();
        let context = comm_context(number as u32, &bases, self.windows.bytes() as u64)?;
        let memory = self.card.allocate(CONTEXT_BYTES)?;
        memory.write(0, &context)?;
        self.made.push((domain, memory));
        Ok(self.made[self.made.len() - 1].1.address())
    }
}
