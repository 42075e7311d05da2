"""The engine's own functions as tasks: Python callables that see their tensors as numpy arrays."""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from pld._native import constant, ffi, lib, text_of
from pld.control import Predicate, TaskOptions
from pld.dtypes import BY_CODE
from pld.errors import CallbackError, Error, TraceError
from pld.tracing import builder, variable_name
from pld.values import Direction, ScalarLike, Task, Tensor, scalar


class TaskContext:
    """What a call of a function is about. It, and the memory of its arrays, lives until the function returns."""

    def __init__(self, struct_: Any) -> None:
        self._struct = struct_

    @property
    def rank(self) -> int:
        """The rank; for a host task the first rank of the process."""
        return int(self._struct.rank)

    @property
    def nranks(self) -> int:
        """Number of ranks of the world."""
        return int(self._struct.nranks)

    @property
    def core(self) -> int:
        """Which of the rank's cores makes the call, from 0."""
        return int(self._struct.core)

    @property
    def block(self) -> int:
        """The block, from 0."""
        return int(self._struct.block)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self._struct.blocks)

    @property
    def launch(self) -> int:
        """The launch of the executable, from 1."""
        return int(self._struct.launch)

    @property
    def stream(self) -> int:
        """Where ranks are cards, the address of the `aclrtStream` on which an extern task queues its work: its tensors are
        memory of the card then. 0 on CPUs and for host tasks."""
        return int(ffi.cast("uintptr_t", self._struct.stream))

    @property
    def name(self) -> str:
        """Name of the function in the program."""
        return text_of(self._struct.name)

    @property
    def tensors(self) -> Tuple[np.ndarray[Any, Any], ...]:
        """The tensors among the arguments, in order: views of the rank's memory, without a copy. Only what an
        argument's direction says may be done with it."""
        return tuple(_view(self._struct.tensors[i]) for i in range(self._struct.ntensors))

    def integer(self, index: int) -> int:
        """The value number `index`, counted without the tensors, of type `i32`, `i64` or `bool`."""
        if not 0 <= index < self._struct.nscalars:
            raise IndexError(f"value {index} of {self._struct.nscalars}")
        return int(self._struct.scalars[index])

    def real(self, index: int) -> float:
        """The value number `index`, counted without the tensors, of type `f32`."""
        value: float = struct.unpack("d", struct.pack("q", self.integer(index)))[0]
        return value


def _view(tensor: Any) -> np.ndarray[Any, Any]:
    dtype = BY_CODE[tensor.dtype].numpy
    shape = [tensor.shape[i] for i in range(tensor.ndims)]
    strides = [tensor.strides[i] for i in range(tensor.ndims)]
    if 0 in shape:
        return np.empty(shape, dtype)
    elements = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    memory = np.frombuffer(ffi.buffer(tensor.data, elements * dtype.itemsize), dtype)
    return np.lib.stride_tricks.as_strided(memory, shape, [stride * dtype.itemsize for stride in strides])


TaskFunction = Callable[[TaskContext], Optional[int]]
"""A function of the engine. It returns None or 0 if all went well; an exception, or another number, ends the launch on
every rank. It may be called by several threads at once, and must not wait for another task or rank."""


class Function:
    """A Python callable as the library calls it."""

    def __init__(self, function: TaskFunction) -> None:
        self.function = function
        self.errors: List[BaseException] = []
        self.callback: Any = ffi.callback("pld_callback_fn", self._call, error=1)

    def _call(self, context: Any, _: Any) -> int:
        try:
            return int(self.function(TaskContext(context)) or 0)
        except BaseException as error:  # it goes on in the thread that launched
            self.errors.append(error)
            return 1


class Functions:
    """The callables of a program or an executable, by name."""

    def __init__(self, functions: Mapping[str, TaskFunction]) -> None:
        self.functions: Dict[str, Function] = {name: Function(f) for name, f in functions.items()}
        self._names = [ffi.new("char[]", name.encode()) for name in self.functions]
        fields = [(name, f.callback, ffi.NULL) for name, f in zip(self._names, self.functions.values())]
        self.list = ffi.new("pld_callback_t[]", fields)

    def __len__(self) -> int:
        return len(self.functions)


def explain(error: Error, functions: Sequence[Function]) -> Error:
    """An error with what a Python callable has raised as its cause."""
    raised = [f.errors.pop(0) for f in functions if f.errors]
    for function in functions:
        function.errors.clear()
    if raised and isinstance(error, CallbackError):
        error.__cause__ = raised[0]
    return error


Argument = Union[Direction, ScalarLike]
"""An argument of a function: `pld.In(x)`, `pld.Out(y)`, `pld.InOut(z)`, or a scalar."""


def _arguments(args: Sequence[Argument]) -> Tuple[Any, int]:
    list_ = ffi.new("pld_callback_arg_t[]", len(args))
    for place, arg in zip(list_, args):
        if isinstance(arg, Tensor):
            raise TraceError("say what the function does with the tensor: pld.In(x), pld.Out(x) or pld.InOut(x)")
        if isinstance(arg, Direction):
            place.direction = constant("pld_direction", "PLD_", arg.direction)
            place.tensor = arg.tensor._checked()
        else:
            place.scalar = scalar(arg)
    return list_, len(args)


def _function(function: Union[TaskFunction, str]) -> Tuple[bytes, Any]:
    """Name and callback; a string is the name of a function that is given to compile."""
    if isinstance(function, str):
        return function.encode(), ffi.NULL
    name = function.__name__
    known = builder().functions.setdefault(name, Function(function))
    if known.function is not function:
        raise TraceError(f"two functions of this program have the name {name}: a name is one function")
    return name.encode(), known.callback


def extern_task(
    function: Union[TaskFunction, str],
    *args: Argument,
    blocks: ScalarLike = 1,
    deps: Union[Task, Sequence[Task]] = (),
    no_dep: Sequence[Tensor] = (),
    predicate: Optional[Predicate] = None,
    allow_early_resolve: bool = False,
) -> Task:
    """A task of the entry that is the engine's own function, once for each block:
    `answers = pld.extern_task(expert, pld.In(x), pld.Out(y), n, blocks=4, deps=[placed])`. It waits for other tasks, and
    they for it, as `at` says, by what the arguments say is done with the tensors. A window among them is this rank's
    memory. Its name in the program is the function's; a string names one that is given to `World.compile`."""
    task = Task(variable_name())
    name, callback = _function(function)
    options = TaskOptions(deps, no_dep, predicate, allow_early_resolve)
    call = (name, callback, ffi.NULL, *_arguments(args), scalar(blocks), options.struct)
    task._end(builder().call(lib.pld_extern_task, *call))
    return task


def host_task(function: Union[TaskFunction, str], *args: Argument) -> None:
    """The engine's own function on the host, once a launch and process: after all dispatches of the host driver, when
    the ranks of this process have done their part. Tensors are those of the host driver, whole."""
    name, callback = _function(function)
    builder().call(lib.pld_host_task, name, callback, ffi.NULL, *_arguments(args))
