/// @file program.hpp
/// Programs: building them, from C++ or text, and what they can be asked.
#ifndef PLD_PROGRAM_HPP
#define PLD_PROGRAM_HPP

#include <pld.h>
#include <pld/callback.hpp>
#include <pld/dtype.hpp>
#include <pld/error.hpp>
#include <pld/handle.hpp>
#include <pld/host.hpp>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/scope.hpp>
#include <pld/shape.hpp>
#include <pld/task.hpp>
#include <pld/tensor.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pld {

/// How ranks reach each other's memory. `automatic` is the default of the function that is called; `hosts` maps memory
/// within a host, and goes over OpenUCX between hosts.
enum class Transport : pld_transport_t {
  automatic = PLD_TRANSPORT_DEFAULT,
  thread = PLD_TRANSPORT_THREAD,
  shm = PLD_TRANSPORT_SHM,
  hccl = PLD_TRANSPORT_HCCL,
  ucx = PLD_TRANSPORT_UCX,
  hosts = PLD_TRANSPORT_AUTO,
};

/// How a task graph is written.
enum class GraphFormat : pld_graph_format_t {
  text = PLD_GRAPH_TEXT,
  dot = PLD_GRAPH_DOT,
};

/// The world that a program is written out for; see `pld_expand_options_t`.
struct ExpandOptions {
  /// Number of ranks; 0 is 2.
  std::uint32_t nranks = 0;
  /// The transport.
  Transport transport = Transport::automatic;
  /// There are more ranks than CPUs.
  bool crowded = false;
  /// As an unchecked executable.
  bool unchecked = false;
  /// How many ranks run on each host, side by side; 0: all run on one.
  std::uint32_t ranks_per_host = 0;
};

/// A parameter of the host driver: an argument of a launch.
struct Param {
  /// Its name.
  std::string name;
  /// Whether it is a tensor, and not a scalar.
  bool is_tensor;
  /// The type of its elements, or of the scalar.
  DType dtype;
  /// What is done with it.
  Direction direction;
  /// Whether every rank has a part of the tensor, along its first dimension.
  bool sliced;
  /// The extents of the whole tensor, outermost first; -1 for one that is not known before a launch, or without the
  /// number of ranks.
  std::vector<std::int64_t> shape;
};

/// A program and, until it is finished, its builder. Builder calls need no check: mistakes are remembered with the line
/// of the call, and `finish` reports them together. One thread at a time may build a program; a finished one may be
/// used by any number of threads. If a body throws, the program may only be destroyed.
class Program : public Handle<pld_program_t, pld_program_destroy> {
 public:
  using Handle::Handle;

  /// Begins a program with this name (letters, digits and `_`, as every name).
  explicit Program(const std::string &name) : Handle(pld_program_create(name.c_str())) {}

  /// @name What has a name
  /// @{

  /// A dimension that is bound at launch, from the shapes of the arguments; see `pld_dim`.
  Dim dim(const std::string &name, Location at = Location::here()) {
    return Dim(capi(), (pld_dim)(here(at), name.c_str()));
  }

  /// A constant, such as `D = 4096`.
  Dim constant(const std::string &name, std::int64_t value, Location at = Location::here()) {
    return Dim(capi(), (pld_dim_const)(here(at), name.c_str(), value));
  }

  /// The number of ranks of the world, where nothing else tells the program: `2 * prog.world_size()` before the
  /// entries.
  Scalar world_size(Location at = Location::here()) const { return Scalar(capi(), (pld_world_size)(here(at))); }

  /// Builds an entry: `body()` makes its parameters first, then its tasks. Entries come before the host driver.
  template <class Body>
  Entry entry(const std::string &name, Body &&body, Location at = Location::here()) {
    const detail::Scope scope(capi(), detail::Part::entry);
    const Entry made(capi(), (pld_entry_begin)(here(at), name.c_str()));
    std::forward<Body>(body)();
    (pld_entry_end)(here(at));
    return made;
  }

  /// Builds the host driver: `body()` makes its parameters first, then windows and dispatches.
  template <class Body>
  void host(Body &&body) {
    const detail::Scope scope(capi(), detail::Part::host);
    std::forward<Body>(body)();
  }

  /// @}
  /// @name Parameters, of the open entry or of the host driver
  /// @{

  /// A tensor parameter: in an entry, memory of this rank only; of the host driver, an argument of a launch, of which
  /// every rank has a part if the first extent is `world_size` and it is sliced by rank.
  Tensor tensor(const std::string &name, DType dtype, Shape shape, Direction direction,
                Location at = Location::here()) {
    const auto make = detail::Scope::part() == detail::Part::entry ? pld_param_tensor : pld_host_tensor;
    return Tensor(capi(), make(here(at), name.c_str(), pld::capi(dtype), shape.data(), shape.size(),
                               static_cast<pld_direction_t>(direction)));
  }

  /// A tensor that is only read.
  Tensor in(const std::string &name, DType dtype, Shape shape, Location at = Location::here()) {
    return tensor(name, dtype, shape, Direction::in, at);
  }
  /// A tensor that is written.
  Tensor out(const std::string &name, DType dtype, Shape shape, Location at = Location::here()) {
    return tensor(name, dtype, shape, Direction::out, at);
  }
  /// A tensor that is read and written.
  Tensor inout(const std::string &name, DType dtype, Shape shape, Location at = Location::here()) {
    return tensor(name, dtype, shape, Direction::inout, at);
  }

  /// A scalar parameter, of type I32, I64, F32 or BOOL; of the host driver, an argument of a launch.
  Scalar scalar(const std::string &name, DType dtype, Location at = Location::here()) {
    const auto make = detail::Scope::part() == detail::Part::entry ? pld_param_scalar : pld_host_scalar;
    return Scalar(capi(), make(here(at), name.c_str(), pld::capi(dtype)));
  }

  /// A window parameter of the open entry: memory that every rank has and the others can reach.
  Tensor window(const std::string &name, DType dtype, Shape shape, Location at = Location::here()) {
    return Tensor(capi(), (pld_param_window)(here(at), name.c_str(), pld::capi(dtype), shape.data(), shape.size()));
  }

  /// @}
  /// @name Tasks of the open entry
  /// @{

  /// A task: `body()` makes what it does. The only place of loads, stores, transfers, signals and tile arithmetic;
  /// `pld_at_begin` says in which order tasks run.
  template <class Body>
  Task at(const std::string &name, const TaskOptions &options, Body &&body, Location at = Location::here()) {
    options.capi([&](const pld_task_options_t *o) { (pld_at_begin)(here(at), name.c_str(), o); });
    std::forward<Body>(body)();
    return Task(capi(), (pld_task_end)(here(at)));
  }

  /// A task without options.
  template <class Body, class = std::enable_if_t<std::is_invocable_v<Body>>>
  Task at(const std::string &name, Body &&body, Location at = Location::here()) {
    return this->at(name, TaskOptions(), std::forward<Body>(body), at);
  }

  /// A task that is a grid of `blocks` blocks: `body(block)` makes what each of them does, the block being a scalar.
  /// They run in any order, also at the same time; the task is over when all are.
  template <class Body>
  Task spmd(const std::string &name, Operand blocks, const TaskOptions &options, Body &&body,
            Location at = Location::here()) {
    const pld_scalar_t n = blocks.in(capi());
    const pld_scalar_t block = options.capi([&](const pld_task_options_t *o) {  //
      return (pld_spmd_begin)(here(at), name.c_str(), n, o);
    });
    std::forward<Body>(body)(Scalar(capi(), block));
    return Task(capi(), (pld_task_end)(here(at)));
  }

  /// A grid without options.
  template <class Body, class = std::enable_if_t<std::is_invocable_v<Body, Scalar>>>
  Task spmd(const std::string &name, Operand blocks, Body &&body, Location at = Location::here()) {
    return spmd(name, blocks, TaskOptions(), std::forward<Body>(body), at);
  }

  /// The block of the open grid, as its body gets it.
  Scalar block_index(Location at = Location::here()) const { return Scalar(capi(), (pld_block_index)(here(at))); }

  /// A task that does nothing: it is over when these are, and stands for all of them.
  Task join(const std::string &name, std::initializer_list<Task> tasks, Location at = Location::here()) {
    std::vector<pld_task_t> raw;
    for (const Task &task : tasks) raw.push_back(task.capi());
    return Task(capi(), (pld_join)(here(at), name.c_str(), raw.data(), raw.size()));
  }

  /// A part of the entry in which tasks wait for their `deps` only, and no other task waits for what they touch.
  template <class Body>
  void manual(Body &&body, Location at = Location::here()) {
    (pld_manual_begin)(here(at));
    std::forward<Body>(body)();
    (pld_manual_end)(here(at));
  }

  /// Nobody's accesses to this parameter, or to slices of it, order any tasks.
  void manual_dep(const Tensor &tensor, Location at = Location::here()) { (pld_manual_dep)(here(at), tensor.capi()); }

  /// A task that is the engine's own function, once for each of `blocks` blocks. It waits for other tasks, and they for
  /// it, by its options and by what the arguments say is done with the tensors; see `pld_extern_task`.
  Task extern_task(const std::string &name, const Callback &function, const std::vector<CallbackArg> &arguments,
                   Operand blocks = 1, const TaskOptions &options = {}, Location at = Location::here()) {
    keep(function.kept());
    const std::vector<pld_callback_arg_t> raw = raw_of(arguments);
    const pld_scalar_t n = blocks.in(capi());
    return Task(capi(), options.capi([&](const pld_task_options_t *o) {
      return (pld_extern_task)(here(at), name.c_str(), function.function(), function.user_data(), raw.data(),
                               raw.size(), n, o);
    }));
  }

  /// @}
  /// @name Of the host driver
  /// @{

  /// A window buffer of this shape and element type, on every rank or for the ranks of a domain. It begins zeroed.
  Buffer alloc_window(const std::string &name, DType dtype, Shape shape, Domain domain = {},
                      Location at = Location::here()) {
    const pld_dtype_t d = pld::capi(dtype);
    const pld_buffer_t made =
        domain ? (pld_alloc_window_in)(here(at), domain.capi(), name.c_str(), d, shape.data(), shape.size())
               : (pld_alloc_window)(here(at), name.c_str(), d, shape.data(), shape.size());
    return Buffer(capi(), made, dtype, shape);
  }

  /// A window buffer of so many bytes, for several views of different shapes; `bytes` is made of numbers, the world
  /// size and constants. It begins zeroed.
  Buffer alloc_window_bytes(const std::string &name, Operand bytes, Domain domain = {},
                            Location at = Location::here()) {
    const pld_scalar_t n = bytes.in(capi());
    return Buffer(capi(), domain ? (pld_alloc_window_bytes_in)(here(at), domain.capi(), name.c_str(), n)
                                 : (pld_alloc_window_bytes)(here(at), name.c_str(), n));
  }

  /// A comm domain of these ranks, which number each other by their place in the list; see `pld_domain_create`.
  Domain domain(const std::string &name, std::initializer_list<Operand> ranks, Location at = Location::here()) {
    std::vector<pld_scalar_t> raw;
    for (const Operand &rank : ranks) raw.push_back(rank.in(capi()));
    return Domain((pld_domain_create)(here(at), name.c_str(), raw.data(), raw.size()));
  }

  /// A comm domain of the ranks from `first` up to, but without, `end`.
  Domain domain_range(const std::string &name, Operand first, Operand end, Location at = Location::here()) {
    const pld_scalar_t from = first.in(capi()), to = end.in(capi());
    return Domain((pld_domain_range)(here(at), name.c_str(), from, to));
  }

  /// The engine's own function on the host, once a launch and process, after all dispatches; see `pld_host_task`.
  void host_task(const std::string &name, const Callback &function, const std::vector<CallbackArg> &arguments,
                 Location at = Location::here()) {
    keep(function.kept());
    const std::vector<pld_callback_arg_t> raw = raw_of(arguments);
    (pld_host_task)(here(at), name.c_str(), function.function(), function.user_data(), raw.data(), raw.size());
  }

  /// @}
  /// @name Finished programs
  /// @{

  /// Ends the building, and checks every rule that does not need a world. Gives the findings: warnings. If one is an
  /// error, so is the result, with all of them: Status::verify.
  Result<std::vector<Diagnostic>> try_finish() noexcept {
    std::vector<Diagnostic> found;
    const Status status = detail::status(pld_program_finish(capi(), detail::collect, &found));
    if (status != Status::ok) return Error::last(status, std::move(found));
    return found;
  }

  /// A finished program of text. `file` is the name that findings show; `warnings` gets those if it is given. Errors:
  /// Status::parse and Status::verify, with all findings.
  static Result<Program> try_parse(std::string_view text, const std::string &file = {},
                                   std::vector<Diagnostic> *warnings = nullptr) noexcept {
    std::vector<Diagnostic> found;
    pld_program_t *program = nullptr;
    const Status status = detail::status(pld_program_parse(
        text.data(), text.size(), file.empty() ? nullptr : file.c_str(), detail::collect, &found, &program));
    if (status != Status::ok) return Error::last(status, std::move(found));
    if (warnings != nullptr) *warnings = std::move(found);
    return Program(program);
  }

  /// The finished program as text, which `parse` reads back.
  Result<std::string> try_text() const noexcept {
    return detail::written([&](std::string *to) { return pld_program_print(capi(), detail::append, to); });
  }

  /// The task graph of every entry of the finished program, for `nranks` ranks, or 0 if that is open; see
  /// `pld_program_graph`.
  Result<std::string> try_graph(std::uint32_t nranks = 0, GraphFormat format = GraphFormat::text) const noexcept {
    return detail::written([&](std::string *to) {
      return pld_program_graph(capi(), nranks, static_cast<pld_graph_format_t>(format), detail::append, to);
    });
  }

  /// What a launch of the finished program is given, in order, for `nranks` ranks, or 0 if that is open.
  Result<std::vector<Param>> try_params(std::uint32_t nranks = 0) const noexcept {
    std::vector<Param> params;
    const auto add = [](const pld_param_t *p, void *to) noexcept {
      detail::guarded([&] {
        static_cast<std::vector<Param> *>(to)->push_back(Param{p->name,
                                                               p->kind == PLD_OPERAND_TENSOR,
                                                               static_cast<DType>(p->dtype),
                                                               static_cast<Direction>(p->direction),
                                                               p->sliced != 0,
                                                               {p->shape, p->shape + p->ndims}});
      });
    };
    const Status status = detail::status(pld_program_params(capi(), nranks, add, &params));
    if (status != Status::ok) return Error::last(status);
    return params;
  }

  /// A finished program in which the collectives of this one are written out; see `pld_program_expand`.
  Result<Program> try_expand(const ExpandOptions &options = {}) const noexcept {
    pld_expand_options_t raw;
    Status status = detail::status(pld_expand_options_init(&raw, sizeof raw));
    if (status != Status::ok) return Error::last(status);
    raw.nranks = options.nranks;
    raw.transport = static_cast<pld_transport_t>(options.transport);
    raw.crowded = options.crowded;
    raw.unchecked = options.unchecked;
    raw.ranks_per_host = options.ranks_per_host;
    pld_program_t *program = nullptr;
    status = detail::status(pld_program_expand(capi(), &raw, &program));
    if (status != Status::ok) return Error::last(status);
    return Program(program, kept_);
  }

#if PLD_EXCEPTIONS
  /// As `try_finish`, but throws.
  std::vector<Diagnostic> finish() { return try_finish().value(); }
  /// As `try_parse`, but throws.
  static Program parse(std::string_view text, const std::string &file = {},
                       std::vector<Diagnostic> *warnings = nullptr) {
    return try_parse(text, file, warnings).value();
  }
  /// As `try_text`, but throws.
  std::string text() const { return try_text().value(); }
  /// As `try_graph`, but throws.
  std::string graph(std::uint32_t nranks = 0, GraphFormat format = GraphFormat::text) const {
    return try_graph(nranks, format).value();
  }
  /// As `try_params`, but throws.
  std::vector<Param> params(std::uint32_t nranks = 0) const { return try_params(nranks).value(); }
  /// As `try_expand`, but throws.
  Program expand(const ExpandOptions &options = {}) const { return try_expand(options).value(); }
#endif
  /// @}

 private:
  pld_program_t *here(Location at) const noexcept { return detail::at(capi(), at); }

  void keep(const std::shared_ptr<void> &function) {
    if (function == nullptr) return;
    if (kept_ == nullptr) kept_ = std::make_shared<detail::Kept>();
    static_cast<detail::Kept *>(kept_.get())->push_back(function);
  }

  static std::vector<pld_callback_arg_t> raw_of(const std::vector<CallbackArg> &arguments) {
    std::vector<pld_callback_arg_t> raw;
    for (const CallbackArg &argument : arguments) raw.push_back(argument.capi());
    return raw;
  }
};

}  // namespace pld

#endif
