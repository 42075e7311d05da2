// What the library says about itself.
#include "test.hpp"

using namespace pld;

int main() {
  test::deadline();
  CHECK(version() == PLD_VERSION);
  const std::string text = std::to_string(PLD_VERSION_MAJOR) + "." + std::to_string(PLD_VERSION_MINOR) + "." +
                           std::to_string(PLD_VERSION_PATCH);
  CHECK(version_string() == text);
  CHECK_CONTAINS(info(), text);
  CHECK_CONTAINS(info(), "PLD_WORLD_SIZE");
  CHECK(*try_info() == info());
}
