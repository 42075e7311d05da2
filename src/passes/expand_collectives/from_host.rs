//! Collectives of the host driver: each becomes an entry with one task, dispatched on every rank of its domain.

use std::collections::HashMap;

use super::Target;
use crate::ir::op::TaskOptions;
use crate::ir::program::{ScalarDef, TensorDef};
use crate::ir::{
    AllToAllV, Block, Builder, Collective, CollectiveKind, Entry, Op, OpKind, Operand, Program, Scalar, Tensor,
};
use crate::verify::domains::Domains;

/// The program, with all collectives inside tasks.
pub(super) fn move_into_entries(program: &Program, target: &Target) -> Builder {
    let mut builder = Builder::extend(program.clone());
    let Some(host) = &program.host else { return builder };
    let domains = Domains::new(program, Some(target.nranks));
    for (block, op) in calls(program, host.body) {
        let OpKind::Collective(collective) = &program.ops[op].kind else { unreachable!("calls finds collectives") };
        let ranks = ranks(program, &domains, collective, target);
        let loc = program.ops[op].loc;
        builder.set_loc(loc);
        let (entry, root, args) = entry(&mut builder, collective);
        let ops = builder.apart(loc, |b| dispatch(b, entry, root, &args, &ranks));
        builder.replace(block, op, ops);
    }
    builder
}

fn calls(program: &Program, block: Block) -> Vec<(Block, Op)> {
    let mut calls = Vec::new();
    for &op in &program.blocks[block] {
        if matches!(program.ops[op].kind, OpKind::Collective(_)) {
            calls.push((block, op));
        }
        calls.extend(program.ops[op].kind.blocks().into_iter().flat_map(|inner| self::calls(program, inner)));
    }
    calls
}

/// The ranks that take part: those of the window's domain, or all.
fn ranks(program: &Program, domains: &Domains, collective: &Collective, target: &Target) -> Vec<u32> {
    let domain = collective.window().and_then(|window| match program.tensors[window].def {
        TensorDef::View(buffer) => domains.of(buffer),
        _ => None,
    });
    domain.map_or_else(|| (0..target.nranks).collect(), |domain| domains.ranks[domain].clone())
}

/// An entry with parameters for the operands: with the arguments that they stand for, and the root if it is no constant.
fn entry(b: &mut Builder, collective: &Collective) -> (Entry, Option<Scalar>, Vec<Tensor>) {
    let name = b.unused_name(collective.name());
    let entry = b.entry_begin(&name);
    let mut args: Vec<Tensor> = Vec::new();
    let mut params: HashMap<Tensor, Tensor> = HashMap::new();
    let mut param = |b: &mut Builder, tensor: Tensor| {
        *params.entry(tensor).or_insert_with(|| {
            let data = b.program().tensors[tensor].clone();
            let name = data.name.unwrap_or_else(|| format!("operand_{}", args.len() + 1));
            args.push(tensor);
            b.param_window(&name, data.dtype, data.shape).expect("an entry begins with its parameters")
        })
    };
    let mut p = |tensor| param(b, tensor);
    use CollectiveKind::*;
    let kind = match collective.kind {
        Barrier { window } => Barrier { window: window.map(&mut p) },
        Allreduce { data, op } => Allreduce { data: p(data), op },
        ReduceScatter { data, op } => ReduceScatter { data: p(data), op },
        Broadcast { data, root } => Broadcast { data: p(data), root },
        Allgather { dst, src } => Allgather { dst: p(dst), src: p(src) },
        AllToAll { dst, src } => AllToAll { dst: p(dst), src: p(src) },
        AllToAllV(ref v) => AllToAllV(self::AllToAllV {
            dst: p(v.dst),
            recv_counts: p(v.recv_counts),
            src: p(v.src),
            send_counts: p(v.send_counts),
            offsets: v.offsets.map(|(recv, send)| (p(recv), p(send))),
        }),
    };
    let mut inside = Collective { kind, signal: collective.signal.map(&mut p), cores: 1, ..collective.clone() };
    let root = collective.root().filter(|&root| !is_constant(b.program(), root));
    if let (Some(root), Broadcast { root: inner, .. }) = (root, &mut inside.kind) {
        let ty = b.program().scalars[root].ty;
        *inner = b.param_scalar("root", ty).expect("an entry begins with its parameters");
    }
    if collective.cores > 1 {
        let blocks = b.int(collective.cores);
        b.spmd_begin(collective.name(), blocks, TaskOptions::default());
    } else {
        b.at_begin(collective.name(), TaskOptions::default());
    }
    b.collective(inside);
    b.task_end();
    b.entry_end();
    (entry, root, args)
}

fn is_constant(program: &Program, scalar: Scalar) -> bool {
    matches!(program.scalars[scalar].def, ScalarDef::Extent(_))
}

fn dispatch(b: &mut Builder, entry: Entry, root: Option<Scalar>, args: &[Tensor], ranks: &[u32]) {
    let run = |b: &mut Builder, device: Scalar| {
        let args = args.iter().map(|&tensor| Operand::Tensor(tensor)).chain(root.map(Operand::Scalar)).collect();
        b.dispatch(entry, device, args);
    };
    let consecutive = ranks.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    if let (true, [first, .., last]) = (consecutive, ranks) {
        let (first, end) = (b.int(i64::from(*first)), b.int(i64::from(*last) + 1));
        let device = b.ranks_begin(first, end);
        run(b, device);
        b.ranks_end();
    } else {
        for &rank in ranks {
            let device = b.int(i64::from(rank));
            run(b, device);
        }
    }
}
