"""Blocks of a traced program: tasks, loops, ifs."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Sequence, Type, Union

from pld._native import ffi, lib
from pld.errors import TraceError
from pld.ops import Comparison, comparison
from pld.tracing import Builder, Scope, builder, variable_name
from pld.values import Offsets, Scalar, ScalarLike, Task, Tensor, handles, scalar, scalars


class Predicate:
    """What must hold for a task to run; see `predicate`."""

    def __init__(self, tensor: Tensor, offsets: Offsets, sign: Comparison, value: int) -> None:
        self.tensor, self.offsets, self.sign, self.value = tensor, offsets, sign, value


def predicate(tensor: Tensor, offsets: Offsets, sign: Comparison, value: int) -> Predicate:
    """One element of a tensor of integers or bools, compared with a number when the task could begin: unless it holds,
    the task is over without having run. `predicate=pld.predicate(count, [0], "!=", 0)`."""
    return Predicate(tensor, offsets, sign, value)


class TaskOptions:
    """What a task is told besides its body, for one call of the library."""

    def __init__(
        self,
        deps: Union[Task, Sequence[Task]],
        no_dep: Sequence[Tensor],
        condition: Optional[Predicate],
        allow_early_resolve: bool,
    ) -> None:
        tasks = [deps] if isinstance(deps, Task) else deps
        self._deps, ndeps = handles("pld_task_t", tasks)
        self._no_dep, n_no_dep = handles("pld_tensor_t", no_dep)
        self._predicate = ffi.NULL
        if condition is not None:
            self._offsets, noffsets = scalars(condition.offsets)
            fields = (
                condition.tensor.of_this_program(),
                comparison("pld_cmp", "PLD_CMP_", condition.sign),
                self._offsets,
                noffsets,
                condition.value,
            )
            self._predicate = ffi.new("pld_predicate_t *", fields)
        self.struct = ffi.new("pld_task_options_t *")
        lib.pld_task_options_init(self.struct, ffi.sizeof("pld_task_options_t"))
        self.struct.allow_early_resolve = allow_early_resolve
        self.struct.deps, self.struct.ndeps = self._deps, ndeps
        self.struct.no_dep, self.struct.n_no_dep = self._no_dep, n_no_dep
        self.struct.predicate = self._predicate


class Block:
    """A block of a program, for `with`."""

    what = ""

    def _begin(self, builder: Builder) -> Any:
        raise NotImplementedError

    def _end(self, builder: Builder) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        traced = builder()
        place = traced.here()
        result = self._begin(traced)
        self._scope = Scope(self.what, place)
        traced.open(self._scope)
        return result

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if kind is None:
            builder().close(self._scope)
            self._end(builder())


class TaskBlock(Block):
    """An open task."""

    what = "task"

    def __init__(self, begin: Callable[[Builder, Any], None], options: TaskOptions) -> None:
        self._begin_task = begin
        self._options = options

    def _begin(self, builder: Builder) -> Task:
        self._task = Task(variable_name())
        self._begin_task(builder, self._options.struct)
        return self._task

    def _end(self, builder: Builder) -> None:
        self._task.end(builder.call(lib.pld_task_end))


def at(
    name: str,
    *,
    deps: Union[Task, Sequence[Task]] = (),
    no_dep: Sequence[Tensor] = (),
    predicate: Optional[Predicate] = None,
    allow_early_resolve: bool = False,
) -> TaskBlock:
    """A task of the entry: `with pld.at("push") as pushed:`. Only in tasks is memory touched, and only there do ranks
    communicate. The name appears in reports.

    A task waits for the tasks before it that wrote what it touches or touched what it writes, and for its `deps`,
    whatever they touch. What it does with the tensors of `no_dep`, and with slices of them, orders nothing. It runs only
    if `predicate` holds. `allow_early_resolve` is a hint to targets that stage tasks ahead; it never changes a
    result."""

    def begin(traced: Builder, options: Any) -> None:
        traced.call(lib.pld_at_begin, name.encode(), options)

    return TaskBlock(begin, TaskOptions(deps, no_dep, predicate, allow_early_resolve))


def spmd(
    name: str,
    blocks: ScalarLike,
    *,
    deps: Union[Task, Sequence[Task]] = (),
    no_dep: Sequence[Tensor] = (),
    predicate: Optional[Predicate] = None,
    allow_early_resolve: bool = False,
) -> TaskBlock:
    """A task that is a grid of `blocks` blocks: `with pld.spmd("push", 4) as pushed:`; `pushed.block` is which of them
    runs, from 0. The blocks run in any order, also at the same time; the task is over when all are. Otherwise as
    `at`."""

    def begin(traced: Builder, options: Any) -> None:
        traced.call(lib.pld_spmd_begin, name.encode(), scalar(blocks), options)

    return TaskBlock(begin, TaskOptions(deps, no_dep, predicate, allow_early_resolve))


def block_index() -> Scalar:
    """The block of the open grid: the same as `block` of its task."""
    return Scalar.named(builder().call(lib.pld_block_index))


def join(name: str, deps: Sequence[Task]) -> Task:
    """A task that does nothing: it is over when its `deps` are, and stands for all of them."""
    task = Task(variable_name())
    task.end(builder().call(lib.pld_join, name.encode(), *handles("pld_task_t", deps)))
    return task


class _Manual(Block):
    what = "manual part"

    def _begin(self, builder: Builder) -> None:
        builder.call(lib.pld_manual_begin)

    def _end(self, builder: Builder) -> None:
        builder.call(lib.pld_manual_end)


def manual() -> Block:
    """A part of the entry in which tasks wait for their `deps` only, and no other task waits for what they touch:
    `with pld.manual():`. Not inside another one."""
    return _Manual()


def manual_dep(tensor: Tensor) -> None:
    """Nobody's accesses to this parameter, or to slices of it, order any tasks."""
    builder().call(lib.pld_manual_dep, tensor.of_this_program())


class _If(Block):
    what = "if"

    def __init__(self, condition: ScalarLike) -> None:
        self._condition = condition

    def _begin(self, builder: Builder) -> None:
        builder.call(lib.pld_if_begin, scalar(self._condition))

    def _end(self, builder: Builder) -> None:
        builder.ended_if = self._scope  # an else may follow; anything else that does ends it


class _Else(Block):
    what = "else"

    def _begin(self, builder: Builder) -> None:
        if builder.ended_if is None:
            raise TraceError("`with pld.else_():` follows at once behind the block of a `with pld.if_(...):`")
        builder.ended_if = None
        builder.call(lib.pld_else)

    def _end(self, builder: Builder) -> None:
        builder.call(lib.pld_if_end)


def if_(condition: ScalarLike) -> Block:
    """A part that runs where the `bool` `condition` holds: `with pld.if_(peer != me):`."""
    return _If(condition)


def else_() -> Block:
    """The part that runs where the condition of the `if_` right before it does not hold: `with pld.else_():`."""
    return _Else()


class _Loop(Iterator[Scalar]):
    """A loop, whose body Python runs once."""

    def __init__(self, begin: Callable[[Builder], Any], end: Any) -> None:
        self._begin = begin
        self._end = end
        self._scope: Optional[Scope] = None

    def __next__(self) -> Scalar:
        traced = builder()
        if self._scope is None:
            self._scope = Scope("loop", traced.here())
            index = self._begin(traced)
            traced.open(self._scope)
            return Scalar.named(index)
        traced.close(self._scope)
        traced.call(self._end)
        raise StopIteration


def range(first: ScalarLike, end: Optional[ScalarLike] = None, step: Optional[ScalarLike] = None) -> _Loop:
    """A loop of the program, with the arguments of Python's `range`: `for peer in pld.range(pld.world_size()):`. Python
    runs the body once, to record it; the index is an `i64`. A step that is not positive ends the launch with
    `pld.ArithmeticFault`."""
    if end is None:
        first, end = 0, first
    bounds = (first, end) if step is None else (first, end, step)
    function = lib.pld_for_begin if step is None else lib.pld_for_step_begin
    return _Loop(lambda traced: traced.call(function, *map(scalar, bounds)), lib.pld_for_end)


def ranks(first: ScalarLike, end: Optional[ScalarLike] = None) -> _Loop:
    """A loop over ranks, of the host driver: `for r in pld.ranks(pld.world_size()):`. The index is an `i32`."""
    if end is None:
        first, end = 0, first
    bounds = (first, end)
    return _Loop(lambda traced: traced.call(lib.pld_ranks_begin, *map(scalar, bounds)), lib.pld_ranks_end)
