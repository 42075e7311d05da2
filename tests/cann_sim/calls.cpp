#include "calls.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

namespace cann_sim {
namespace {

// `function:N=code` of CANN_SIM_FAIL; N is 0 for `*`, every call.
struct Order {
  std::string function;
  int64_t call;
  int code;
};

std::vector<Order> orders() {
  std::vector<Order> all;
  const char *text = std::getenv("CANN_SIM_FAIL");
  std::stringstream list(text ? text : "");
  for (std::string order; std::getline(list, order, ',');) {
    const size_t colon = order.find(':'), equals = order.find('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon) {
      std::fprintf(stderr, "CANN_SIM_FAIL: '%s' is not FUNCTION:N=CODE\n", order.c_str());
      std::abort();
    }
    const std::string call = order.substr(colon + 1, equals - colon - 1);
    all.push_back(
        {order.substr(0, colon), call == "*" ? 0 : std::atoll(call.c_str()), std::atoi(order.c_str() + equals + 1)});
  }
  return all;
}

struct Books {
  std::mutex mutex;
  std::map<std::string, int64_t> calls, live;
  const std::vector<Order> faults = orders();
};

// Never destroyed: streams may still run while the process ends.
Books &books() {
  static Books &all = *new Books;
  return all;
}

thread_local const char *entered = "";
thread_local std::string recent, given;

std::string object(const std::map<std::string, int64_t> &counts) {
  std::string text = "{";
  for (const auto &[name, count] : counts)
    text += (text.size() > 1 ? ", \"" : "\"") + name + "\": " + std::to_string(count);
  return text + "}";
}

std::string report() {
  std::scoped_lock lock(books().mutex);
  return "{\"calls\": " + object(books().calls) + ", \"live\": " + object(books().live) + "}\n";
}

// At the end of the process; %p in the file's name is the process.
__attribute__((destructor)) void write_report() {
  const char *name = std::getenv("CANN_SIM_REPORT");
  if (!name) return;
  std::string file = name;
  if (const size_t at = file.find("%p"); at != std::string::npos) file.replace(at, 2, std::to_string(getpid()));
  if (FILE *out = std::fopen(file.c_str(), "w")) {
    std::fputs(report().c_str(), out);
    std::fclose(out);
  }
}

}  // namespace

int enter(const char *function) {
  entered = function;
  std::scoped_lock lock(books().mutex);
  const int64_t call = ++books().calls[function];
  for (const Order &order : books().faults)
    if (order.function == function && (order.call == 0 || order.call == call))
      return fail(order.code, "call %lld was ordered to fail by CANN_SIM_FAIL", static_cast<long long>(call));
  return 0;
}

int fail(int code, const char *format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  recent = std::string("[cann_sim] ") + entered + ": " + text;
  return code;
}

int64_t number(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text && *text ? std::atoll(text) : otherwise;
}

void count_object(const char *kind, int change) {
  std::scoped_lock lock(books().mutex);
  books().live[kind] += change;
}

uint64_t next_kind() {
  static uint64_t last = 0xca00;
  return ++last;
}

}  // namespace cann_sim

using namespace cann_sim;

// The text of the thread's last error, once: then null, as on a card.
EXPORTED const char *aclGetRecentErrMsg() {
  if (recent.empty()) return nullptr;
  given.swap(recent);
  recent.clear();
  return given.c_str();
}

// What CANN_SIM_REPORT gets, now; for tests in this process. The text lives until the thread asks again.
EXPORTED const char *cannSimReport() {
  thread_local std::string text;
  text = report();
  return text.c_str();
}
