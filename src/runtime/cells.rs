//! Names for signal cells: which cell of which window an address is, and who in the program notifies it.

use std::collections::HashMap;

use crate::ir::extent::Known;
use crate::ir::program::{TensorData, TensorDef};
use crate::ir::{Buffer, DType, Entry, OpKind, Operand, Program};
use crate::passes::plan_windows::{Layout, Place};
use crate::verify::domains::Domains;

/// The windows of a program, as reports name them.
#[derive(Debug)]
pub(super) struct Cells {
    buffers: Vec<Named>,
}

#[derive(Debug)]
struct Named {
    place: Place,
    name: String,
    /// Shape of the view that names its cells.
    shape: Vec<i64>,
    notifies: Vec<String>,
    ranks: Vec<u32>,
}

/// A cell and its notifies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cell<'a> {
    /// The window.
    pub(super) window: &'a str,
    /// `signal[3, 0]`.
    pub(super) text: String,
    /// Where the program notifies the window: `file:line` each.
    pub(super) notifies: &'a [String],
    /// The ranks that share the window: nobody else notifies it.
    pub(super) ranks: &'a [u32],
}

impl Cells {
    pub(super) fn new(program: &Program, layout: &Layout, nranks: u32) -> Self {
        let mut passed: HashMap<(Entry, u32), Vec<Buffer>> = HashMap::new();
        if let Some(host) = &program.host {
            program.walk(host.body, &mut |op| {
                let OpKind::Dispatch { entry, args, .. } = &program.ops[op].kind else { return };
                for (index, arg) in args.iter().enumerate() {
                    if let Operand::Tensor(tensor) = arg
                        && let TensorDef::View(buffer) = program.tensors[*tensor].def
                    {
                        passed.entry((*entry, index as u32)).or_default().push(buffer);
                    }
                }
            });
        }
        let mut notifies: HashMap<Buffer, Vec<String>> = HashMap::new();
        for entry in program.entries.values() {
            program.walk(entry.body, &mut |op| {
                let OpKind::Notify { window, .. } = program.ops[op].kind else { return };
                let TensorDef::Window(entry, index) = program.tensors[program.root(window)].def else { return };
                let place = program.place(program.ops[op].loc);
                for buffer in passed.get(&(entry, index)).into_iter().flatten() {
                    let places = notifies.entry(*buffer).or_default();
                    if !places.contains(&place) {
                        places.push(place.clone());
                    }
                }
            });
        }
        let known = Known { world: Some(i64::from(nranks)), dims: &[] };
        let domains = Domains::new(program, Some(nranks));
        let view = |buffer| {
            let of_buffer = |t: &&TensorData| matches!(t.def, TensorDef::View(b) if b == buffer);
            program.tensors.values().find(|t| t.dtype == DType::I32 && of_buffer(t))
        };
        let mut views_named: HashMap<&str, u32> = HashMap::new();
        let names = program.buffers.keys().filter_map(|buffer| view(buffer)?.name.as_deref());
        names.for_each(|name| *views_named.entry(name).or_default() += 1);
        let buffers = program.buffers.iter().map(|(buffer, data)| {
            let view = view(buffer);
            let shape = view.and_then(|v| v.shape.iter().map(|&e| program.extents.eval(e, known)).collect());
            // Several buffers may be passed for one parameter, which names their views.
            let name = view.and_then(|v| v.name.as_ref()).filter(|name| views_named[name.as_str()] == 1);
            Named {
                place: layout.buffers[buffer],
                name: name.unwrap_or(&data.name).clone(),
                shape: shape.unwrap_or_default(),
                notifies: notifies.remove(&buffer).unwrap_or_default(),
                ranks: domains.of(buffer).map(|domain| domains.ranks[domain].clone()).unwrap_or_default(),
            }
        });
        Self { buffers: buffers.collect() }
    }

    /// The cell at `offset` bytes from the beginning of the windows.
    pub(super) fn at(&self, offset: usize) -> Option<Cell<'_>> {
        let named = self.buffers.iter().find(|b| (b.place.offset..b.place.offset + b.place.bytes).contains(&offset))?;
        let mut index = ((offset - named.place.offset) / size_of::<i32>()) as i64;
        let mut indices = vec![0; named.shape.len().max(1)];
        for (at, &extent) in indices.iter_mut().zip(&named.shape).skip(1).rev() {
            *at = index % extent.max(1);
            index /= extent.max(1);
        }
        indices[0] = index;
        let text = format!("{}{indices:?}", named.name);
        Some(Cell { window: &named.name, text, notifies: &named.notifies, ranks: &named.ranks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::passes::plan_windows::plan_windows;

    #[test]
    fn cells_have_the_names_of_the_program() {
        let text = "program names
entry e(data: window[3] f32, sig: window[world, 2] i32, me: i32) {
  at step {
    part = slice sig[1, 0] [1, 2]
    notify part[0, 1] @me += 1
    notify sig[me, 0] @0 = 5
  }
}
host () {
  data_buf = alloc_window [3] f32
  sig_buf = alloc_window bytes world * 8
  ranks r in 0..world {
    data = window data_buf [3] f32
    sig = window sig_buf [world, 2] i32
    dispatch e(data, sig, r) device r
  }
}
";
        let program = parse(text, "names.pld").unwrap();
        let layout = plan_windows(&program, 4).unwrap();
        let cells = Cells::new(&program, &layout, 4);
        let notifies = ["names.pld:5".to_string(), "names.pld:6".to_string()];
        let cell = |text: &str| Cell { window: "sig", text: text.into(), notifies: &notifies, ranks: &[0, 1, 2, 3] };
        assert_eq!(cells.at(64), Some(cell("sig[0, 0]")));
        assert_eq!(cells.at(64 + 4 * 7), Some(cell("sig[3, 1]")));
        assert_eq!(cells.at(8).map(|c| c.text), Some("data_buf[2]".into()));
        assert_eq!(cells.at(64 + 32), None, "past the windows");
    }
}
