//! The manifest of kernels: what a host that launches them must know.

use serde_json::{Value, json};

use pld::codegen::captures::Capture;
use pld::codegen::pto::{Export, Kernel, KernelParam, Options};
use pld::codegen::sites::Site;
use pld::ir::extent::Known;
use pld::ir::print::Text;
use pld::ir::{OpKind, Program};

/// The manifest as one object.
pub fn manifest(export: &Export, options: &Options) -> Value {
    let Export { program, layout, domains, module } = export;
    let known = Known { world: Some(i64::from(options.nranks)), dims: &[] };
    let windows = program.buffers.iter().map(|(buffer, data)| {
        let place = layout.buffers[buffer];
        let domain = domains.of(buffer).map(|domain| domain.as_u32());
        json!({ "name": data.name, "offset": place.offset, "bytes": place.bytes, "domain": domain })
    });
    let sites =
        module.sites.iter().map(|Site { text, place, task, .. }| json!({ "text": text, "place": place, "task": task }));
    json!({
        "program": program.name,
        "target": options.target.name(),
        "ranks": options.nranks,
        "checked": options.checked,
        "source": module.file,
        "headers": module.headers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "window_bytes": layout.bytes,
        "windows": windows.collect::<Vec<_>>(),
        "domains": domains.ranks.values().collect::<Vec<_>>(),
        "kernels": module.kernels.iter().map(|kernel| self::kernel(program, known, kernel)).collect::<Vec<_>>(),
        "sites": sites.collect::<Vec<_>>(),
    })
}

fn kernel(program: &Program, known: Known, kernel: &Kernel) -> Value {
    let text = Text::new(program);
    let op = &program.ops[kernel.op];
    let OpKind::Task { task, grid, .. } = &op.kind else { unreachable!("kernels are made of tasks") };
    let blocks = grid.as_ref().map_or(json!(1), |grid| match program.int_value(grid.blocks, known) {
        Some(blocks) => json!(blocks),
        None => json!(text.scalar(grid.blocks)),
    });
    json!({
        "name": kernel.name,
        "entry": program.entries[kernel.entry].name,
        "task": program.tasks[*task].name,
        "place": program.place(op.loc),
        "blocks": blocks,
        "site": kernel.site,
        "params": kernel.params.iter().map(|&param| self::param(program, &text, param)).collect::<Vec<_>>(),
    })
}

/// A parameter, which is 8 bytes of the argument block.
fn param(program: &Program, text: &Text, param: KernelParam) -> Value {
    match param {
        KernelParam::Stop => json!({ "kind": "stop" }),
        KernelParam::Reports => json!({ "kind": "reports" }),
        KernelParam::Rank => json!({ "kind": "rank" }),
        KernelParam::Dim(dim) => json!({ "kind": "dimension", "name": program.extents.dims[dim].name }),
        KernelParam::Context(domain) => json!({ "kind": "context", "domain": domain.as_u32() }),
        KernelParam::Capture(Capture::Scalar(scalar)) => {
            json!({ "kind": "scalar", "name": text.scalar(scalar), "type": program.scalars[scalar].ty.name() })
        }
        KernelParam::Capture(Capture::Var(var)) => {
            json!({ "kind": "scalar", "name": text.var(var), "type": program.vars[var].ty.name() })
        }
        KernelParam::Capture(Capture::Array(array)) => json!({ "kind": "array", "name": text.array(array) }),
        KernelParam::Capture(Capture::Tensor(tensor)) => {
            let kind = if program.is_window(tensor) { "window_offset" } else { "tensor" };
            json!({ "kind": kind, "name": text.tensor(tensor), "type": text.tensor_type(tensor) })
        }
    }
}
