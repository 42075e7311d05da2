// A region of global memory: rows of bytes, at constant distances in up to four dimensions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pto_sim {

struct Region {
  size_t base, row_bytes;
  int64_t counts[4], strides[4];  // rows, and bytes between them; the last dimension is the innermost

  // Calls this with the address of every row.
  template <class F>
  void each_row(F visit) const {
    for (int64_t a = 0; a < counts[0]; ++a)
      for (int64_t b = 0; b < counts[1]; ++b)
        for (int64_t c = 0; c < counts[2]; ++c)
          for (int64_t d = 0; d < counts[3]; ++d)
            visit(base + static_cast<size_t>(a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]));
  }

  size_t first() const {
    int64_t offset = 0;
    for (int i = 0; i < 4; ++i) offset += std::min<int64_t>(0, (counts[i] - 1) * strides[i]);
    return base + static_cast<size_t>(offset);
  }
  // Bytes from the first to the end of the last.
  size_t span() const {
    size_t bytes = row_bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<size_t>((counts[i] - 1) * std::max(strides[i], -strides[i]));
    return bytes;
  }
};

// Whether two regions share a byte.
inline bool overlap(const Region &a, const Region &b) {
  if (a.first() >= b.first() + b.span() || b.first() >= a.first() + a.span()) return false;
  std::vector<std::pair<size_t, bool>> rows;  // where each begins, and whose it is
  a.each_row([&](size_t row) { rows.emplace_back(row, false); });
  b.each_row([&](size_t row) { rows.emplace_back(row, true); });
  std::sort(rows.begin(), rows.end());
  size_t ends[2] = {0, 0};
  for (const auto &[row, is_b] : rows) {
    if (row < ends[!is_b]) return true;
    ends[is_b] = std::max(ends[is_b], row + (is_b ? b.row_bytes : a.row_bytes));
  }
  return false;
}

}  // namespace pto_sim
