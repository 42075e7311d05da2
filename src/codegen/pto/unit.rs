//! What all kernels of a program share.

use crate::codegen::arguments::Arguments;
use crate::codegen::sites::Sites;
use crate::codegen::versions::{Version, Versions};
use crate::error::Result;
use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::{Op, OpKind, Program, Task};
use crate::passes::plan_windows::Layout;
use crate::verify::domains::Domains;
use crate::verify::range::Ranges;

use super::effects::Rules;
use super::function::Function;
use super::kernel::Body;
use super::names::Names;
use super::task::Param;
use super::write::Writer;
use super::{HEADERS, Kernel, Module, Options, check_fences, fences};

/// A kernel that only has to be written down.
pub struct Lowered {
    pub kernel: Kernel,
    /// The task and its entry.
    pub what: String,
    pub params: Vec<Param>,
    pub body: Body,
}

/// The emission of one program.
pub struct Unit<'p> {
    pub program: &'p Program,
    pub options: &'p Options,
    pub known: Known<'static>,
    pub domains: Domains,
    pub versions: Versions,
    pub ranges: Ranges,
    pub text: Text<'p>,
    pub sites: Sites,
}

impl<'p> Unit<'p> {
    pub fn new(program: &'p Program, layout: &Layout, options: &'p Options) -> Result<Self> {
        let known = Known { world: Some(i64::from(options.nranks)), dims: &[] };
        let domains = Domains::new(program, Some(options.nranks));
        Ok(Self {
            program,
            options,
            known,
            versions: Versions::new(program, &domains, layout, known)?,
            ranges: Ranges::new(program, &domains, Some(options.nranks)),
            domains,
            text: Text::new(program),
            sites: Sites::new(program),
        })
    }

    pub fn emit(mut self) -> Result<Module> {
        let mut writer = Writer::new(self.program, self.options);
        let mut kernels = Vec::new();
        for Lowered { kernel, what, params, body } in self.lower()? {
            writer.kernel(&kernel.name, &what, &params, &body);
            kernels.push(kernel);
        }
        let program = self.program;
        Ok(Module {
            file: format!("{}.cpp", program.name),
            source: writer.finish(),
            headers: HEADERS,
            kernels,
            sites: self.sites.finish(program, self.known),
        })
    }

    /// The kernels as statements, with their fences.
    pub fn lower(&mut self) -> Result<Vec<Lowered>> {
        let program = self.program;
        let rules = Rules { program, target: self.options.target };
        let mut names = Names::default();
        let tasks = self.tasks();
        let lower = |(version, op, task)| {
            let entry = self.versions.get(version).entry;
            let (entry_name, task_name) = (&program.entries[entry].name, &program.tasks[task].name);
            let name = names.take(&format!("{entry_name}_{task_name}"));
            let what = format!("{task_name} of {entry_name}");
            let site = self.sites.number(op, Some(task));
            let (params, mut body) = Function::new(self, version, op, task).lower()?;
            fences::insert(&mut body, &rules);
            check_fences::check(&name, &body, &rules)?;
            let kinds = params.iter().map(|param| param.kind).collect();
            Ok(Lowered { kernel: Kernel { name, entry, version, op, params: kinds, site }, what, params, body })
        };
        tasks.into_iter().map(lower).collect()
    }

    /// The tasks that run on the device, with each version of their entry.
    fn tasks(&self) -> Vec<(Version, Op, Task)> {
        let mut tasks = Vec::new();
        for (version, data) in self.versions.all() {
            self.program.walk(self.program.entries[data.entry].body, &mut |op| {
                if let OpKind::Task { task, .. } = self.program.ops[op].kind {
                    tasks.push((version, op, task));
                }
            });
        }
        tasks
    }

    /// What is known of the parameters of a version.
    pub fn arguments(&self, version: Version) -> &Arguments {
        &self.versions.get(version).arguments
    }
}
