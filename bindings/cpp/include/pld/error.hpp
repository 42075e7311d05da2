/// @file error.hpp
/// What went wrong: statuses, findings, the one exception, and results for code without exceptions.
#ifndef PLD_ERROR_HPP
#define PLD_ERROR_HPP

#include <pld.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
/// Whether functions that throw pld::Error are declared. Where they are not, their `try_` twins do the same.
#define PLD_EXCEPTIONS 1
#else
#define PLD_EXCEPTIONS 0
#endif

namespace pld {

/// How a call ended: `ok`, or what was wrong. `enum pld_status` says what each means.
enum class [[nodiscard]] Status : pld_status_t{
    ok = PLD_OK,
    invalid_argument = PLD_ERR_INVALID_ARGUMENT,
    invalid_state = PLD_ERR_INVALID_STATE,
    busy = PLD_ERR_BUSY,
    version = PLD_ERR_VERSION,
    forked = PLD_ERR_FORKED,
    parse = PLD_ERR_PARSE,
    verify = PLD_ERR_VERIFY,
    unsupported = PLD_ERR_UNSUPPORTED,
    check = PLD_ERR_CHECK,
    no_memory = PLD_ERR_NO_MEMORY,
    no_space = PLD_ERR_NO_SPACE,
    io = PLD_ERR_IO,
    unavailable = PLD_ERR_UNAVAILABLE,
    device = PLD_ERR_DEVICE,
    timeout = PLD_ERR_TIMEOUT,
    peer_lost = PLD_ERR_PEER_LOST,
    aborted = PLD_ERR_ABORTED,
    mismatch = PLD_ERR_MISMATCH,
    out_of_bounds = PLD_ERR_OUT_OF_BOUNDS,
    arithmetic = PLD_ERR_ARITHMETIC,
    callback = PLD_ERR_CALLBACK,
    internal = PLD_ERR_INTERNAL,
};

/// The status as the C interface has it.
constexpr pld_status_t capi(Status status) noexcept { return static_cast<pld_status_t>(status); }

/// Its name, such as `PLD_ERR_TIMEOUT`. Static.
inline const char *name(Status status) noexcept { return pld_status_name(capi(status)); }

/// What it means, in a few words. Static.
inline const char *describe(Status status) noexcept { return pld_status_message(capi(status)); }

/// The full message of the calling thread's last error.
inline std::string last_error() {
  std::string message(pld_last_error(nullptr, 0), '\0');
  if (!message.empty()) pld_last_error(&message[0], message.size() + 1);
  return message;
}

/// How bad a finding is.
enum class Severity : pld_severity_t {
  warning = PLD_SEVERITY_WARNING,
  error = PLD_SEVERITY_ERROR,
};

/// One finding about a program, as `pld_diagnostic_t` has it.
struct Diagnostic {
  /// Error or warning.
  Severity severity;
  /// Line of the source, from 1; 0 if unknown.
  std::uint32_t line;
  /// Column, from 1, of a program that was text; else 0.
  std::uint32_t column;
  /// Stable code of the rule, such as `PLD-V012`.
  std::string code;
  /// Source file; empty if unknown.
  std::string file;
  /// What is wrong, in one line with the numbers.
  std::string message;
  /// The operation as program text, or the line of the text; may be empty.
  std::string snippet;
  /// What would make it right; may be empty.
  std::string hint;
  /// All of it, laid out as a person wants to read it.
  std::string text;
  /// The schedule that shows it, for CheckOptions::replay; empty unless a check has found it.
  std::string schedule;

  /// A copy of a finding of the C interface.
  explicit Diagnostic(const pld_diagnostic_t &d)
      : severity(static_cast<Severity>(d.severity)), line(d.line), column(d.column), code(d.code), file(d.file),
        message(d.message), snippet(d.snippet), hint(d.hint), text(d.text), schedule(d.schedule) {}
};

/// What went wrong: a status, the message with the numbers, and all findings if the call was about a program. The only
/// exception that the library throws.
class Error : public std::exception {
 public:
  /// An error with this message and these findings.
  Error(Status status, std::string message, std::vector<Diagnostic> diagnostics = {})
      : status_(status), message_(std::move(message)), diagnostics_(std::move(diagnostics)) {
    what_ = std::string(name(status)) + ": ";
    if (diagnostics_.empty()) what_ += message_;
    for (const Diagnostic &d : diagnostics_) what_ += "\n" + d.text;
  }

  /// The error that a call of the C interface just returned on this thread, with its message.
  static Error last(Status status, std::vector<Diagnostic> diagnostics = {}) {
    return Error(status, last_error(), std::move(diagnostics));
  }

  /// What kind of error it is.
  Status status() const noexcept { return status_; }
  /// The message, without the status.
  const std::string &message() const noexcept { return message_; }
  /// The findings about the program, in source order, warnings too.
  const std::vector<Diagnostic> &diagnostics() const noexcept { return diagnostics_; }
  /// Status, and the message or, if there are any, the texts of all findings.
  const char *what() const noexcept override { return what_.c_str(); }

 private:
  Status status_;
  std::string message_;
  std::vector<Diagnostic> diagnostics_;
  std::string what_;
};

namespace detail {

#if PLD_EXCEPTIONS
/// Throws the error that the last call returned; apart, to keep it off the path of those that went well.
[[noreturn]] inline void raise(Status status) { throw Error::last(status); }

/// Throws unless the call went well.
inline void check(Status status) {
  if (status != Status::ok) raise(status);
}
#endif

/// A status of the C interface.
constexpr Status status(pld_status_t raw) noexcept { return static_cast<Status>(raw); }

/// Runs `body` where nothing may be thrown; false if something was.
template <class Body>
bool guarded(Body &&body) noexcept {
#if PLD_EXCEPTIONS
  try {
    body();
    return true;
  } catch (...) {
    return false;
  }
#else
  body();
  return true;
#endif
}

/// A pld_diagnostic_fn that collects findings; `user_data` is a vector.
inline void collect(const pld_diagnostic_t *diagnostic, void *user_data) noexcept {
  guarded([&] { static_cast<std::vector<Diagnostic> *>(user_data)->emplace_back(*diagnostic); });
}

}  // namespace detail

/// What a `try_` function returns that makes something: it, or the error.
template <class T>
class [[nodiscard]] Result {
 public:
  /// Success.
  Result(T value) : value_(std::move(value)) {}
  /// Failure.
  Result(Error error) : error_(std::move(error)) {}

  /// Whether it is success.
  explicit operator bool() const noexcept { return value_.has_value(); }
  /// How the call ended.
  Status status() const noexcept { return error_ ? error_->status() : Status::ok; }
  /// The error; only of a failure.
  const Error &error() const noexcept { return *error_; }
  /// What was made; only of a success.
  T &operator*() noexcept { return *value_; }
  /// What was made; only of a success.
  const T &operator*() const noexcept { return *value_; }
  /// What was made; only of a success.
  T *operator->() noexcept { return &*value_; }
  /// What was made; only of a success.
  const T *operator->() const noexcept { return &*value_; }

  /// Gives away what was made. Of a failure throws the error, or aborts where there are no exceptions.
  T value() && {
    if (error_) {
#if PLD_EXCEPTIONS
      throw *std::move(error_);
#else
      std::abort();
#endif
    }
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};

namespace detail {

/// A pld_write_fn that collects text; `user_data` is a string.
inline std::int32_t append(const char *text, std::size_t size, void *user_data) noexcept {
  return guarded([&] { static_cast<std::string *>(user_data)->append(text, size); }) ? 0 : 1;
}

/// What `write(string)`, a call that is given `append`, writes.
template <class Write>
Result<std::string> written(Write &&write) noexcept {
  std::string text;
  const Status status = static_cast<Status>(write(&text));
  if (status != Status::ok) return Error::last(status);
  return text;
}

}  // namespace detail
}  // namespace pld

#endif
