#include "harness/device/host/kernels/linear.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

// cblas_sgemm of the C interface to BLAS (https://netlib.org/blas/cblas.h), for 32-bit integers.
using Product = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                         float alpha, const float* a, int row_of_a, const float* b, int row_of_b,
                         float beta, float* c, int row_of_c);
constexpr int kRowMajor = 101, kNotTransposed = 111, kTransposed = 112;
constexpr int kUsesOpenMP = 2;  // result of openblas_get_parallel()

// Loads OpenBLAS with the kernels for this CPU's instructions. It chooses them by model when it is
// loaded, and those of SSE3 for a model that is newer than itself: 0.3.21 reached a fifth of the
// speed on an Emerald Rapids. What the user has set is kept.
void* load_blas() {
  constexpr const char* kSetting = "OPENBLAS_CORETYPE";
  const char* kernels = __builtin_cpu_supports("avx512bf16") != 0 ? "Cooperlake"
                        : __builtin_cpu_supports("avx512bw") != 0 ? "SkylakeX"
                                                                  : nullptr;
  const bool chooses = kernels != nullptr && std::getenv(kSetting) == nullptr;
  if (chooses) ::setenv(kSetting, kernels, 0);
  void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (chooses) ::unsetenv(kSetting);
  return library;
}

// Null if this machine lacks it, or if it has threads of its own, which would compete with
// OpenMP's.
Product blas_product() {
  static const Product product = [] {
    void* library = load_blas();
    if (library == nullptr) return Product{};
    const auto parallel = reinterpret_cast<int (*)()>(::dlsym(library, "openblas_get_parallel"));
    if (parallel == nullptr || parallel() != kUsesOpenMP) return Product{};
    return reinterpret_cast<Product>(::dlsym(library, "cblas_sgemm"));
  }();
  return product;
}

bool is_general_product(const onednn::LibraryOp& described) {
  const std::string_view name = described.descriptor.impl_info_str();
  return name.find("gemm:jit") != std::string_view::npos;
}

// Sums columns [begin, end) of a matrix, in the order of the rows, whatever the number of threads.
HEADROOM_VECTORISED void sum_columns(const float* __restrict matrix, float* __restrict sums,
                                     std::size_t rows, std::size_t columns, std::size_t begin,
                                     std::size_t end) {
  std::fill(sums + begin, sums + end, 0.0F);
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t c = begin; c < end; ++c) sums[c] += matrix[n * columns + c];
}

}  // namespace

std::optional<Kernel> weight_gradient_by_blas(const onednn::LibraryOp& described, const Op& op,
                                              const Program& program) {
  const auto is_plain = [&](ValueId id) {
    return program.value(id).layout.empty() && program.value(id).dtype == DType::f32;
  };
  if (op.kind != "linear_backward_weights" || !is_general_product(described) ||
      !std::ranges::all_of(op.inputs, is_plain) || !std::ranges::all_of(op.outputs, is_plain))
    return std::nullopt;
  const Product product = blas_product();
  if (product == nullptr) return std::nullopt;
  const std::size_t outputs = float_count(program, op.outputs[1]);
  const std::size_t rows = float_count(program, op.inputs[1]) / outputs;
  const std::size_t inputs = float_count(program, op.inputs[0]) / rows;
  if (std::max({outputs, rows, inputs}) > std::numeric_limits<int>::max()) return std::nullopt;
  return [=](const OpBuffers& buffers) {
    const float *x = floats(buffers.inputs[0]), *dy = floats(buffers.inputs[1]);
    const int m = static_cast<int>(outputs), n = static_cast<int>(inputs);
    product(kRowMajor, kTransposed, kNotTransposed, m, n, static_cast<int>(rows), 1, dy, m, x, n, 0,
            floats(buffers.outputs[0]), n);
    constexpr std::size_t kColumns = 1024;  // 4 KiB of each row
    in_parallel(outputs, kColumns, [&](std::size_t begin, std::size_t end) {
      sum_columns(dy, floats(buffers.outputs[1]), rows, outputs, begin, end);
    });
  };
}

}  // namespace headroom::host
