#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

struct Table {
  std::size_t rows, columns, picked;
};

// Called before any thread starts, so that an error in the data reaches the caller.
void check_rows(const std::int32_t* rows, const Table& table, const std::string& name) {
  for (std::size_t i = 0; i < table.picked; ++i)
    if (rows[i] < 0 || static_cast<std::size_t>(rows[i]) >= table.rows)
      throw InputError(fmt::format(
          "{}: row {} of {} was requested, but rows go up to {}: the data do not fit the network",
          name, rows[i], i, table.rows - 1));
}

Table table_of(const Value& x, const Value& rows) {
  return {static_cast<std::size_t>(x.shape[0]), static_cast<std::size_t>(x.shape[1]),
          static_cast<std::size_t>(rows.shape[0])};
}

HEADROOM_VECTORISED void add_columns(float* __restrict sum, const float* __restrict dy,
                                     const std::int32_t* rows, Table table, std::size_t begin,
                                     std::size_t end) {
  for (std::size_t i = 0; i < table.picked; ++i) {
    float* to = sum + static_cast<std::size_t>(rows[i]) * table.columns;
    const float* from = dy + i * table.columns;
    for (std::size_t c = begin; c < end; ++c) to[c] += from[c];
  }
}

}  // namespace

Kernel make_gather_rows(const Op& op, const Program& program) {
  const Table table = table_of(program.value(op.inputs[0]), program.value(op.inputs[1]));
  return [table, name = op.name](const OpBuffers& buffers) {
    const float* x = floats(buffers.inputs[0]);
    const std::int32_t* rows = whole_numbers(buffers.inputs[1]);
    float* y = floats(buffers.outputs[0]);
    check_rows(rows, table, name);
    in_parallel(table.picked, row_grain(table.columns), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        std::copy_n(x + static_cast<std::size_t>(rows[i]) * table.columns, table.columns,
                    y + i * table.columns);
    });
  };
}

// Threads divide the columns, not the rows: every sum runs in the order of the rows, whatever the
// number of threads.
Kernel make_gather_rows_backward(const Op& op, const Program& program) {
  const Table table = table_of(program.value(op.outputs[0]), program.value(op.inputs[0]));
  const bool adds = op.kind == "gather_rows_backward_add";
  return [table, adds, name = op.name](const OpBuffers& buffers) {
    const std::int32_t* rows = whole_numbers(buffers.inputs[0]);
    const float* other = adds ? floats(buffers.inputs[2]) : nullptr;
    float* dx = floats(buffers.outputs[0]);
    check_rows(rows, table, name);
    if (other != dx)
      in_parallel(table.rows * table.columns, [&](std::size_t begin, std::size_t end) {
        if (adds)
          std::copy(other + begin, other + end, dx + begin);
        else
          std::fill(dx + begin, dx + end, 0.0F);
      });
    constexpr std::size_t kColumns = 64;
    in_parallel(table.columns, kColumns, [&](std::size_t begin, std::size_t end) {
      add_columns(dx, floats(buffers.inputs[1]), rows, table, begin, end);
    });
  };
}

}  // namespace headroom::host
