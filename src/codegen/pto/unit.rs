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

use super::function::Function;
use super::names::Names;
use super::write::Writer;
use super::{HEADER, Kernel, Module, Options};

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
        let program = self.program;
        let mut writer = Writer::new(program, self.options);
        let mut names = Names::default();
        let mut kernels = Vec::new();
        for (version, op, task) in self.tasks() {
            let entry = &program.entries[self.versions.get(version).entry];
            let name = names.take(&format!("{}_{}", entry.name, program.tasks[task].name));
            let site = self.sites.number(op, Some(task));
            let (params, body) = Function::new(&mut self, version, op, task).lower()?;
            writer.kernel(&name, &format!("{} of {}", program.tasks[task].name, entry.name), &params, &body);
            let params = params.into_iter().map(|param| param.kind).collect();
            kernels.push(Kernel { name, version, op, params, site });
        }
        Ok(Module {
            file: format!("{}.cpp", program.name),
            source: writer.finish(),
            header: HEADER,
            kernels,
            sites: self.sites.finish(program, self.known),
        })
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
