/* Step 6: put and get, bulk transfers between this rank's memory and a peer's window; the program is in put_get.h.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/06_put_get
 */
#include "put_get.h"

int main(void) {
  put_get_run(2);
  return example_result("06_put_get");
}
