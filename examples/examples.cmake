# What the examples in C and in C++ have in common. Their projects define add_example(example), which builds and tests one.

# The same example with another world.
function(add_world example name)
  add_test(NAME ${example}_${name} COMMAND ${example} ${ARGN})
  set_tests_properties(${example}_${name} PROPERTIES TIMEOUT 120)
endfunction()

# The steps of the tutorial: each is also a program in examples/pld, and a page in docs/tutorial shows what the step in C
# prints.
function(add_steps)
  foreach(step 01_hello_rank 02_levels 03_window 04_barrier 05_remote_tiles 06_put_get 07_dynamic_ranks
               08_allreduce_mesh 09_allreduce_two_phase 10_allreduce_ring 11_allreduce_collective 12_broadcast
               13_allgather 14_reduce_scatter 15_all_to_all 16_composed)
    add_example(${step})
    add_world(${step} 1_rank --ranks 1)
    add_world(${step} 3_ranks --ranks 3)
    add_world(${step} 4_ranks --ranks 4)
    add_world(${step} 3_processes --ranks 3 --processes)
    foreach(test same_text shown)
      add_test(NAME ${step}_${test}
               COMMAND ${CMAKE_COMMAND} -DSTEP=$<TARGET_FILE:${step}> -DSOURCE=examples/c/${step}.c
                       -DTEXT=${CMAKE_CURRENT_SOURCE_DIR}/../pld/${step}.pld
                       -DPAGE=${CMAKE_CURRENT_SOURCE_DIR}/../../docs/tutorial/${step}.md
                       -P ${CMAKE_CURRENT_SOURCE_DIR}/../${test}.cmake)
      set_tests_properties(${step}_${test} PROPERTIES TIMEOUT 60)
    endforeach()
  endforeach()
  add_world(11_allreduce_collective expanded --expand)
endfunction()
