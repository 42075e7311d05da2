/// @file pld.hpp
/// libpld for C++17 and later: the C interface with values, expressions, lambdas and owners.
///
/// The headers are thin: each function says what it does in a line, and the function of pld.h that it calls says the
/// rest - whether it is local or collective, its thread rule, its ordering effect and its errors. `docs/cpp.md` is the
/// guide.
///
/// Errors. A function that can fail exists twice: `launch` throws pld::Error, `try_launch` is noexcept and returns a
/// Status or a Result. Where exceptions are turned off, only the second ones exist. Builder calls cannot fail: mistakes
/// are remembered with the line of the call, and Program::finish reports them together.
///
/// Ownership. Program, World, Executable, Run and Resident are handles: moved, never copied. All else are small values.
#ifndef PLD_PLD_HPP
#define PLD_PLD_HPP

#include <pld/arg.hpp>
#include <pld/callback.hpp>
#include <pld/check.hpp>
#include <pld/collective.hpp>
#include <pld/control.hpp>
#include <pld/dtype.hpp>
#include <pld/error.hpp>
#include <pld/executable.hpp>
#include <pld/handle.hpp>
#include <pld/host.hpp>
#include <pld/info.hpp>
#include <pld/location.hpp>
#include <pld/program.hpp>
#include <pld/resident.hpp>
#include <pld/run.hpp>
#include <pld/scalar.hpp>
#include <pld/shape.hpp>
#include <pld/signal.hpp>
#include <pld/span.hpp>
#include <pld/task.hpp>
#include <pld/tensor.hpp>
#include <pld/tile.hpp>
#include <pld/transfer.hpp>
#include <pld/world.hpp>

/// The C++ layer: what builds programs is here as functions, what lives is here as classes.
namespace pld {}

#endif
