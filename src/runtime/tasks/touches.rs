//! Which of a rank's tasks touch the same memory in ways that need an order.

use smallvec::SmallVec;

use super::graph::Handle;
use crate::codegen::cpu::TaskAccess;
use crate::passes::task_graph::Mode;

/// First and last index in each dimension.
type Part = SmallVec<[(i64, i64); 2]>;

/// A task's access.
#[derive(Debug)]
struct Touch {
    task: Handle,
    mode: Mode,
    part: Part,
}

/// The accesses of tasks that have not ended, by root.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Touches(Vec<Vec<Touch>>);

impl Touches {
    /// Takes in the accesses of a task, whose parts are `regions`. `meet` gets each earlier task that touched something of
    /// the same root, with the number of the access if both conflict, and says whether that task is still of interest.
    pub fn add(
        &mut self,
        task: Handle,
        accesses: &[TaskAccess],
        mut regions: &[i64],
        mut meet: impl FnMut(Handle, Option<usize>) -> bool,
    ) {
        for (number, access) in accesses.iter().enumerate() {
            let (words, rest) = regions.split_at(2 * access.ndims);
            regions = rest;
            let part: Part = words.chunks_exact(2).map(|ends| (ends[0], ends[1])).collect();
            if self.0.len() <= access.root {
                self.0.resize_with(access.root + 1, Vec::new);
            }
            let touches = &mut self.0[access.root];
            touches.retain(|touch| {
                let meets = touch.task != task && touch.mode.conflicts(access.mode) && overlap(&touch.part, &part);
                // Whoever conflicts with the old one conflicts with the new one, which comes later.
                meet(touch.task, meets.then_some(number))
                    && !(meets && access.mode == Mode::Write && covers(&part, &touch.part))
            });
            touches.push(Touch { task, mode: access.mode, part });
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        // Keeps its memory.
        self.0.iter_mut().for_each(Vec::clear);
    }
}

fn overlap(a: &Part, b: &Part) -> bool {
    a.iter().zip(b).all(|(x, y)| x.0 <= y.1 && y.0 <= x.1)
}

fn covers(a: &Part, b: &Part) -> bool {
    a.iter().zip(b).all(|(x, y)| x.0 <= y.0 && y.1 <= x.1) && a.len() <= b.len()
}
