// The queue of work.h on the GPU: each step is one algorithm of CUB, or one kernel of our own where
// CUB's is slower, on the context's stream. All memory comes from the op's workspace.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#ifdef __CUDACC__
#include <cub/block/block_reduce.cuh>
#endif
#include <cub/device/device_for.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>

#include "harness/device/cuda/module/check.h"
#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

// Runs f unless the flag of a conditional op says to skip it.
template <typename F>
struct Unless {
  F f;
  const float* flag;  // null for an unconditional op
  __device__ void operator()(Index i) {
    if (flag == nullptr || *flag == 0) f(i);
  }
};

#ifdef __CUDACC__
// A kernel of our own, because CUB's takes f by value: a table in f that is indexed at run time
// would be copied to every thread's stack. Here it stays among the kernel's arguments.
template <typename F>
__global__ void loop_by_table(Index count, const __grid_constant__ F f, const float* unless) {
  const Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count && (unless == nullptr || *unless == 0)) f(i);
}

constexpr unsigned kThreads = 256;  // of a block

// value(i) combined for i = first, first + step, … below end. Four at a time are combined in the
// type of value, so that their loads are under way together.
template <typename Value, typename Combine, typename T>
__device__ T combine_every(Index first, Index step, Index end, Combine combine, T initial,
                           Value value) {
  T all = initial;
  Index i = first;
#pragma unroll 2
  for (; i + 3 * step < end; i += 4 * step)
    all = combine(all, combine(combine(value(i), value(i + step)),
                               combine(value(i + 2 * step), value(i + 3 * step))));
  for (; i < end; i += step) all = combine(all, value(i));
  return all;
}

// Gives each row to kThreadsOfRow threads, a warp or a block. This is a kernel of our own, because
// CUB gives each row a block and calls value with an index that must be divided by the width.
template <unsigned kThreadsOfRow, typename Value, typename Combine, typename T, typename Results>
__global__ void __launch_bounds__(kThreads)
    reduce_each_row(Index rows, Index width, Value value, Combine combine, T initial,
                    Results results) {
  constexpr unsigned kRows = kThreads / kThreadsOfRow;
  using Group = std::conditional_t<kRows == 1, cub::BlockReduce<T, kThreads>, cub::WarpReduce<T>>;
  __shared__ typename Group::TempStorage room[kRows];
  const Index row = Index{blockIdx.x} * kRows + threadIdx.x / kThreadsOfRow;
  const unsigned lane = threadIdx.x % kThreadsOfRow;
  T all = initial;
  if (row < rows)
    all = combine_every(lane, kThreadsOfRow, width, combine, initial,
                        [=](Index column) { return value(row, column); });
  all = Group(room[threadIdx.x / kThreadsOfRow]).Reduce(all, combine);
  if (lane == 0 && row < rows) give(results, row, all);
}

// Columns of a block: fewer of those that have several sums, whose terms take one load of 16 bytes.
template <typename T>
constexpr unsigned kTile = sizeof(T) > 16 ? 8 : 32;

// Each block sums one group of rows over one tile of columns. Neighbouring threads read adjacent
// memory; kLanes threads share a column and take every kLanes-th row.
template <typename Value, typename Combine, typename T>
__global__ void __launch_bounds__(kThreads)
    reduce_column_groups(Index rows, Index columns, Divisor groups, Value value, Combine combine,
                         T initial, T* results) {
  constexpr unsigned kWide = kTile<T>, kLanes = kThreads / kWide;
  __shared__ alignas(T) std::byte room[kThreads * sizeof(T)];
  T* const of_lanes = reinterpret_cast<T*>(room);
  const unsigned place = threadIdx.x % kWide, lane = threadIdx.x / kWide;
  const Index column = Index{blockIdx.x} * kWide + place, group = blockIdx.y;
  T all = initial;
  if (column < columns)
    all = combine_every(group * rows / groups + lane, kLanes, (group + 1) * rows / groups, combine,
                        initial, value.of_column(column));
  of_lanes[threadIdx.x] = all;
  for (unsigned half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half)
      of_lanes[threadIdx.x] = all = combine(all, of_lanes[(lane + half) * kWide + place]);
  }
  if (lane == 0 && column < columns) results[column * groups + group] = all;
}

constexpr unsigned kColumns = 8;  // of a block
constexpr Index kRowsOfBlock = 512;

// A thread keeps its column and takes every 32nd row, four at a time, so that their loads are under
// way together.
template <typename F>
__global__ void __launch_bounds__(kThreads)
    loop_by_column(Index rows, Index columns, Divisor tiles, F f, const float* unless) {
  constexpr Index kLanes = kThreads / kColumns;
  const Index chunk = Index{blockIdx.x} / tiles, tile = blockIdx.x - chunk * tiles;
  const Index column = tile * kColumns + threadIdx.x % kColumns;
  if (column >= columns || (unless != nullptr && *unless != 0)) return;
  const auto of_column = f.of_column(column);
  Index row = chunk * kRowsOfBlock + threadIdx.x / kColumns;
  const Index end = min(rows, (chunk + 1) * kRowsOfBlock);
  for (; row + 3 * kLanes < end; row += 4 * kLanes) {
    decltype(of_column.read(row)) in[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) in[k] = of_column.read(row + k * kLanes);
#pragma unroll
    for (int k = 0; k < 4; ++k) of_column.write(row + k * kLanes, in[k]);
  }
  for (; row < end; row += kLanes) of_column.write(row, of_column.read(row));
}
#endif

// Reduces one row in one thread. The simulated GPU runs this in place of reduce_each_row.
template <typename Value, typename Combine, typename T, typename Results>
struct ReduceRow {
  Index width;
  Value value;
  Combine combine;
  T initial;
  Results results;

  __host__ __device__ void operator()(Index row) const {
    T all = initial;
    for (Index column = 0; column < width; ++column) all = combine(all, value(row, column));
    give(results, row, all);
  }
};

// Reduces one column of one group in one thread. The simulated GPU runs this in place of
// reduce_column_groups.
template <typename Value, typename Combine, typename T>
struct ReduceGroup {
  Index rows;
  Divisor columns, groups;
  Value value;
  Combine combine;
  T initial;
  T* results;

  __host__ __device__ void operator()(Index i) const {
    const Index group = i / columns, column = i % columns;
    const auto of_column = value.of_column(column);
    T all = initial;
    for (Index row = group * rows / groups; row < (group + 1) * rows / groups; ++row)
      all = combine(all, of_column(row));
    results[column * groups + group] = all;
  }
};

// Takes one row of one column. The simulated GPU runs this in place of loop_by_column.
template <typename F>
struct TakeRow {
  Divisor columns;
  F f;

  __host__ __device__ void operator()(Index i) const {
    const auto of_column = f.of_column(i % columns);
    of_column.write(i / columns, of_column.read(i / columns));
  }
};

struct QueueNeeds {
  Bytes scratch = 0;    // all scratch of the op
  Bytes temporary = 0;  // CUB's temporary storage, the largest of any step
  Bytes total() const { return scratch + temporary; }
};

class CubQueue {
 public:
  // Queues nothing; only measures what the work needs.
  explicit CubQueue(cudaStream_t stream) : stream_(stream) {}
  // `workspace` has needs.total() bytes; `unless` may be null.
  CubQueue(cudaStream_t stream, const QueueNeeds& needs, std::byte* workspace, const float* unless)
      : stream_(stream), runs_(true), workspace_(workspace), needs_(needs), unless_(unless) {}

  QueueNeeds needs() const { return needs_; }

  template <typename T>
  T* scratch(Index count) {
    const Bytes begin = used_;
    used_ += align_up(static_cast<Bytes>(count) * sizeof(T));
    if (!runs_) needs_.scratch = used_;
    return runs_ ? reinterpret_cast<T*>(workspace_ + begin) : nullptr;
  }

  template <typename F>
  void for_each(Index count, F f) {
    if (runs_ && count > 0)
      require_success(cub::DeviceFor::Bulk(count, Unless<F>{f, unless_}, stream_), "a loop");
  }

  template <typename F>
  void for_each_by_table(Index count, F f) {
#ifdef __CUDACC__
    if (!runs_ || count == 0) return;
    loop_by_table<<<blocks(count, kThreads), kThreads, 0, stream_>>>(count, f, unless_);
    require_success(cudaGetLastError(), "a loop");
#else
    for_each(count, f);  // on the simulated GPU
#endif
  }

  template <typename Value, typename Combine, typename T>
  void reduce(Index count, Value value, Combine combine, T initial, T* result) {
    step("a reduction", [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceReduce::Reduce(temporary, bytes, values(value), result, count, combine,
                                       initial, stream_);
    });
  }

  template <typename Value, typename Combine, typename T, typename Results>
  void reduce_rows(Index rows, Index width, Value value, Combine combine, T initial,
                   Results results) {
    if (!runs_ || rows == 0) return;
#ifdef __CUDACC__
    // Few long rows get a block each, because a warp for each would leave most of the GPU idle.
    constexpr Index kEnoughRows = 8192, kLongRow = 1024;
    if (rows < kEnoughRows && width > kLongRow)
      reduce_each_row<kThreads><<<blocks(rows, 1), kThreads, 0, stream_>>>(
          rows, width, value, combine, initial, results);
    else
      reduce_each_row<32><<<blocks(rows, kThreads / 32), kThreads, 0, stream_>>>(
          rows, width, value, combine, initial, results);
    require_success(cudaGetLastError(), "a reduction of rows");
#else
    const ReduceRow<Value, Combine, T, Results> reduce = {width, value, combine, initial, results};
    require_success(cub::DeviceFor::Bulk(rows, reduce, stream_), "a reduction of rows");
#endif
  }

  template <typename Value, typename Combine, typename T>
  void reduce_columns(Index groups, Index rows, Index columns, Value value, Combine combine,
                      T initial, T* results) {
    if (!runs_ || columns == 0) return;
#ifdef __CUDACC__
    const dim3 grid(blocks(columns, kTile<T>), static_cast<unsigned>(groups));
    reduce_column_groups<<<grid, kThreads, 0, stream_>>>(rows, columns, Divisor(groups), value,
                                                         combine, initial, results);
    require_success(cudaGetLastError(), "a reduction of columns");
#else
    const ReduceGroup<Value, Combine, T> reduce = {rows,    columns, groups, value,
                                                   combine, initial, results};
    require_success(cub::DeviceFor::Bulk(groups * columns, reduce, stream_),
                    "a reduction of columns");
#endif
  }

  template <typename F>
  void for_each_by_column(Index rows, Index columns, F f) {
    if (!runs_ || rows * columns == 0) return;
#ifdef __CUDACC__
    const Index tiles = blocks(columns, kColumns);
    loop_by_column<<<static_cast<unsigned>(blocks(rows, kRowsOfBlock) * tiles), kThreads, 0,
                     stream_>>>(rows, columns, Divisor(tiles), f, unless_);
    require_success(cudaGetLastError(), "a loop");
#else
    for_each(rows * columns, TakeRow<F>{columns, f});  // on the simulated GPU
#endif
  }

  // A template, as all steps are, so that only files that sort compile CUB's kernels for it.
  template <typename Key>
  void sort(const Key* keys, Key* sorted, Index count) {
    step("a sort", [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, sorted, count, 0, 32, stream_);
    });
  }

  template <typename Key, typename Value>
  void sort_pairs(const Key* keys, Key* sorted_keys, const Value* values, Value* sorted_values,
                  Index count) {
    step("a sort", [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sorted_keys, values,
                                             sorted_values, count, 0, 32, stream_);
    });
  }

 private:
  static unsigned blocks(Index count, Index each) {
    return static_cast<unsigned>((count + each - 1) / each);
  }
  static Bytes align_up(Bytes bytes) { return (bytes + 255) / 256 * 256; }

  template <typename Value>
  static auto values(Value value) {
    return thrust::make_transform_iterator(thrust::make_counting_iterator(Index{0}), value);
  }

  // CUB reports its storage size when called with a null pointer.
  template <typename Call>
  void step(const char* what, Call call) {
    std::size_t bytes = needs_.temporary;
    if (runs_) return require_success(call(workspace_ + needs_.scratch, bytes), what);
    require_success(call(nullptr, bytes), what);
    needs_.temporary = std::max<Bytes>(needs_.temporary, bytes);
  }

  cudaStream_t stream_;
  bool runs_ = false;
  std::byte* workspace_ = nullptr;
  QueueNeeds needs_;
  Bytes used_ = 0;
  const float* unless_ = nullptr;
};

}  // namespace headroom::cuda
