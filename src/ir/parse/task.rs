//! Tasks, and the engine's own functions.

use super::mistake::*;
use super::{Meaning, Parsed, Parser, Reported};
use crate::ir::entity::{Scalar, Task, Tensor};
use crate::ir::lex::{Position, Token, clip};
use crate::ir::op::{CallbackArg, Predicate, TaskOptions};
use crate::ir::types::{BinaryOp, Direction};

/// Comparisons, for a predicate.
const COMPARISONS: [BinaryOp; 6] = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];

impl<'t> Parser<'t> {
    /// `at name ... {`, `spmd name [n] ... as e {` or `extern name(...)`; `id` is the name before the `=`.
    pub(super) fn task(&mut self, at: Position, id: Option<&'t str>) -> Parsed<()> {
        let form = self.token;
        self.advance();
        let name = self.label("a task");
        let (task, parsed) = match form {
            Token::Name("extern") => {
                let parsed = name.and_then(|name| self.extern_task(at, name));
                (parsed.as_ref().ok().copied(), parsed.map(drop))
            }
            Token::Name("spmd") => self.grid(at, name),
            _ => self.single(at, name),
        };
        if let Some(id) = id {
            self.name_task(at, id, task);
        }
        parsed
    }

    /// An id lives until the end of the entry, so that what follows a loop can depend on the tasks inside.
    fn name_task(&mut self, at: Position, id: &'t str, task: Option<Task>) {
        match (self.names.get(id).copied(), task) {
            (None, Some(task)) => {
                self.locate(at);
                self.builder.name_task(task, id);
                self.names.insert(id, Meaning::Task(task));
                self.tasks.push(id);
            }
            (None, None) => {
                self.names.insert(id, Meaning::Unknown);
                self.tasks.push(id);
            }
            (Some(Meaning::Unknown), _) => {}
            (Some(other), _) => {
                let message = format!("{:?} is already {}", clip(id), self.kind(other));
                self.report(at, NAME_TAKEN, message, "the id of a task is the only one of its name in the entry");
            }
        }
    }

    fn single(&mut self, at: Position, name: Parsed<&'t str>) -> (Option<Task>, Parsed<()>) {
        let options = name.as_ref().map_err(|_| Reported).and_then(|_| self.options());
        let header = options.is_ok();
        self.locate(at);
        let task = self.builder.at_begin(name.unwrap_or("unnamed"), options.unwrap_or_default());
        let start = if header { Ok(()) } else { self.recover_to_block(false) };
        let body = start.and_then(|()| self.block());
        self.locate(at);
        self.builder.task_end();
        (Some(task), body)
    }

    fn grid(&mut self, at: Position, name: Parsed<&'t str>) -> (Option<Task>, Parsed<()>) {
        let header = name.as_ref().map_err(|_| Reported).and_then(|_| {
            let (blocks, options) = (self.blocks()?, self.options()?);
            self.expect_word("as")?;
            let index_at = self.at;
            Ok((blocks, options, index_at, self.name("a block index")?))
        });
        let sound = header.is_ok();
        self.locate(at);
        let one = self.builder.int(1);
        let (blocks, options, index_at, index_name) = match header {
            Ok((blocks, options, index_at, name)) => (blocks, options, index_at, Ok(name)),
            Err(Reported) => (one, TaskOptions::default(), at, Err(Reported)),
        };
        let (task, index) = self.builder.spmd_begin(name.unwrap_or("unnamed"), blocks, options);
        let body = self.loop_body(index_name, index_at, index, sound);
        self.locate(at);
        self.builder.task_end();
        (Some(task), body)
    }

    fn extern_task(&mut self, at: Position, name: &str) -> Parsed<Task> {
        let args = self.callback_args()?;
        let blocks = if self.is("[") { Some(self.blocks()?) } else { None };
        let options = self.options()?;
        self.locate(at);
        Ok(self.builder.extern_task(name, blocks, args, options))
    }

    /// `[n]`.
    fn blocks(&mut self) -> Parsed<Scalar> {
        self.expect("[")?;
        let blocks = self.expression()?;
        self.expect("]")?;
        Ok(blocks)
    }

    fn options(&mut self) -> Parsed<TaskOptions> {
        let mut options = TaskOptions::default();
        loop {
            if self.eat_word("deps") {
                self.list("[", "]", |p| p.task_id().map(|task| options.deps.push(task)))?;
            } else if self.eat_word("no_dep") {
                self.list("[", "]", |p| p.tensor().map(|tensor| options.no_dep.push(tensor)))?;
            } else if self.eat_word("predicate") {
                options.predicate = Some(self.predicate()?);
            } else if self.eat_word("allow_early_resolve") {
                options.allow_early_resolve = true;
            } else {
                return Ok(options);
            }
        }
    }

    fn task_id(&mut self) -> Parsed<Task> {
        let at = self.at;
        let name = self.name("a task")?;
        match self.look_up(at, name)? {
            Meaning::Task(task) => Ok(task),
            found => {
                Err(self.wrong_kind(at, name, found, "a task", "a task gets an id like this: id = at name { ... }"))
            }
        }
    }

    fn predicate(&mut self) -> Parsed<Predicate> {
        let (tensor, at) = self.place()?;
        let cmp = match self.token {
            Token::Symbol(sign) => COMPARISONS.into_iter().find(|c| c.name() == sign),
            _ => None,
        };
        let Some(cmp) = cmp else {
            return Err(self.unexpected("a comparison", "a predicate compares an element: predicate flag[0] != 0"));
        };
        self.advance();
        let value_at = self.at;
        let value = self.expression()?;
        let program = self.builder.program();
        match program.extent_of(value).and_then(|value| program.extents.constant(value)) {
            Some(value) => Ok(Predicate { tensor, at, cmp, value }),
            None => {
                let hint = "what is computed can be compared in a task before, which writes a flag";
                Err(self.report(value_at, UNEXPECTED, "a predicate compares with an integer that is known", hint))
            }
        }
    }

    /// `manual` behind the type of a parameter.
    pub(super) fn manual_dep(&mut self, tensor: Option<Tensor>) -> Option<Meaning> {
        if self.eat_word("manual")
            && let Some(tensor) = tensor
        {
            self.builder.manual_dep(tensor);
        }
        tensor.map(Meaning::Tensor)
    }

    pub(super) fn manual(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        self.locate(at);
        self.builder.manual_begin();
        let body = self.block();
        self.locate(at);
        self.builder.manual_end();
        body
    }

    pub(super) fn defer_wait(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let (window, offsets) = self.place()?;
        if !self.is(">=") {
            return Err(self.unexpected("\">=\"", "a deferred wait compares its cell with >="));
        }
        self.advance();
        let expected = self.expression()?;
        self.locate(at);
        self.builder.defer_wait(window, &offsets, expected);
        Ok(())
    }

    pub(super) fn host_task(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let name = self.label("a host task")?;
        let args = self.callback_args()?;
        self.locate(at);
        self.builder.host_task(name, args);
        Ok(())
    }

    /// Tensors with a direction each, and values.
    fn callback_args(&mut self) -> Parsed<Vec<CallbackArg>> {
        let mut args = Vec::new();
        self.list("(", ")", |p| {
            if let Token::Name(name) = p.token
                && let Some(&Meaning::Tensor(tensor)) = p.names.get(name)
                && !p.next_is_bracket()
            {
                p.advance();
                let direction: Direction = p.direction()?;
                args.push(CallbackArg::Tensor(tensor, direction));
            } else {
                args.push(CallbackArg::Scalar(p.expression()?));
            }
            Ok(())
        })?;
        Ok(args)
    }
}
