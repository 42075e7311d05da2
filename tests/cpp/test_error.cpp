// Errors: what an exception carries, and results of code without exceptions.
#include "test.hpp"

#include <cstring>

using namespace pld;

int main() {
  test::deadline();
  // Every status has the C interface's number, name and meaning.
  static_assert(capi(Status::ok) == PLD_OK && capi(Status::internal) == PLD_ERR_INTERNAL, "the same numbers");
  CHECK(std::strcmp(name(Status::timeout), "PLD_ERR_TIMEOUT") == 0);
  CHECK(std::strlen(describe(Status::no_space)) > 0);
  for (const Status s : {Status::invalid_argument, Status::invalid_state, Status::busy,
                         Status::version,          Status::forked,        Status::parse,
                         Status::verify,           Status::unsupported,   Status::check,
                         Status::no_memory,        Status::no_space,      Status::io,
                         Status::timeout,          Status::peer_lost,     Status::aborted,
                         Status::mismatch,         Status::out_of_bounds, Status::arithmetic,
                         Status::callback,         Status::internal})
    CHECK(std::strncmp(name(s), "PLD_ERR_", 8) == 0 && std::strcmp(name(s), "PLD_ERR_UNKNOWN") != 0);

  // A parse error has places, the line of text, and a hint, one finding for each mistake.
  try {
    Program::parse("program p\nentry e(x: tensor[1] f32 in) {\n  at t {\n    y = lod x[0]\n  }\n  oops\n}\n", "p.pld");
    CHECK(false);
  } catch (const std::exception &e) {
    const Error &error = dynamic_cast<const Error &>(e);
    CHECK(error.status() == Status::parse && error.diagnostics().size() >= 2);
    const Diagnostic &d = error.diagnostics()[0];
    CHECK(d.severity == Severity::error && d.file == "p.pld" && d.line == 4 && d.column > 0);
    CHECK(d.code.rfind("PLD-P", 0) == 0 && !d.message.empty() && d.schedule.empty());
    CHECK_CONTAINS(d.snippet, "y = lod x[0]");
    CHECK_CONTAINS(d.text, d.message);
    CHECK_CONTAINS(error.what(), "PLD_ERR_PARSE");
    for (const Diagnostic &each : error.diagnostics()) CHECK_CONTAINS(error.what(), each.text);
    CHECK(!error.message().empty() && std::string(e.what()) == error.what());
  }

  // Without findings, the message is this thread's last error.
  CHECK_THROWS(Status::invalid_argument, last_error(), World::create(WorldOptions()));
  CHECK(!last_error().empty());

  // Results.
  Result<World> made = World::try_create([] {
    WorldOptions options;
    options.nranks = 2;
    return options;
  }());
  CHECK(made && made.status() == Status::ok && made->nranks() == 2 && (*made).rank() == -1);
  const Result<World> &constant = made;
  CHECK(constant->nranks() == 2 && (*constant).capi() == made->capi());
  const World taken = std::move(made).value();
  CHECK(taken.nranks() == 2);
  Result<World> failed = World::try_create(WorldOptions());
  CHECK(!failed && failed.status() == Status::invalid_argument && failed.error().message() == last_error());
  CHECK_THROWS(Status::invalid_argument, "ranks", std::move(failed).value());

  // An error may be made, copied, and outlive what it was about.
  const Error own(Status::io, "disk 7 is full");
  const Error copy = own;
  CHECK(copy.status() == Status::io && copy.message() == "disk 7 is full" && copy.diagnostics().empty());
  CHECK_CONTAINS(copy.what(), "PLD_ERR_IO: disk 7 is full");
}
