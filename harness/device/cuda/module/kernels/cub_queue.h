// The queue of work.h on the GPU: each step is one CUB algorithm on the context's stream, and all
// memory comes from the op's workspace.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cub/device/device_for.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>

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
#endif

struct RowStart {
  Index width;
  __host__ __device__ Index operator()(Index row) const { return row * width; }
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
    constexpr unsigned kThreads = 256;
    if (!runs_ || count == 0) return;
    const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    loop_by_table<<<blocks, kThreads, 0, stream_>>>(count, f, unless_);
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

  template <typename Value, typename Combine, typename T>
  void reduce_rows(Index rows, Index width, Value value, Combine combine, T initial, T* results) {
    const RowStarts begins(Counting(0), {width}), ends(Counting(1), {width});
    step("a reduction of rows", [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceSegmentedReduce::Reduce(temporary, bytes, values(value), results, rows,
                                                begins, ends, combine, initial, stream_);
    });
  }

  void sort(const float* keys, float* sorted, Index count) {
    step("a sort", [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, sorted, count, 0, 32, stream_);
    });
  }

  void sort_pairs(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, Index count) {
    step("a sort", [&](void* temporary, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sorted_keys, values,
                                             sorted_values, count, 0, 32, stream_);
    });
  }

 private:
  using Counting = thrust::counting_iterator<Index>;
  using RowStarts = thrust::transform_iterator<RowStart, Counting>;

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
