// What every kernel of libpld uses besides PTO-ISA: the contexts of windows, reports of mistakes, and waits that end.

#pragma once

#include <cstdint>

#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>

#include "pld_scalar.hpp"

namespace pld {

// Windows.

/// The windows of a domain: how many ranks share them, which one this is, and where those of each begin.
struct CommContext {
    uint64_t workSpace;
    uint64_t workSpaceSize;
    uint32_t rankId;
    uint32_t rankNum;
    uint64_t winSize;
    uint64_t windowsIn[64];
    uint64_t windowsOut[64];
};
static_assert(sizeof(CommContext) == 1056, "its layout is that of the host");

/// What lies at an offset in the windows of a peer.
template <typename T>
AICORE inline __gm__ T *peer(__gm__ CommContext *ctx, int64_t number, int64_t bytes)
{
    return (__gm__ T *)(ctx->windowsIn[number] + bytes);
}

/// What lies at an offset in the windows of this rank.
template <typename T>
AICORE inline __gm__ T *own(__gm__ CommContext *ctx, int64_t bytes)
{
    return peer<T>(ctx, ctx->rankId, bytes);
}

// Regions and tiles.

/// A region of memory: address, five extents, and the elements between neighbours in each dimension.
template <typename T>
using Region = pto::GlobalTensor<T, pto::Shape<>, pto::Stride<>>;

/// Elements one behind the other.
template <typename T>
AICORE inline Region<T> row(__gm__ T *address, int64_t cols)
{
    return Region<T>(address, {1, 1, 1, 1, cols}, {cols, cols, cols, cols, 1});
}

/// Rows, so many elements apart.
template <typename T>
AICORE inline Region<T> rows(__gm__ T *address, int64_t count, int64_t cols, int64_t stride)
{
    const int64_t all = count * stride;
    return Region<T>(address, {1, 1, 1, count, cols}, {all, all, all, stride, 1});
}

/// Columns of a tile, rounded up to whole blocks of 32 bytes.
template <typename T>
constexpr int padded(int cols)
{
    return (cols * int(sizeof(T)) + 31) / 32 * 32 / int(sizeof(T));
}

/// A tile that is in use as a whole.
template <typename T, int Rows, int Cols>
using Tile = pto::Tile<pto::TileType::Vec, T, Rows, padded<T>(Cols), pto::BLayout::RowMajor, Rows, Cols>;

/// A tile of which so many rows and columns are in use as its constructor is told.
template <typename T, int Rows, int Cols>
using Chunk =
    pto::Tile<pto::TileType::Vec, T, Rows, padded<T>(Cols), pto::BLayout::RowMajor, pto::DYNAMIC, pto::DYNAMIC>;

/// Adds each element of a tile to what is there, atomically.
template <typename Region, typename Tile>
AICORE inline void store_add(Region &to, Tile &tile)
{
    pto::TSTORE<Tile, Region, pto::AtomicType::AtomicAdd>(to, tile);
}

// Reports: what the host reads of a kernel. The numbers are the host's.

enum FaultKind : uint32_t { BOUNDS = 1, PEER, ARRAY, DIVISION, STEP, REQUIRE, AGREE };

enum ReportState : int32_t { NOTHING, FAILED, WAITING };

/// A mistake that shows only now.
struct Fault {
    uint32_t kind;
    uint32_t site;
    uint32_t dim;
    uint32_t operand;
    int64_t offsets[8];
    int64_t extents[8];
};

/// Whole cache lines, so that blocks do not write each other's.
struct alignas(64) Report {
    int32_t state;
    uint32_t site;
    uint32_t kind;
    uint32_t dim;
    uint32_t operand;
    int32_t cmp;
    int32_t expected;
    int32_t actual;
    uint64_t cell;
    int64_t offsets[8];
    int64_t extents[8];
};
static_assert(sizeof(Report) == 192, "its layout is that of the host");

constexpr uint32_t REPORTS = 64;

/// The report of this block.
AICORE inline __gm__ Report *report_of(__gm__ Report *reports)
{
    return reports + get_block_idx() % REPORTS;
}

/// Writes a line back, and forgets it.
template <typename T>
AICORE inline void flush(__gm__ T *address)
{
    dcci((__gm__ void *)address, cache_line_t::SINGLE_CACHE_LINE);
    dsb(DSB_DDR);
}

/// Publishes a report: its state last.
AICORE inline void publish(__gm__ Report *report, ReportState state)
{
    for (uint32_t line = 0; line < sizeof(Report) / 64; line++) {
        flush((__gm__ uint8_t *)report + 64 * line);
    }
    report->state = state;
    flush(report);
}

/// The host, or another block, wants this rank's kernels to end.
AICORE inline bool is_stopped(__gm__ int32_t *stop)
{
    flush(stop);
    return *(volatile __gm__ int32_t *)stop != 0;
}

/// Reports a mistake, and stops the rank's kernels.
AICORE inline void fail(__gm__ int32_t *stop, __gm__ Report *reports, const Fault &fault)
{
    __gm__ Report *report = report_of(reports);
    report->site = fault.site;
    report->kind = fault.kind;
    report->dim = fault.dim;
    report->operand = fault.operand;
    for (int i = 0; i < 8; i++) {
        report->offsets[i] = fault.offsets[i];
        report->extents[i] = fault.extents[i];
    }
    publish(report, FAILED);
    *(volatile __gm__ int32_t *)stop = 1;
    flush(stop);
}

// Waits.

/// Looks at a cell before a wait reports itself, and looks whether it has to end.
constexpr uint32_t PATIENCE = 1000;

/// Waits for a cell; no if the rank is stopped. Who waits long says so, until it does not wait any more.
AICORE inline bool wait(
    __gm__ int32_t *stop, __gm__ Report *reports, uint32_t site, __gm__ int32_t *cell, int32_t expected,
    pto::comm::WaitCmp cmp)
{
    pto::comm::Signal signal(cell);
    __gm__ Report *report = report_of(reports);
    uint32_t polls = 0;
    while (!pto::comm::TTEST(signal, expected, cmp)) {
        if (polls < PATIENCE) {
            polls++;
            if (polls == PATIENCE) {
                report->site = site;
                report->cmp = cmp == pto::comm::WaitCmp::EQ ? 0 : 1;
                report->expected = expected;
                report->actual = *cell;
                report->cell = (uint64_t)cell;
                publish(report, WAITING);
            }
        } else if (is_stopped(stop)) {
            report->actual = *cell;
            publish(report, WAITING);
            return false;
        }
    }
    if (polls == PATIENCE) {
        publish(report, NOTHING);
    }
    return true;
}

} // namespace pld
