// What the steps of the tutorial share. A step is a program and what its tensors have to be; it runs as
//
//   01_hello_rank                           between 2 ranks, threads of this process
//   01_hello_rank --ranks 4 --processes     between 4, a process each
//   01_hello_rank --print                   with its program as text, that of examples/pld/01_hello_rank.pld
#ifndef STEP_HPP
#define STEP_HPP

#include "exchange.hpp"

#include <functional>

namespace step {

// An element of a tensor of a rank.
struct Element {
  std::uint32_t nranks, rank;
  std::size_t row, column;
};

using Value = std::function<double(Element)>;

// A parameter of the host driver: on each rank so many rows (PLD_WORLD: one for each rank) of F32 or I32.
struct Tensor {
  const char *name;
  pld::DType dtype;
  std::int64_t rows, columns;
  Value result = nullptr;  // what has to come out; nullptr: it is an input
};

// An element of an input, in digits: the hundreds are the rank, the tens the row, the ones the column.
inline double input(Element e) { return static_cast<double>(100 * e.rank + 10 * e.row + e.column); }

// The sum of an element of the input over all ranks.
inline double sum(Element e) {
  double sum = 0;
  for (e.rank = 0; e.rank < e.nranks; e.rank++) sum += input(e);
  return sum;
}

// The input of the rank before this one, of the one after it, and row by row of all.
inline double of_previous(Element e) { return input({e.nranks, (e.rank + e.nranks - 1) % e.nranks, e.row, e.column}); }
inline double of_next(Element e) { return input({e.nranks, (e.rank + 1) % e.nranks, e.row, e.column}); }
inline double of_all(Element e) { return input({e.nranks, static_cast<std::uint32_t>(e.row), 0, e.column}); }

// A tensor of the ranks of this process, whose elements are all exact as floats.
class Parts {
 public:
  // The input, or -1.
  Parts(const Tensor &tensor, const example::Ranks &ranks)
      : tensor_(tensor), rows_(tensor.rows == PLD_WORLD ? ranks.nranks : static_cast<std::size_t>(tensor.rows)),
        columns_(static_cast<std::size_t>(tensor.columns)) {
    each(ranks, [&](Element e) {
      const double value = tensor.result ? -1 : input(e);
      ints_.push_back(static_cast<std::int32_t>(value));
      floats_.push_back(static_cast<float>(value));
    });
  }

  pld::Arg arg(const example::Ranks &ranks) {
    const auto rows = static_cast<std::int64_t>(rows_), columns = tensor_.columns;
    return tensor_.dtype == pld::I32 ? ranks.arg(ints_, rows, columns) : ranks.arg(floats_, rows, columns);
  }

  // Every element of a result is right. Shows where the last part begins.
  void check(const example::Ranks &ranks) const {
    if (!tensor_.result) return;
    std::size_t at = 0;
    each(ranks, [&](Element e) {
      example::check(tensor_.name, e.rank, e.row * columns_ + e.column, value(at++), tensor_.result(e));
    });
    std::printf("rank %u has %s =", ranks.first + ranks.driven - 1, tensor_.name);
    for (std::size_t row = 0; row < std::min<std::size_t>(rows_, 4); row++)
      for (std::size_t column = 0; column < std::min<std::size_t>(columns_, 4); column++)
        std::printf("%s%g%s", column == 0 ? " [" : " ", value(at - (rows_ - row) * columns_ + column),
                    column + 1 == columns_ ? "]" : column == 3 ? " ...]" : "");
    std::printf(rows_ > 4 ? " ...\n" : "\n");
  }

 private:
  double value(std::size_t at) const {
    return tensor_.dtype == pld::I32 ? ints_[at] : static_cast<double>(floats_[at]);
  }

  template <class Body>
  void each(const example::Ranks &ranks, Body &&body) const {
    for (std::uint32_t rank = ranks.first; rank < ranks.first + ranks.driven; rank++)
      for (std::size_t row = 0; row < rows_; row++)
        for (std::size_t column = 0; column < columns_; column++) body(Element{ranks.nranks, rank, row, column});
  }

  Tensor tensor_;
  std::size_t rows_, columns_;
  std::vector<std::int32_t> ints_;
  std::vector<float> floats_;
};

// A step: builds the program, runs it with these tensors as arguments, and checks what comes out.
inline int main(int argc, char **argv, const char *name, pld::Program (*build)(), const std::vector<Tensor> &tensors) {
  const auto finished = [&] {
    pld::Program program = build();
    program.finish();
    return program;
  };
  return example::exchange(argc, argv, name, 1, finished, [&](const pld::Program &program, example::Ranks &ranks) {
    std::vector<Parts> parts;
    std::vector<pld::Arg> args;
    for (const Tensor &tensor : tensors) parts.emplace_back(tensor, ranks);
    for (Parts &part : parts) args.push_back(part.arg(ranks));
    if (!ranks.processes()) example::explore(program, ranks.nranks, args);
    pld::Executable executable = pld::compile(program, ranks.world);
    for (std::uint32_t launch = 0; launch < ranks.launches; launch++) executable.launch(args);
    for (const Parts &part : parts) part.check(ranks);
  });
}

}  // namespace step

#endif
