/* NULL to every function: an error or nothing, never a crash. */
#include "pld_test.h"

#define INVALID(call)                                   \
  do {                                                  \
    CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, call);       \
    CHECK_ERROR("NULL");                                \
  } while (0)

int main(void) {
  pld_scalar_t s = PLD_INT(1);
  pld_tensor_t x = {0};
  pld_tile_t t = {0};
  pld_var_t v = {0};
  pld_array_t a = {0};
  pld_buffer_t b = {0};
  pld_domain_t d = {0};
  pld_entry_t e = {0};
  pld_task_t task = {0};
  pld_collective_options_t collective = pld_collective_defaults();
  pld_world_t *world = test_world(1, 0);
  pld_program_t *p = test_shift_finished(4), *out = NULL;
  test_deadline(20);

  CHECK(pld_program_create(NULL) == NULL);
  INVALID(pld_program_finish(NULL, NULL, NULL));
  INVALID(pld_program_parse("program x", 9, NULL, NULL, NULL, NULL));
  INVALID(pld_program_print(NULL, NULL, NULL));
  INVALID(pld_program_print(p, NULL, NULL));
  INVALID(pld_program_expand(NULL, NULL, &out));
  INVALID(pld_program_expand(p, NULL, NULL));
  INVALID(pld_expand_options_init(NULL, sizeof(pld_expand_options_t)));
  INVALID(pld_collective_options_init(NULL, sizeof(pld_collective_options_t)));
  CHECK(out == NULL);
  pld_program_destroy(NULL);
  CHECK(pld_loc(NULL, "file", 1) == NULL);

  /* Builder calls without a program say so, and return what later calls ignore. */
  CHECK(pld_dim(NULL, "n") < -1);
  CHECK(pld_dim_const(NULL, "D", 4) < -1);
  CHECK(pld_dim_of(NULL, s) < -1);
  CHECK(pld_dim_value(NULL, 4).id != 0);
  CHECK(pld_world_size(NULL).id != 0);
  CHECK(pld_entry_begin(NULL, "e").id != 0);
  pld_entry_end(NULL);
  CHECK(pld_param_tensor(NULL, "x", PLD_DTYPE_F32, PLD_DIMS(1), PLD_IN).id != 0);
  CHECK(pld_param_window(NULL, "x", PLD_DTYPE_F32, PLD_DIMS(1)).id != 0);
  CHECK(pld_param_scalar(NULL, "x", PLD_DTYPE_F32).id != 0);
  pld_at_begin(NULL, "t", NULL);
  CHECK(pld_spmd_begin(NULL, "t", s, NULL).id != 0 && pld_block_index(NULL).id != 0);
  CHECK(pld_task_end(NULL).id != 0 && pld_join(NULL, "t", PLD_TASKS(task)).id != 0);
  pld_task_name(NULL, task, "t");
  pld_manual_begin(NULL);
  pld_manual_end(NULL);
  pld_manual_dep(NULL, x);
  CHECK(pld_extern_task(NULL, "t", NULL, NULL, PLD_CALLBACK_ARGS(pld_in(x)), s, PLD_DEPS(task)).id != 0);
  pld_host_task(NULL, "t", NULL, NULL, NULL, 0);
  pld_barrier(NULL, x, NULL);
  pld_allreduce(NULL, x, PLD_COMBINE_SUM, NULL);
  pld_reduce_scatter(NULL, x, PLD_COMBINE_SUM, &collective);
  pld_broadcast(NULL, x, s, NULL);
  pld_allgather(NULL, x, x, NULL);
  pld_all_to_all(NULL, x, x, NULL);
  pld_all_to_all_v(NULL, pld_rows(x, x), pld_rows_at(x, x, x), NULL);
  CHECK(pld_add(NULL, s, s).id != 0 && pld_sub(NULL, s, s).id != 0 && pld_mul(NULL, s, s).id != 0);
  CHECK(pld_div(NULL, s, s).id != 0 && pld_mod(NULL, s, s).id != 0);
  CHECK(pld_min(NULL, s, s).id != 0 && pld_max(NULL, s, s).id != 0);
  CHECK(pld_and(NULL, s, s).id != 0 && pld_or(NULL, s, s).id != 0 && pld_not(NULL, s).id != 0);
  CHECK(pld_eq(NULL, s, s).id != 0 && pld_ne(NULL, s, s).id != 0 && pld_lt(NULL, s, s).id != 0);
  CHECK(pld_le(NULL, s, s).id != 0 && pld_gt(NULL, s, s).id != 0 && pld_ge(NULL, s, s).id != 0);
  CHECK(pld_neg(NULL, s).id != 0 && pld_sum(NULL, s, s, s).id != 0 && pld_clamp(NULL, s, s, s).id != 0);
  CHECK(pld_select(NULL, s, s, s).id != 0 && pld_cast(NULL, s, PLD_DTYPE_I32).id != 0);
  CHECK(pld_float(NULL, 1).id != 0 && pld_bool(NULL, 1).id != 0 && pld_let(NULL, "s", s).id != 0);
  CHECK(pld_for_begin(NULL, s, s).id != 0 && pld_for_step_begin(NULL, s, s, s).id != 0);
  pld_for_end(NULL);
  pld_if_begin(NULL, s);
  pld_else(NULL);
  pld_if_end(NULL);
  CHECK(pld_var(NULL, "v", PLD_DTYPE_I32, s).id != 0 && pld_var_get(NULL, v).id != 0);
  pld_var_set(NULL, v, s);
  CHECK(pld_array(NULL, "a", PLD_DTYPE_I32, 4, s).id != 0 && pld_array_get(NULL, a, s).id != 0);
  pld_array_set(NULL, a, s, s);
  pld_require(NULL, s, PLD_CMP_EQ, s, pld_no_scalar());
  CHECK(pld_flatten(NULL, x).id != 0);
  CHECK(pld_slice(NULL, x, PLD_AT(s), PLD_DIMS(1)).id != 0 && pld_read(NULL, x, PLD_AT(s)).id != 0);
  pld_tensor_name(NULL, x, "x");
  pld_write(NULL, x, PLD_AT(s), s);
  CHECK(pld_load(NULL, x, PLD_AT(s), PLD_DIMS(1)).id != 0);
  pld_store(NULL, t, x, PLD_AT(s));
  CHECK(pld_tile_full(NULL, PLD_DTYPE_F32, PLD_DIMS(1), s).id != 0);
  CHECK(pld_tile_cast(NULL, t, PLD_DTYPE_F32).id != 0 && pld_tile_copy(NULL, t).id != 0);
  pld_tile_assign(NULL, t, t);
  pld_tile_name(NULL, t, "t");
  CHECK(pld_tile_add(NULL, t, t).id != 0 && pld_tile_sub(NULL, t, t).id != 0 && pld_tile_mul(NULL, t, t).id != 0);
  CHECK(pld_tile_div(NULL, t, t).id != 0 && pld_tile_max(NULL, t, t).id != 0 && pld_tile_min(NULL, t, t).id != 0);
  CHECK(pld_tile_adds(NULL, t, s).id != 0 && pld_tile_subs(NULL, t, s).id != 0 && pld_tile_muls(NULL, t, s).id != 0);
  CHECK(pld_tile_divs(NULL, t, s).id != 0 && pld_tile_maxs(NULL, t, s).id != 0 && pld_tile_mins(NULL, t, s).id != 0);
  CHECK(pld_tile_row_sum(NULL, t).id != 0 && pld_tile_row_max(NULL, t).id != 0);
  CHECK(pld_tile_col_sum(NULL, t).id != 0 && pld_tile_col_max(NULL, t).id != 0);
  pld_put(NULL, x, s, x, NULL);
  pld_get(NULL, x, s, x, PLD_REGION(PLD_AT(s), PLD_AT(s), PLD_DIMS(1)));
  pld_get_reduce(NULL, x, s, s, x, PLD_COMBINE_SUM, NULL);
  CHECK(pld_remote_load(NULL, x, s, PLD_AT(s), PLD_DIMS(1)).id != 0);
  pld_remote_store(NULL, t, x, s, PLD_AT(s), PLD_ATOMIC_NONE);
  CHECK(pld_rank(NULL, x).id != 0 && pld_nranks(NULL, x).id != 0);
  pld_notify(NULL, x, s, PLD_AT(s), s, PLD_NOTIFY_ADD);
  pld_wait(NULL, x, PLD_AT(s), s, PLD_WAIT_GE);
  pld_defer_wait(NULL, x, PLD_AT(s), s);
  CHECK(pld_host_tensor(NULL, "x", PLD_DTYPE_F32, PLD_DIMS(1), PLD_IN).id != 0);
  CHECK(pld_host_scalar(NULL, "x", PLD_DTYPE_F32).id != 0);
  CHECK(pld_alloc_window(NULL, "x", PLD_DTYPE_F32, PLD_DIMS(1)).id != 0);
  CHECK(pld_alloc_window_bytes(NULL, "x", s).id != 0);
  CHECK(pld_domain_create(NULL, "d", &s, 1).id != 0 && pld_domain_range(NULL, "d", s, s).id != 0);
  CHECK(pld_alloc_window_in(NULL, d, "x", PLD_DTYPE_F32, PLD_DIMS(1)).id != 0);
  CHECK(pld_alloc_window_bytes_in(NULL, d, "x", s).id != 0);
  CHECK(pld_window(NULL, b, PLD_DTYPE_F32, PLD_DIMS(1)).id != 0);
  CHECK(pld_ranks_begin(NULL, s, s).id != 0);
  pld_ranks_end(NULL);
  CHECK(pld_slice_rank(NULL, x, s).id != 0);
  pld_dispatch(NULL, e, s, PLD_ARGS(pld_of_tensor(x)));
  CHECK_ERROR("the program is NULL");

  INVALID(pld_world_options_init(NULL, sizeof(pld_world_options_t)));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_create(NULL, &world));
  INVALID(pld_world_create(NULL, NULL));
  INVALID(pld_world_join(NULL, NULL));
  INVALID(pld_world_abort(NULL, 1));
  INVALID(pld_world_status(NULL));
  pld_world_destroy(NULL);
  INVALID(pld_compile_options_init(NULL, sizeof(pld_compile_options_t)));
  INVALID(pld_task_options_init(NULL, sizeof(pld_task_options_t)));
  {
    pld_executable_t *executable = NULL;
    pld_run_t *run = NULL;
    INVALID(pld_compile(NULL, world, NULL, &executable));
    INVALID(pld_compile(p, NULL, NULL, &executable));
    INVALID(pld_compile(p, world, NULL, NULL));
    INVALID(pld_check_options_init(NULL, sizeof(pld_check_options_t)));
    INVALID(pld_check(NULL, NULL, NULL, NULL, NULL));
    INVALID(pld_launch(NULL, NULL, 0));
    INVALID(pld_submit(NULL, NULL, 0, &run));
    INVALID(pld_submit(NULL, NULL, 0, NULL));
    INVALID(pld_executable_reset(NULL));
    INVALID(pld_executable_time(NULL, 0, NULL));
    CHECK(executable == NULL && run == NULL);
  }
  pld_executable_destroy(NULL);
  {
    pld_resident_t *resident = NULL;
    pld_arg_t arg = pld_arg_resident(NULL);
    char byte = 0;
    INVALID(pld_resident_create(NULL, 0, PLD_DTYPE_F32, PLD_DIMS(1), &resident));
    INVALID(pld_resident_create(world, 0, PLD_DTYPE_F32, NULL, 2, &resident));
    INVALID(pld_resident_create(world, 0, PLD_DTYPE_F32, PLD_DIMS(1), NULL));
    INVALID(pld_resident_create_stacked(NULL, PLD_DTYPE_F32, PLD_DIMS(1), &resident));
    INVALID(pld_resident_create_stacked(world, PLD_DTYPE_F32, NULL, 1, &resident));
    INVALID(pld_resident_create_stacked(world, PLD_DTYPE_F32, PLD_DIMS(1), NULL));
    CHECK(resident == NULL && arg.resident == NULL);
    INVALID(pld_resident_copy_in(NULL, 0, &byte, 1));
    INVALID(pld_resident_copy_out(NULL, 0, &byte, 1));
    CHECK_OK(pld_resident_create(world, 0, PLD_DTYPE_I8, PLD_DIMS(1), &resident));
    INVALID(pld_resident_copy_in(resident, 0, NULL, 1));
    INVALID(pld_resident_copy_out(resident, 0, NULL, 1));
    pld_resident_destroy(resident);
    pld_resident_destroy(NULL);
  }
  INVALID(pld_run_wait(NULL, 0));
  CHECK(pld_run_done(NULL) == 0);
  pld_run_destroy(NULL);

  pld_program_destroy(p);
  pld_world_destroy(world);
  return 0;
}
