/* Step 7: the number of ranks is the world's, not the program's: step 6 between 2, 3 and 4 ranks.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/07_dynamic_ranks
 */
#include "put_get.h"

int main(void) {
  uint32_t nranks;
  for (nranks = 2; nranks <= 4; nranks++) put_get_run(nranks);
  return example_result("07_dynamic_ranks");
}
