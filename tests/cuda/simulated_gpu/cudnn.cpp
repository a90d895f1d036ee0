// Convolutions and their gradients by definition, enforcing the requirements of NVIDIA's "cuDNN
// API", the part on convolutions: operands of one type and one format, NHWC in 16 bits only, f32
// sums, an algorithm with its own workspace. The rankings contain what real ones may: algorithms
// that do not run, are not deterministic, take much workspace or convert their operands.
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/cuda/simulated_gpu/memory.h"
#include "tests/cuda/simulated_gpu/numbers.h"
#include "tests/cuda/simulated_gpu/refusal.h"
#include "tests/cuda/simulated_gpu/streams.h"

using namespace headroom::simulated_gpu;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

// Whatever the format, the sides are images, channels, height and width.
struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  std::array<std::int64_t, 4> sides = {};

  std::int64_t place(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    const auto [images, channels, height, width] = sides;
    if (format == CUDNN_TENSOR_NHWC) return ((n * height + h) * width + w) * channels + c;
    return ((n * channels + c) * height + h) * width + w;
  }
  std::int64_t next_column() const { return format == CUDNN_TENSOR_NHWC ? sides[1] : 1; }
};

struct Window {
  std::array<std::int64_t, 2> padding = {}, strides = {};
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

}  // namespace

struct cudnnTensorStruct : Tensor {};
struct cudnnFilterStruct : Tensor {};
struct cudnnConvolutionStruct : Window {};

namespace {

struct Algorithm {
  int number;
  bool runs, deterministic;
  std::optional<cudnnMathType_t> math;  // absent: as requested
  std::size_t workspace;
};

// The algorithms in ranking order. In NHWC only numbers 0 and 1 run.
std::vector<Algorithm> algorithms(const Tensor& image) {
  const auto needs = static_cast<std::size_t>(image.sides[1] * image.sides[2] * 400);
  const bool all = image.format == CUDNN_TENSOR_NCHW;
  return {{.number = 0, .runs = true, .deterministic = false, .math = {}, .workspace = 0},
          {.number = 3, .runs = false, .deterministic = true, .math = {}, .workspace = 0},
          {.number = 2,
           .runs = all,
           .deterministic = true,
           .math = CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
           .workspace = 0},
          {.number = 1, .runs = true, .deterministic = true, .math = {}, .workspace = needs},
          {.number = 4, .runs = all, .deterministic = true, .math = {}, .workspace = 0}};
}

// Shapes of the larger side of a convolution, of its smaller side and of the weights.
struct Problem {
  Tensor x, w, y;
  Window window;

  bool is_sound() const {
    if (x.type != w.type || y.type != w.type) return false;
    if (x.format != w.format || y.format != w.format) return false;
    if (x.format == CUDNN_TENSOR_NHWC && x.type == CUDNN_DATA_FLOAT) return false;
    if (x.sides[0] != y.sides[0] || x.sides[1] != w.sides[1] || y.sides[1] != w.sides[0])
      return false;
    for (std::size_t i = 0; i < 2; ++i)
      if (y.sides[2 + i] !=
          (x.sides[2 + i] + 2 * window.padding[i] - w.sides[2 + i]) / window.strides[i] + 1)
        return false;
    return true;
  }

  std::optional<std::size_t> workspace(int number) const {
    for (const Algorithm& one : algorithms(x))
      if (one.number == number && one.runs) return one.workspace;
    return std::nullopt;
  }

  // visit(index in x, in w, in y) for each product.
  template <typename Visit>
  void for_each_product(Visit visit) const {
    const auto [samples, inputs, height, width] = x.sides;
    const auto [outputs, unused, window_height, window_width] = w.sides;
    const std::int64_t rows = y.sides[2], columns = y.sides[3];
    const std::int64_t step_of_x = window.strides[1] * x.next_column(), step_of_y = y.next_column();
    for (std::int64_t n = 0; n < samples; ++n)
      for (std::int64_t k = 0; k < outputs; ++k)
        for (std::int64_t c = 0; c < inputs; ++c)
          for (std::int64_t r = 0; r < window_height; ++r)
            for (std::int64_t s = 0; s < window_width; ++s) {
              const std::int64_t of_w = w.place(k, c, r, s);
              const auto column = [&](std::int64_t q) {
                return q * window.strides[1] - window.padding[1] + s;
              };
              std::int64_t first = 0, end = columns;
              while (first < end && column(first) < 0) ++first;
              while (first < end && column(end - 1) >= width) --end;
              for (std::int64_t p = 0; p < rows; ++p) {
                const std::int64_t h = p * window.strides[0] - window.padding[0] + r;
                if (h < 0 || h >= height) continue;
                std::int64_t of_x = x.place(n, c, h, column(first)), of_y = y.place(n, k, p, first);
                for (std::int64_t q = first; q < end; ++q, of_x += step_of_x, of_y += step_of_y)
                  visit(of_x, of_w, of_y);
              }
            }
  }
};

cudaDataType type_of(const Tensor& tensor) {
  if (tensor.type == CUDNN_DATA_BFLOAT16) return CUDA_R_16BF;
  return tensor.type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F;
}

std::size_t count(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.sides[0] * tensor.sides[1] * tensor.sides[2] *
                                  tensor.sides[3]);
}

std::vector<float> read(const Tensor& tensor, const void* data) {
  std::vector<float> numbers(count(tensor));
  with_type(type_of(tensor), [&]<typename T>(T) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = headroom::host::load(static_cast<const T*>(data)[i]);
  });
  return numbers;
}

void write(const Tensor& tensor, const std::vector<double>& numbers, void* data) {
  with_type(type_of(tensor), [&]<typename T>(T) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      headroom::host::store(static_cast<T*>(data)[i], static_cast<float>(numbers[i]));
  });
}

template <typename Ranked>
cudnnStatus_t rank(const Problem& problem, int wanted, int* returned, Ranked* ranked) {
  *returned = 0;
  if (is_refused()) return CUDNN_STATUS_INTERNAL_ERROR;
  if (!problem.is_sound()) return CUDNN_STATUS_BAD_PARAM;
  if (problem.x.format == CUDNN_TENSOR_NHWC && lacks("nhwc_convolutions"))
    return CUDNN_STATUS_NOT_SUPPORTED;
  for (const Algorithm& one : algorithms(problem.x)) {
    if (*returned == wanted) break;
    Ranked& entry = ranked[(*returned)++];
    entry = {};
    entry.algo = static_cast<decltype(entry.algo)>(one.number);
    entry.status = one.runs ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    entry.memory = one.workspace;
    entry.determinism = one.deterministic && !lacks("deterministic_convolutions")
                            ? CUDNN_DETERMINISTIC
                            : CUDNN_NON_DETERMINISTIC;
    entry.mathType = one.math.value_or(problem.window.math);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t tell_workspace(const Problem& problem, int number, std::size_t* bytes) {
  const std::optional<std::size_t> needed = problem.workspace(number);
  if (!problem.is_sound() || !needed) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = *needed;
  return CUDNN_STATUS_SUCCESS;
}

// Tensors have fewer than 2^31 elements; a test may lower the limit, because such tensors would
// take all memory.
std::int64_t most_elements() {
  const char* const lower = std::getenv("HEADROOM_SIMULATED_GPU_MOST_ELEMENTS");
  return lower == nullptr ? (std::int64_t{1} << 31) - 1 : std::atoll(lower);
}

bool is_known(cudnnTensorFormat_t format) {
  return format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC;
}

struct Scratch {
  void* data;
  std::size_t bytes;
};

bool is_one(const void* alpha) { return *static_cast<const float*>(alpha) == 1; }
bool is_zero(const void* beta) { return *static_cast<const float*>(beta) == 0; }

cudnnStatus_t run(cudnnHandle_t handle, const Problem& problem, int number, Scratch scratch,
                  bool scaled, Work work) {
  const Lock lock;
  const std::optional<std::size_t> needed = problem.workspace(number);
  if (scaled || !problem.is_sound() || !needed || scratch.bytes < *needed)
    return CUDNN_STATUS_BAD_PARAM;
  const cudaError_t given = give(handle->stream, [=] {
    if (*needed > 0) poison(scratch.data, *needed);
    work();
  });
  if (given == cudaErrorMemoryAllocation)
    return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  return given == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace

std::size_t cudnnGetVersion() { return 0; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "refused by the simulated GPU"; }
void cudnnGetLastErrorString(char* text, std::size_t most) {
  std::snprintf(text, most, "the simulated library's\nlast words");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (is_refused()) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  *tensor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  delete tensor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (!is_known(format)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (std::int64_t{n} * c > most_elements() / h / w) return CUDNN_STATUS_NOT_SUPPORTED;
  *tensor = {{.type = type, .format = format, .sides = {n, c, h, w}}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  *filter = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  delete filter;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  if (!is_known(format)) return CUDNN_STATUS_NOT_SUPPORTED;
  *filter = {{.type = type, .format = format, .sides = {k, c, h, w}}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* window) {
  *window = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t window) {
  delete window;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t window, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t sums) {
  if (dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION ||
      sums != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *window = {{.padding = {pad_h, pad_w}, .strides = {stride_h, stride_w}, .math = window->math}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t window,
                                          cudnnMathType_t math) {
  window->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t, int* count) {
  *count = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t window,
                                                     cudnnTensorDescriptor_t y, int wanted,
                                                     int* returned,
                                                     cudnnConvolutionFwdAlgoPerf_t* ranked) {
  return rank(Problem{*x, *w, *y, *window}, wanted, returned, ranked);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t window,
                                                      cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm,
                                                      std::size_t* bytes) {
  return tell_workspace(Problem{*x, *w, *y, *window}, algorithm, bytes);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t of_x, const void* x,
                                      cudnnFilterDescriptor_t of_w, const void* w,
                                      cudnnConvolutionDescriptor_t window,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      std::size_t bytes, const void* beta,
                                      cudnnTensorDescriptor_t of_y, void* y) {
  const Problem problem{*of_x, *of_w, *of_y, *window};
  return run(handle, problem, algorithm, {workspace, bytes}, !is_one(alpha) || !is_zero(beta), [=] {
    const std::vector<float> image = read(problem.x, x), weights = read(problem.w, w);
    std::vector<double> result(count(problem.y));
    problem.for_each_product([&](auto of_image, auto of_weights, auto of_result) {
      result[of_result] += double{image[of_image]} * double{weights[of_weights]};
    });
    write(problem.y, result, y);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t, int* count) {
  *count = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t window, cudnnTensorDescriptor_t dx, int wanted, int* returned,
    cudnnConvolutionBwdDataAlgoPerf_t* ranked) {
  return rank(Problem{*dx, *w, *dy, *window}, wanted, returned, ranked);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy,
                                                           cudnnConvolutionDescriptor_t window,
                                                           cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm,
                                                           std::size_t* bytes) {
  return tell_workspace(Problem{*dx, *w, *dy, *window}, algorithm, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t of_w, const void* w,
                                           cudnnTensorDescriptor_t of_dy, const void* dy,
                                           cudnnConvolutionDescriptor_t window,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           std::size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t of_dx, void* dx) {
  const Problem problem{*of_dx, *of_w, *of_dy, *window};
  return run(handle, problem, algorithm, {workspace, bytes}, !is_one(alpha) || !is_zero(beta), [=] {
    const std::vector<float> weights = read(problem.w, w), gradient = read(problem.y, dy);
    std::vector<double> result(count(problem.x));
    problem.for_each_product([&](auto of_image, auto of_weights, auto of_gradient) {
      result[of_image] += double{gradient[of_gradient]} * double{weights[of_weights]};
    });
    write(problem.x, result, dx);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t, int* count) {
  *count = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t window, cudnnFilterDescriptor_t dw, int wanted, int* returned,
    cudnnConvolutionBwdFilterAlgoPerf_t* ranked) {
  return rank(Problem{*x, *dw, *dy, *window}, wanted, returned, ranked);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t window, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
  return tell_workspace(Problem{*x, *dw, *dy, *window}, algorithm, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t of_x, const void* x,
                                             cudnnTensorDescriptor_t of_dy, const void* dy,
                                             cudnnConvolutionDescriptor_t window,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, std::size_t bytes, const void* beta,
                                             cudnnFilterDescriptor_t of_dw, void* dw) {
  const Problem problem{*of_x, *of_dw, *of_dy, *window};
  const bool adds = is_one(beta);
  return run(handle, problem, algorithm, {workspace, bytes},
             !is_one(alpha) || !(is_zero(beta) || adds), [=] {
               const std::vector<float> image = read(problem.x, x), gradient = read(problem.y, dy);
               std::vector<double> result(count(problem.w));
               if (adds) {
                 const std::vector<float> before = read(problem.w, dw);
                 std::copy(before.begin(), before.end(), result.begin());
               }
               problem.for_each_product([&](auto of_image, auto of_weights, auto of_gradient) {
                 result[of_weights] += double{image[of_image]} * double{gradient[of_gradient]};
               });
               write(problem.w, result, dw);
             });
}
