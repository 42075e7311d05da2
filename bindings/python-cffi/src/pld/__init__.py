"""Multi-rank exchanges over symmetric window memory: described in Python, verified, compiled, launched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pld._native import info, version
from pld.arguments import as_type
from pld.collectives import (
    all_to_all,
    all_to_all_v,
    allgather,
    allreduce,
    barrier,
    broadcast,
    reduce_scatter,
    rows,
)
from pld.control import (
    at,
    block_index,
    else_,
    if_,
    join,
    manual,
    manual_dep,
    predicate,
    range,
    ranks,
    spmd,
)
from pld.driver import (
    Entry,
    alloc_window,
    alloc_window_bytes,
    domain,
    domain_range,
    entry,
    host,
    window,
)
from pld.dtypes import (
    DType,
    bf16,
    bool_,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from pld.errors import (
    Aborted,
    ArithmeticFault,
    Busy,
    CallbackError,
    CheckError,
    Diagnostic,
    Error,
    Forked,
    InternalError,
    InvalidArgument,
    InvalidState,
    Mismatch,
    NoMemory,
    NoSpace,
    OutOfBounds,
    ParseError,
    PeerLost,
    SystemCallError,
    Timeout,
    TraceError,
    Unsupported,
    VerifyError,
    VersionError,
)
from pld.executable import Executable, LaunchTime, Run
from pld.functions import TaskContext, extern_task, host_task
from pld.ops import (
    array,
    cast,
    clamp,
    col_max,
    col_sum,
    defer_wait,
    flatten,
    full,
    get,
    get_reduce,
    let,
    load,
    max,
    min,
    notify,
    nranks,
    put,
    rank,
    read,
    remote_load,
    remote_store,
    require,
    row_max,
    row_sum,
    select,
    slice,
    store,
    sum,
    var,
    wait,
    write,
)
from pld.parameters import HostParameter
from pld.program import CheckReport, Program
from pld.resident import Resident
from pld.sizes import WORLD, Size, const, dim, world_size
from pld.values import Array, Buffer, Domain, Task, Tile, Var
from pld.world import World

if TYPE_CHECKING:
    # As annotations these take a shape and a type, which no type checker can follow: to it they are Any.
    In: Any
    Out: Any
    InOut: Any
    Scalar: Any
    Tensor: Any
    Window: Any
else:
    from pld.values import In, InOut, Out, Scalar, Tensor, Window

from pld import testing as testing  # noqa: E402  (it needs all of the above)

__version__ = version()
