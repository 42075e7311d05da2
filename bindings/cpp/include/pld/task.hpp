/// @file task.hpp
/// Tasks, and what they are told besides their bodies. Program::at and its neighbours make them.
#ifndef PLD_TASK_HPP
#define PLD_TASK_HPP

#include <pld.h>
#include <pld/control.hpp>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/tensor.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace pld {

/// A task, for others to depend on.
class Task {
 public:
  /// No task.
  Task() noexcept = default;
  /// A task of the C interface, of this program.
  Task(pld_program_t *program, pld_task_t raw) noexcept : program_(program), raw_(raw) {}

  /// The program; nullptr of no task.
  pld_program_t *program() const noexcept { return program_; }
  /// The task as the C interface has it.
  pld_task_t capi() const noexcept { return raw_; }

 private:
  pld_program_t *program_ = nullptr;
  pld_task_t raw_ = {0};
};

/// The task's id under a name, which the program's text shows where others depend on it.
inline Task let(const std::string &name, const Task &task, Location at = Location::here()) {
  (pld_task_name)(detail::at(task.program(), at), task.capi(), name.c_str());
  return task;
}

/// What a task is told besides its body, call behind call: `deps({push}).when(count.at(0), Cmp::ne, 0)`.
class TaskOptions {
 public:
  /// All defaults.
  TaskOptions() = default;

  /// Tasks that come first, whatever they touch.
  TaskOptions &deps(std::initializer_list<Task> tasks) {
    for (const Task &task : tasks) deps_.push_back(task.capi());
    return *this;
  }
  /// Tensors, or slices, whose accesses by this task order nothing.
  TaskOptions &no_dep(std::initializer_list<Tensor> tensors) {
    for (const Tensor &tensor : tensors) no_dep_.push_back(tensor.capi());
    return *this;
  }
  /// The task is over without having run unless this element, of integers or bools, compares so when it could begin.
  TaskOptions &when(const Place &element, Cmp cmp, std::int64_t value) {
    offsets_ = element.offsets();
    predicate_ = pld_predicate(element.tensor().capi(), nullptr, 0, static_cast<pld_cmp_t>(cmp), value);
    return *this;
  }
  /// Targets that stage tasks ahead may stage those that wait for this one. Never changes a result.
  TaskOptions &allow_early_resolve() {
    early_ = true;
    return *this;
  }

 private:
  friend class Program;

  /// Calls `use` with the options as the C interface has them.
  template <class Use>
  auto capi(Use &&use) const {
    pld_task_options_t o = pld_task_defaults();
    pld_predicate_t predicate;
    o.allow_early_resolve = early_;
    o.deps = deps_.data();
    o.ndeps = deps_.size();
    o.no_dep = no_dep_.data();
    o.n_no_dep = no_dep_.size();
    if (predicate_) {
      predicate = *predicate_;
      predicate.offsets = offsets_.data();
      predicate.noffsets = offsets_.size();
      o.predicate = &predicate;
    }
    return use(&o);
  }

  std::vector<pld_task_t> deps_;
  std::vector<pld_tensor_t> no_dep_;
  std::optional<pld_predicate_t> predicate_;
  Offsets offsets_{};
  bool early_ = false;
};

/// Options of a task that comes after these.
template <class... Tasks>
TaskOptions deps(const Tasks &...tasks) {
  return TaskOptions().deps({tasks...});
}

}  // namespace pld

#endif
