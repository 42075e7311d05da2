/* Every builder call, and a program's life: building, finished, destroyed. */
#include "pld_test.h"

static int32_t collect(const char *text, size_t size, void *user_data) {
  char *all = (char *)user_data;
  strncat(all, text, size);
  return 0;
}

static const char *printed(const pld_program_t *p) {
  static char text[65536];
  text[0] = '\0';
  CHECK_OK(pld_program_print(p, collect, text));
  return text;
}

static int32_t refuse(const char *text, size_t size, void *user_data) {
  (void)text;
  (void)size;
  (void)user_data;
  return 7;
}

/* A program that makes every builder call at least once. */
static pld_program_t *everything(void) {
  pld_program_t *p = pld_program_create("everything");
  pld_dim_t n = pld_dim(p, "n");
  pld_dim_t d = pld_dim_const(p, "D", 32);
  pld_dim_t twice = pld_dim_of(p, pld_mul(p, pld_dim_value(p, d), PLD_INT(2)));
  pld_scalar_t zero = PLD_INT(0);
  pld_entry_t e = pld_entry_begin(p, "work");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(n, d), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(n, d), PLD_INOUT);
  pld_tensor_t w = pld_param_window(p, "w", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, twice));
  pld_tensor_t sig = pld_param_window(p, "sig", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32);
  pld_scalar_t scale = pld_param_scalar(p, "scale", PLD_DTYPE_F32);
  pld_tensor_t part = pld_slice(p, x, PLD_AT(zero, zero), PLD_DIMS(1, d));
  pld_tensor_name(p, part, "part");

  pld_at_begin(p, "scalars", NULL);
  {
    pld_scalar_t a = pld_let(p, "a", pld_cast(p, pld_read(p, part, PLD_AT(zero, PLD_INT(3))), PLD_DTYPE_I32));
    pld_scalar_t b = pld_let(p, "b", pld_sum(p, a, me, PLD_INT(2), pld_neg(p, a)));
    pld_scalar_t c = pld_clamp(p, pld_mod(p, pld_div(p, pld_sub(p, a, b), PLD_INT(3)), PLD_INT(5)), zero, PLD_INT(4));
    pld_scalar_t lo = pld_min(p, a, b), hi = pld_max(p, a, c);
    pld_scalar_t both = pld_and(p, pld_lt(p, lo, hi), pld_not(p, pld_eq(p, a, b)));
    pld_scalar_t either = pld_or(p, pld_or(p, pld_ne(p, a, b), pld_le(p, a, c)),
                                 pld_or(p, pld_gt(p, a, c), pld_ge(p, b, c)));
    pld_scalar_t any = pld_select(p, both, either, pld_bool(p, 1));
    pld_var_t count = pld_var(p, "count", PLD_DTYPE_I32, zero);
    pld_array_t slot = pld_array(p, "slot", PLD_DTYPE_I64, PLD_WORLD, PLD_INT(1));
    pld_scalar_t i, k;
    i = pld_for_begin(p, zero, pld_world_size(p));
    pld_array_set(p, slot, i, pld_add(p, pld_array_get(p, slot, i), i));
    pld_for_end(p);
    k = pld_let(p, "k", pld_for_step_begin(p, zero, PLD_INT(8), PLD_INT(2)));
    pld_if_begin(p, any);
    pld_var_set(p, count, pld_add(p, pld_var_get(p, count), pld_cast(p, k, PLD_DTYPE_I32)));
    pld_else(p);
    pld_write(p, y, PLD_AT(zero, k), pld_mul(p, scale, pld_float(p, 0.5f)));
    pld_if_end(p);
    pld_for_end(p);
  }
  pld_task_end(p);

  pld_at_begin(p, "tiles", NULL);
  {
    pld_tile_t t = pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(1, d));
    pld_tile_t u = pld_tile_full(p, PLD_DTYPE_F32, PLD_DIMS(1, d), pld_float(p, 2.0f));
    pld_tile_t v = pld_tile_copy(p, t);
    pld_tile_t h = pld_tile_cast(p, t, PLD_DTYPE_F16);
    pld_tile_name(p, v, "v");
    pld_tile_assign(p, v, pld_tile_add(p, v, u));
    pld_tile_assign(p, v, pld_tile_sub(p, v, u));
    pld_tile_assign(p, v, pld_tile_mul(p, v, u));
    pld_tile_assign(p, v, pld_tile_div(p, v, u));
    pld_tile_assign(p, v, pld_tile_max(p, v, u));
    pld_tile_assign(p, v, pld_tile_min(p, v, u));
    pld_tile_assign(p, v, pld_tile_adds(p, v, scale));
    pld_tile_assign(p, v, pld_tile_subs(p, v, scale));
    pld_tile_assign(p, v, pld_tile_muls(p, v, scale));
    pld_tile_assign(p, v, pld_tile_divs(p, v, scale));
    pld_tile_assign(p, v, pld_tile_maxs(p, v, scale));
    pld_tile_assign(p, v, pld_tile_mins(p, v, scale));
    pld_tile_assign(p, v, pld_tile_cast(p, h, PLD_DTYPE_F32));
    pld_store(p, pld_tile_row_sum(p, v), y, PLD_AT(zero, zero));
    pld_store(p, pld_tile_row_max(p, v), y, PLD_AT(zero, PLD_INT(1)));
    pld_store(p, pld_tile_col_sum(p, v), y, PLD_AT(zero, zero));
    pld_store(p, pld_tile_col_max(p, v), y, PLD_AT(zero, zero));
  }
  pld_task_end(p);

  pld_at_begin(p, "exchange", NULL);
  {
    pld_scalar_t peer = pld_mod(p, pld_add(p, pld_rank(p, w), PLD_INT(1)), pld_nranks(p, w));
    pld_transfer_t chunked = pld_region(PLD_AT(me, zero), PLD_AT(zero, zero), PLD_DIMS(1, d));
    pld_tile_t t;
    chunked.atomic = PLD_ATOMIC_ADD;
    chunked.chunk_rows = 1;
    chunked.chunk_cols = 16;
    chunked.pipeline = 1;
    pld_put(p, w, peer, x, &chunked);
    pld_put(p, w, peer, x, PLD_REGION(PLD_AT(me, zero), PLD_AT(zero, zero), PLD_DIMS(1, pld_dim_of(p, me))));
    pld_notify(p, sig, peer, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
    pld_wait(p, sig, PLD_AT(me, zero), zero, PLD_WAIT_GE);
    pld_get(p, y, peer, w, PLD_REGION(PLD_AT(zero, zero), PLD_AT(me, zero), PLD_DIMS(1, d)));
    t = pld_remote_load(p, w, peer, PLD_AT(zero, zero), PLD_DIMS(1, d));
    pld_remote_store(p, t, w, peer, PLD_AT(me, zero), PLD_ATOMIC_NONE);
    pld_notify(p, sig, peer, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  }
  pld_task_end(p);
  pld_entry_end(p);

  {
    pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, n, d), PLD_IN);
    pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, n, d), PLD_INOUT);
    pld_scalar_t s = pld_host_scalar(p, "s", PLD_DTYPE_F32);
    pld_buffer_t w_buf = pld_alloc_window_bytes(p, "w_buf", pld_mul(p, pld_world_size(p), PLD_INT(256)));
    pld_buffer_t sig_buf = pld_alloc_window(p, "sig_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
    pld_scalar_t r = pld_ranks_begin(p, zero, pld_world_size(p));
    pld_tensor_t w_view = pld_window(p, w_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, twice));
    pld_tensor_t sig_view = pld_window(p, sig_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
    pld_dispatch(p, e, r,
                 PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                          pld_of_tensor(w_view), pld_of_tensor(sig_view), pld_of_scalar(r), pld_of_scalar(s)));
    pld_ranks_end(p);
  }
  return p;
}

/* A piece of a mixture-of-experts dispatch: rows go to the ranks that the indices say, each into its own lane. */
static void routed_rows(void) {
  enum { D = 64, T = 8, TOPK = 2, LANE = 16 };
  static const char *const expected[] = {
      "for t in 0..clamp(num_tokens, 0, 8) {",
      "eid = indices[t, k]",
      "put recv_x[row, 0] @dst <- x[t, 0] [1, 64]",
  };
  pld_program_t *p = pld_program_create("moe_piece");
  pld_entry_t entry = pld_entry_begin(p, "push_rows");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_I8, PLD_DIMS(T, D), PLD_IN);
  pld_tensor_t indices = pld_param_tensor(p, "indices", PLD_DTYPE_I32, PLD_DIMS(T, TOPK), PLD_IN);
  pld_tensor_t recv_x = pld_param_window(p, "recv_x", PLD_DTYPE_I8,
                                         PLD_DIMS(pld_dim_of(p, pld_mul(p, pld_world_size(p), PLD_INT(LANE))), D));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), num_tokens = pld_param_scalar(p, "num_tokens", PLD_DTYPE_I32);
  pld_scalar_t world = pld_world_size(p), r, tokens;
  pld_tensor_t xs, is;
  pld_buffer_t buffer;
  const char *text;
  size_t i;
  pld_at_begin(p, "dispatch_push", NULL);
  {
    pld_array_t slot = pld_array(p, "slot", PLD_DTYPE_I32, PLD_WORLD, PLD_INT(0));
    pld_scalar_t t = pld_let(p, "t", pld_for_begin(p, PLD_INT(0), pld_clamp(p, num_tokens, PLD_INT(0), PLD_INT(T))));
    pld_scalar_t k = pld_let(p, "k", pld_for_begin(p, PLD_INT(0), PLD_INT(TOPK)));
    pld_scalar_t eid = pld_let(p, "eid", pld_read(p, indices, PLD_AT(t, k)));
    pld_scalar_t dst = pld_let(p, "dst", pld_mod(p, eid, world));
    pld_if_begin(p, pld_ge(p, eid, PLD_INT(0)));
    {
      pld_scalar_t s = pld_array_get(p, slot, dst);
      pld_scalar_t row = pld_let(p, "row", pld_sum(p, pld_mul(p, me, PLD_INT(LANE)), s));
      pld_array_set(p, slot, dst, pld_add(p, s, PLD_INT(1)));
      pld_put(p, recv_x, dst, x, PLD_REGION(PLD_AT(row, PLD_INT(0)), PLD_AT(t, PLD_INT(0)), PLD_DIMS(1, D)));
    }
    pld_if_end(p);
    pld_for_end(p);
    pld_for_end(p);
  }
  pld_task_end(p);
  pld_entry_end(p);
  xs = pld_host_tensor(p, "xs", PLD_DTYPE_I8, PLD_DIMS(PLD_WORLD, T, D), PLD_IN);
  is = pld_host_tensor(p, "is", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, T, TOPK), PLD_IN);
  tokens = pld_host_scalar(p, "tokens", PLD_DTYPE_I32);
  buffer = pld_alloc_window_bytes(p, "recv_buf", pld_mul(p, pld_world_size(p), PLD_INT(LANE * D)));
  r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, entry, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, is, r)),
                        pld_of_tensor(pld_window(p, buffer, PLD_DTYPE_I8,
                                                 PLD_DIMS(pld_dim_of(p, pld_mul(p, world, PLD_INT(LANE))), D))),
                        pld_of_scalar(r), pld_of_scalar(tokens)));
  pld_ranks_end(p);
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  text = printed(p);
  for (i = 0; i < COUNT(expected); i++) CHECK_CONTAINS(text, expected[i]);
  pld_program_destroy(p);
}

int main(void) {
  static const char *const expected[] = {
      "program everything",
      "dim n",
      "const D = 32",
      "entry work(x: tensor[n, D] f32 in, y: tensor[n, D] f32 inout,",
      "w: window[world, D * 2] f32, sig: window[world, 1] i32, me: i32, scale: f32) {",
      "part = slice x[0, 0] [1, D]",
      "at scalars {",
      "a = cast(part[0, 3], i32)",
      "slot = array i64 [world] = 1",
      "step 2",
      "v = add v, ",
      "row_max v",
      "put w[me, 0] @",
      " add chunk [1, 16] pipeline",
      "get y[0, 0] <- w[me, 0] @",
      "remote_load w[0, 0] @",
      "w_buf   = alloc_window bytes world * 256",
      "dispatch work(xs[r], ys[r], w, sig, r, s) device r",
  };
  pld_program_t *p = everything();
  const char *text;
  size_t i;
  test_deadline(20);

  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_program_print(p, refuse, NULL));
  CHECK_ERROR("not finished");
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_program_finish(p, NULL, NULL));
  text = printed(p);
  for (i = 0; i < COUNT(expected); i++) CHECK_CONTAINS(text, expected[i]);
  CHECK_STATUS(PLD_ERR_IO, pld_program_print(p, refuse, NULL));
  CHECK_ERROR("7");

  /* A late builder call spoils the program: it would not be what its author thinks. */
  CHECK(pld_add(p, PLD_INT(1), PLD_INT(2)).id != 0);
  CHECK_ERROR("after pld_program_finish");
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_program_print(p, collect, NULL));
  pld_program_destroy(p);

  /* Destroyed while building, and NULL. */
  p = everything();
  pld_program_destroy(p);
  pld_program_destroy(NULL);

  routed_rows();
  return 0;
}
