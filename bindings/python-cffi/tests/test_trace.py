"""Traced functions become the program that they read like; mistakes have the line of the Python statement."""

from __future__ import annotations

import inspect
import re
from typing import Any, Callable

import pytest
from conftest import PROJECT

import pld


def program_of(body: Callable[..., None], **extra: Any) -> pld.Program:
    """A program whose entry has this body."""

    @pld.entry
    def entry(
        x: pld.Tensor[[8], pld.i32],
        y: pld.Out[pld.Tensor[[8], pld.i32]],
        f: pld.InOut[pld.Tensor[[4, 8], pld.f32]],
        w: pld.Window[[8], pld.i32],
        v: pld.Window[[4, 8], pld.f32],
        me: pld.Scalar[pld.i32],
    ) -> None:
        body(x, y, f, w, v, me)

    @pld.host
    def host(
        xs: pld.Tensor[[pld.WORLD, 8], pld.i32],
        ys: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.i32]],
        fs: pld.InOut[pld.Tensor[[pld.WORLD, 4, 8], pld.f32]],
    ) -> None:
        w_buf = pld.alloc_window([8], pld.i32)
        v_buf = pld.alloc_window([4, 8], pld.f32)
        for r in pld.ranks(pld.world_size()):
            entry(xs[r], ys[r], fs[r], pld.window(w_buf, [8], pld.i32), pld.window(v_buf, [4, 8], pld.f32), r, device=r)

    return host


def body_text(body: Callable[..., None]) -> str:
    """The text of the entry's body."""
    text = str(program_of(body))
    assert str(pld.Program.parse(text)) == text
    start = text.index("{\n", text.index("entry"))
    return inspect.cleandoc(text[start + 2 : text.index("\n}", start)])


def line_of(body: Callable[..., None], marked: str = "# here") -> int:
    lines, first = inspect.getsourcelines(body)
    return first + next(i for i, line in enumerate(lines) if marked in line)


def test_programs_read_as_the_examples() -> None:
    from allreduce import l3_allreduce

    text = (PROJECT / "examples" / "pld" / "allreduce.pld").read_text()
    assert str(l3_allreduce) == str(pld.Program.parse(text))


def test_scalars_have_the_names_of_variables() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("scalars"):
            following = (me + 1) % pld.world_size()
            rest = pld.clamp(x[0], 0, 7) - x[1] * 2 // 3
            inside = (0 <= rest) & (rest < 8) | ~(following == me)
            low = pld.min(rest, 3)
            high = pld.max(rest, -3)
            total = pld.sum(x[2], x[3], 5)
            with pld.if_(inside):
                y[0] = pld.select(rest > 2, low, high)
            with pld.else_():
                y[1] = pld.cast(1.5, pld.i32) - pld.cast(True, pld.i32)
            y[2] = -total
            pld.write(y, [3], pld.read(x, [3]) % 5)

    assert body_text(body) == inspect.cleandoc(
        """
        at scalars {
          following = (me + 1) % world
          rest = clamp(x[0], 0, 7) - x[1] * 2 / 3
          inside = rest >= 0 and rest < 8 or not (following == me)
          low = min(rest, 3)
          high = max(rest, -3)
          total = x[2] + x[3] + 5
          if inside {
            y[0] = select(rest > 2, low, high)
          } else {
            y[1] = cast(1.5, i32) - cast(true, i32)
          }
          y[2] = -total
          y[3] = x[3] % 5
        }
        """
    )


def test_words_of_the_language_may_name_variables() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("load"):
            load = x[0] + 1
            größe = load * load
            y[0] = größe

    assert "load_ = x[0] + 1" in body_text(body)


def test_variables_and_arrays() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("count"):
            slots = pld.array(pld.i32, 4)
            total = pld.var(pld.i32, 0)
            for i in pld.range(8):
                slots[x[i] % 4] += 1
                total += x[i]
            for k in pld.range(0, 4, 2):
                y[k] = slots[k]
            total.set(total.get() * 2)
            total -= 1
            total *= 3
            pld.require(total, "<=", 100, peer=me)
            y[7] = total

    assert body_text(body) == inspect.cleandoc(
        """
        at count {
          slots = array i32 [4] = 0
          total = var i32 = 0
          for i in 0..8 {
            v1 = x[i] % 4
            slots[v1] = slots[v1] + 1
            total = total + x[i]
          }
          for k in 0..4 step 2 { y[k] = slots[k] }
          total = total * 2
          total = total - 1
          total = total * 3
          require total <= 100 @me
          y[7] = total
        }
        """
    )


def test_tiles() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("tiles"):
            t = pld.load(f, [0, 0], [2, 8])
            u = pld.full(pld.f32, [2, 8], 0.5)
            t = pld.max(t * 2 + u, -1.0)
            t -= u
            t *= 3
            t /= u
            wide = pld.min(pld.cast(pld.cast(t, pld.f16), pld.f32), u).copy()
            wide.assign(u / 4)
            sums = pld.row_sum(wide)
            pld.store(sums + pld.row_max(t), f, [0, 0])
            pld.store(pld.col_sum(wide) - pld.col_max(t), f, [2, 0])

    assert body_text(body) == inspect.cleandoc(
        """
        at tiles {
          t = load f[0, 0] [2, 8]
          u = full f32 [2, 8] 0.5
          t1 = mul t, 2
          t2 = add t1, u
          t_2 = max t2, -1.0
          t_2 = sub t_2, u
          t_2 = mul t_2, 3
          t_2 = div t_2, u
          t3 = cast t_2 f16
          t4 = cast t3 f32
          t5 = min t4, u
          wide = copy t5
          wide = div u, 4
          sums = row_sum wide
          t6 = row_max t_2
          t7 = add sums, t6
          store t7 -> f[0, 0]
          t8 = col_sum wide
          t9 = col_max t_2
          t10 = sub t8, t9
          store t10 -> f[2, 0]
        }
        """
    )


def test_other_ranks() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        part = pld.slice(v, [1, 0], [2, 8])
        with pld.at("move"):
            pld.put(v, 0, f)
            pld.put(v, me, f, dst_offsets=[1, 0], src_offsets=[me, 0], shape=[1, x[0]], atomic="add")
            pld.put(part, 1, f, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[2, 8], chunk_rows=1, chunk_cols=8, pipeline=True)
            pld.get(f, 1, v)
            pld.get(f, 1, part, dst_offsets=[1, 0], src_offsets=[0, 0], shape=[1, 8])
            pld.get_reduce(f, 0, pld.nranks(v), v, "max")
            flat = pld.flatten(part)
            with_rank = pld.rank(flat)
            pld.get_reduce(y, 0, 2, w, "sum", dst_offsets=[0], src_offsets=[4], shape=[4])
            pld.remote_store(pld.remote_load(v, with_rank, [0, 0], [1, 8]), v, 0, [1, 0], atomic="add")
            pld.notify(w, 0, [me])
            pld.notify(w, 0, [1], 7, op="set")
            pld.wait(w, [me], 1)
            pld.wait(w, [1], 7, cmp="==")

    assert body_text(body) == inspect.cleandoc(
        """
        part = slice v[1, 0] [2, 8]
        at move {
          put v @0 <- f
          put v[1, 0] @me <- f[me, 0] [1, x[0]] add
          put part[0, 0] @1 <- f[0, 0] [2, 8] chunk [1, 8] pipeline
          get f <- v @1
          get f[1, 0] <- part[0, 0] @1 [1, 8]
          get_max f <- v @0..nranks(v)
          flat = flatten part
          with_rank = rank(flat)
          get_sum y[0] <- w[4] @0..2 [4]
          t1 = remote_load v[0, 0] @with_rank [1, 8]
          remote_store t1 -> v[1, 0] @0 add
          notify w[me] @0 += 1
          notify w[1] @0 = 7
          wait w[me] >= 1
          wait w[1] == 7
        }
        """
    )


def test_collectives() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        rows = pld.slice(v, [0, 0], [pld.WORLD, 8])
        with pld.at("all"):
            pld.barrier()
            pld.barrier(v)
            pld.allreduce(v, "max", mode="ring")
            pld.reduce_scatter(rows, "prod", signal=w)
            pld.broadcast(v, 1, mode="direct")
            pld.allgather(rows, pld.slice(f, [0, 0], [1, 8]))
            pld.all_to_all(rows, pld.slice(f, [0, 0], [pld.WORLD, 8]), mode="mesh")
            counts = pld.slice(x, [0], [pld.WORLD])
            came = pld.slice(y, [0], [pld.WORLD])
            pld.all_to_all_v(pld.rows(v, came), pld.rows(f, counts))
            pld.all_to_all_v(pld.rows(v, came, counts), pld.rows(f, counts, counts))

    assert body_text(body) == inspect.cleandoc(
        """
        rows = slice v[0, 0] [world, 8]
        at all {
          barrier
          barrier of v
          allreduce max v mode ring
          reduce_scatter prod rows signal w
          broadcast v root 1 mode direct
          x1 = slice f[0, 0] [1, 8]
          allgather rows <- x1
          x2 = slice f[0, 0] [world, 8]
          all_to_all rows <- x2 mode mesh
          counts = slice x[0] [world]
          came = slice y[0] [world]
          all_to_all_v v, came <- f, counts
          all_to_all_v v, came, counts <- f, counts, counts
        }
        """
    )


def test_tasks() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        pld.manual_dep(w)
        with pld.at("first") as first:
            y[0] = 1
        flag = pld.predicate(x, [0], "!=", 0)
        with pld.spmd("grid", 4, deps=first, no_dep=[y], predicate=flag, allow_early_resolve=True) as grid:
            b = grid.block
            y[b] = b * pld.block_index()
        with pld.manual():
            with pld.at("arrive", deps=[grid]) as arrived:
                pld.defer_wait(w, [0], 1)
        both = pld.join("both", [first, arrived])
        done = pld.extern_task("kernel", pld.In(x), pld.InOut(f), pld.Out(y), me, 2.5, blocks=3, deps=[both])
        with pld.at("last", deps=done):
            y[1] = 2

    assert body_text(body) == inspect.cleandoc(
        """
        first = at first {
          y[0] = 1
        }
        grid = spmd grid [4] deps [first] no_dep [y] predicate x[0] != 0 allow_early_resolve as b {
          y[b] = b * b
        }
        manual {
          arrived = at arrive deps [grid] {
            defer_wait w[0] >= 1
          }
        }
        both = at both deps [first, arrived] {}
        done = extern kernel(x in, f inout, y out, me, 2.5) [3] deps [both]
        at last deps [done] {
          y[1] = 2
        }
        """
    )


def test_sizes_and_the_host_driver() -> None:
    n, d = pld.dim("n"), pld.const("D", 64)
    assert list(range(d))[-1] == 63 and d / 2 != pld.WORLD

    @pld.entry
    def e(x: pld.Tensor[[n, d * 2], pld.bf16], w: pld.Window[[pld.WORLD * d], pld.i8], me: pld.Scalar[pld.i64]) -> None:
        with pld.at("nothing"):
            y = n - me
            pld.require(y + d, ">", 2 - pld.WORLD % 3)

    @pld.host
    def sizes(xs: pld.Tensor[[pld.WORLD, n, d * 2], pld.bf16], k: pld.Scalar[pld.i32]) -> None:
        low = pld.domain_range(0, pld.WORLD / 2)
        rest = pld.domain([1, 0])
        a = pld.alloc_window([pld.WORLD * d], pld.i8)
        b = pld.alloc_window([pld.WORLD * d], pld.i8, domain=rest)
        c = pld.alloc_window_bytes(4 * d)
        pld.alloc_window_bytes(d, domain=low, name="spare")
        view = pld.window(c, [d], pld.f32)
        pld.allreduce(view, cores=2)
        for r in pld.ranks(2):
            with pld.if_(k > 0):
                e(xs[r], w=pld.window(a, [pld.WORLD * d], pld.i8), me=r, device=r)
        for r in pld.ranks(0, 2):
            e(xs[r], pld.window(b, [pld.WORLD * d], pld.i8), pld.let("twice", r * 2), device=r)

    assert str(sizes) == inspect.cleandoc(
        """
        program sizes
        dim n
        const D = 64

        entry e(x: tensor[n, D * 2] bf16 in, w: window[world * D] i8, me: i64) {
          at nothing {
            y = n - me
            require y + D > 2 - world % 3
          }
        }

        host (xs: tensor[world, n, D * 2] bf16 in, k: i32) {
          low  = domain 0..world / 2
          rest = domain [1, 0]
          a     = alloc_window [world * D] i8
          b     = alloc_window [world * D] i8 in rest
          c     = alloc_window bytes 4 * D
          spare = alloc_window bytes D in low
          view = window c [D] f32
          allreduce sum view cores 2
          ranks r in 0..2 {
            if k > 0 {
              w = window a [world * D] i8
              dispatch e(xs[r], w, r) device r
            }
          }
          ranks r in 0..2 {
            w = window b [world * D] i8
            twice = r * 2
            dispatch e(xs[r], w, twice) device r
          }
        }
        """
    ) + "\n"


def test_diagnostics_have_the_line_of_the_statement() -> None:
    def helper(y: Any) -> None:
        y[0] = 1.5  # here

    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("a"):
            helper(y)
            pld.notify(v, 0, [0, 0])  # here

    with pytest.raises(pld.VerifyError) as raised:
        program_of(body)
    found = [(d.file, d.line, d.severity) for d in raised.value.diagnostics if d.severity == "error"]
    assert found == [(__file__, line_of(helper), "error"), (__file__, line_of(body), "error")]
    assert f"{__file__}:{line_of(body)}: error[" in str(raised.value)


def test_diagnostics_of_parameters_have_the_line_of_the_function() -> None:
    @pld.entry
    def e(x: pld.Tensor[[1, 1, 1, 1, 1, 1, 1, 1, 1], pld.i32]) -> None:
        pass

    with pytest.raises(pld.VerifyError) as raised:

        @pld.host
        def h(xs: pld.Tensor[[pld.WORLD, 1], pld.i32]) -> None:
            for r in pld.ranks(1):
                e(xs[r], device=r)

    assert [(d.message, d.line) for d in raised.value.diagnostics] == [("the shape has 9 dimensions", e.place[1])]


def _iterate(x: Any, y: Any, w: Any, me: Any) -> None:
    for _ in x:
        pass


def _if(x: Any, y: Any, w: Any, me: Any) -> None:
    if me == 0:
        y[0] = 1


def _and(x: Any, y: Any, w: Any, me: Any) -> None:
    y[0] = pld.select(x[0] > 1 and x[1] > 1, 1, 2)


def _not(x: Any, y: Any, w: Any, me: Any) -> None:
    with pld.if_(not x[0] > 1):
        y[0] = 1


def _chain(x: Any, y: Any, w: Any, me: Any) -> None:
    with pld.if_(0 < x[0] < 4):
        y[0] = 1


def _range(x: Any, y: Any, w: Any, me: Any) -> None:
    for i in range(me):
        y[i] = 1


def _world_range(x: Any, y: Any, w: Any, me: Any) -> None:
    for i in range(pld.WORLD):
        y[i] = 1


def _float(x: Any, y: Any, w: Any, me: Any) -> None:
    y[0] = float(x[0])


def _in(x: Any, y: Any, w: Any, me: Any) -> None:
    y[0] = 1 if me in x else 0


def _python_slice(x: Any, y: Any, w: Any, me: Any) -> None:
    y[0:4] = x[1]


def _break(x: Any, y: Any, w: Any, me: Any) -> None:
    for i in pld.range(8):
        y[i] = 1
        break


def _augment(x: Any, y: Any, w: Any, me: Any) -> None:
    n = x[0]
    for i in pld.range(8):
        n += x[i]
    y[0] = n


def _else(x: Any, y: Any, w: Any, me: Any) -> None:
    with pld.if_(me == 0):
        y[0] = 1
    y[1] = 2
    with pld.else_():
        y[0] = 2


def _half_a_region(x: Any, y: Any, w: Any, me: Any) -> None:
    pld.put(w, 0, x, dst_offsets=[0])


def _wrong_word(x: Any, y: Any, w: Any, me: Any) -> None:
    pld.notify(w, 0, [0], op="sub")  # type: ignore[arg-type]


def _wrong_sign(x: Any, y: Any, w: Any, me: Any) -> None:
    pld.wait(w, [0], 1, cmp=">")  # type: ignore[arg-type]


def _no_list(x: Any, y: Any, w: Any, me: Any) -> None:
    pld.wait(w, 0, 1)  # type: ignore[arg-type]


def _bare_tensor(x: Any, y: Any, w: Any, me: Any) -> None:
    pld.extern_task("f", x)


@pytest.mark.parametrize(
    "body, says",
    [
        (_iterate, "a Tensor cannot be iterated over while the program is traced: write `for i in pld.range(n):`"),
        (_if, "Instead of `if x:` write `with pld.if_(x):`"),
        (_and, "of `a and b`, `a or b`, `not a` write `a & b`, `a | b`, `~a`"),
        (_not, "write `a & b`, `a | b`, `~a`"),
        (_chain, "of `a < b < c` write `(a < b) & (b < c)`"),
        (_range, "for `range(n)` write `pld.range(n)`"),
        (_world_range, "world is not known while a program is traced"),
        (_float, "write `pld.cast(x, pld.f32)`"),
        (_in, "`in` has no meaning for a Tensor"),
        (_python_slice, "a part of a tensor is pld.slice(x, offsets, shape)"),
        (_break, "this loop was left before its end"),
        (_augment, "Begin with `x = pld.var(dtype, first)` before the loop"),
        (_else, "follows at once behind the block of a `with pld.if_(...):`"),
        (_half_a_region, "dst_offsets, src_offsets and shape go together"),
        (_wrong_word, "'sub' is none of 'add', 'set'"),
        (_wrong_sign, "'>' is none of '==', '>='"),
        (_no_list, "a list is needed here, such as [0]"),
        (_bare_tensor, "say what the function does with the tensor: pld.In(x), pld.Out(x) or pld.InOut(x)"),
    ],
)
def test_what_cannot_be_traced_says_what_to_write(body: Callable[..., None], says: str) -> None:
    def task(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("task"):
            body(x, y, w, me)

    with pytest.raises((pld.TraceError, ValueError, TypeError), match=re.escape(says)):
        program_of(task)


def test_values_stay_in_their_program() -> None:
    kept: "list[Any]" = []

    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("a"):
            y[0] = kept[0] if kept else 1
        kept.append(me)

    program_of(body)
    with pytest.raises(pld.TraceError, match="this Scalar belongs to another program"):
        program_of(body)


def test_calls_outside_of_traced_functions() -> None:
    with pytest.raises(pld.TraceError, match="this belongs in a traced function"):
        pld.barrier()

    @pld.entry
    def e() -> None:
        pass

    with pytest.raises(pld.TraceError, match="traced function"):
        e(device=0)


def test_parameters_need_types() -> None:
    with pytest.raises(pld.TraceError, match="parameter x of e needs a type"):

        @pld.entry
        def e(x) -> None:  # type: ignore[no-untyped-def]
            pass

    with pytest.raises(pld.TraceError, match=r"pld.Tensor takes a shape and an element type: pld.Tensor\[\[1, 256\]"):
        pld.Tensor[8, pld.f32]
    with pytest.raises(pld.TraceError, match=r"pld.Out\[...\] is for tensors"):
        pld.Out[pld.Window[[8], pld.i32]]


def test_an_exception_in_a_traced_function_comes_out() -> None:
    def body(x: Any, y: Any, f: Any, w: Any, v: Any, me: Any) -> None:
        with pld.at("a"):
            for _ in pld.range(4):
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        program_of(body)
    test_programs_read_as_the_examples()  # and the next program is not disturbed
