// Signals: notify and wait, and waits that hold no core.
#include "test.hpp"

using namespace pld;
using test::Given;

int main() {
  test::deadline();
  test::same_text(test::program([](const Given &g) {
                    notify(g.sig.at(g.me), 1);
                    notify(g.sig.at(0), g.x(0), 3);
                    notify(g.sig.at(1), g.me, g.n, NotifyOp::set);
                    wait(g.sig.at(g.me), 1);
                    wait(g.sig.at(0), g.n + 1, WaitCmp::eq);
                  }),
                  test::text(R"(
    notify sig[me] @1 += 1
    notify sig[0] @(x[0]) += 3
    notify sig[1] @me = n
    wait sig[me] >= 1
    wait sig[0] == n + 1
)"));
  test::same_text(test::program([](const Given &g) { defer_wait(g.sig.at(g.me), g.n * 2); }),
                  test::text("    defer_wait sig[me] >= n * 2"));
}
