// The instructions of PTO-ISA that pld's kernels use, for a CPU: each with its documented meaning, and what a card
// would leave undefined as an error (a std::runtime_error).
#pragma once

#include "compute.hpp"
#include "convert.hpp"
#include "move.hpp"
#include "reduce.hpp"
