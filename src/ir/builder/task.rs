//! Tasks, what orders them, and the engine's own functions.

use super::{Builder, MISPLACED, Open};
use crate::ir::entity::{Block, Scalar, Task, Tensor};
use crate::ir::op::{CallbackArg, Grid, OpKind, TaskOptions};
use crate::ir::program::{ScalarDef, TaskData, TensorDef};
use crate::ir::types::ScalarType;

impl Builder {
    /// Begins a task.
    pub fn at_begin(&mut self, name: &str, options: TaskOptions) -> Task {
        let (task, body) = self.new_task(name);
        self.push(OpKind::Task { task, grid: None, options: Box::new(options), body });
        self.enter(Open::Task(task, body));
        task
    }

    /// Begins a task of `blocks` blocks; the task, and the index of the block.
    pub fn spmd_begin(&mut self, name: &str, blocks: Scalar, options: TaskOptions) -> (Task, Scalar) {
        let (task, body) = self.new_task(name);
        // The current block may create the host driver; look it up before the op's number is taken.
        self.current();
        let index = self.scalar(ScalarType::I32, ScalarDef::Index(self.program.ops.next_key()));
        let grid = Some(Grid { blocks, index });
        self.push(OpKind::Task { task, grid, options: Box::new(options), body });
        self.enter(Open::Task(task, body));
        (task, index)
    }

    /// Ends a task: its id, unless no task is open.
    pub fn task_end(&mut self) -> Option<Task> {
        let task = self.open_task();
        self.close("task", |o| matches!(o, Open::Task(..)));
        task
    }

    /// The index of the block of the grid that is open; a mistake outside of one.
    pub fn block_index(&mut self) -> Option<Scalar> {
        let open = self.open_task();
        let grid = self.program.ops.values().rev().find_map(|op| match op.kind {
            OpKind::Task { task, grid, .. } if Some(task) == open => grid,
            _ => None,
        });
        if grid.is_none() {
            self.mistake(MISPLACED, "the block index is asked for outside a grid", "begin the task with spmd");
        }
        grid.map(|grid| grid.index)
    }

    /// A task that is the engine's own function. Its name is the function's.
    pub fn extern_task(
        &mut self,
        name: &str,
        blocks: Option<Scalar>,
        args: Vec<CallbackArg>,
        options: TaskOptions,
    ) -> Task {
        self.check_label("task", name);
        let task = self.program.tasks.push(TaskData { name: name.into(), id: None, loc: self.loc });
        self.push(OpKind::Extern { task, blocks, args, options: Box::new(options) });
        task
    }

    /// Gives the id of a task a name in the text.
    pub fn name_task(&mut self, task: Task, name: &str) {
        self.check_name("task id", name);
        self.program.tasks[task].id = Some(name.into());
    }

    /// Begins a scope in which tasks wait for their `deps` only.
    pub fn manual_begin(&mut self) {
        let body = self.block();
        self.push(OpKind::Manual { body });
        self.enter(Open::Manual(body));
    }

    /// Ends the scope.
    pub fn manual_end(&mut self) {
        self.close("manual", |o| matches!(o, Open::Manual(_)));
    }

    /// Accesses to a parameter order no tasks of its entry.
    pub fn manual_dep(&mut self, tensor: Tensor) {
        let data = &mut self.program.tensors[tensor];
        data.manual = true;
        if !matches!(data.def, TensorDef::Param(..) | TensorDef::Window(..)) {
            let hint = "a slice follows the parameter that it is part of";
            self.mistake(MISPLACED, "only a parameter of an entry can have manual dependencies", hint);
        }
    }

    /// The engine's own function on the host, after the dispatches.
    pub fn host_task(&mut self, name: &str, args: Vec<CallbackArg>) {
        self.check_label("host task", name);
        self.push(OpKind::HostTask { name: name.into(), args });
    }

    fn new_task(&mut self, name: &str) -> (Task, Block) {
        self.check_label("task", name);
        let body = self.block();
        (self.program.tasks.push(TaskData { name: name.into(), id: None, loc: self.loc }), body)
    }

    fn open_task(&self) -> Option<Task> {
        self.open.iter().rev().find_map(|&(open, _)| match open {
            Open::Task(task, _) => Some(task),
            _ => None,
        })
    }
}
