// Matrix products that enforce the requirements of NVIDIA's "cuBLAS Library", chapter cuBLASLt: the
// workspace and alignments for which an algorithm was chosen must hold when it runs.
#include <cublasLt.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/cuda/simulated_gpu/memory.h"
#include "tests/cuda/simulated_gpu/numbers.h"
#include "tests/cuda/simulated_gpu/refusal.h"
#include "tests/cuda/simulated_gpu/streams.h"

using namespace headroom::simulated_gpu;

struct cublasLtContext {};

namespace {

struct Layout {
  cudaDataType type;
  std::int64_t rows, columns, leading;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
  std::uint32_t mode = CUBLASLT_BATCH_MODE_STRIDED;
};

struct Product {
  cublasComputeType_t arithmetic;
  std::array<cublasOperation_t, 2> transposed = {CUBLAS_OP_N, CUBLAS_OP_N};
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  std::array<const float*, 2> scales = {nullptr, nullptr};
};

struct Preference {
  std::uint64_t workspace = 0;
  std::array<std::uint32_t, 4> aligned = {256, 256, 256, 256};  // a, b, c, d
};

// The properties for which an algorithm was chosen; stored in cublasLtMatmulAlgo_t.
struct Choice {
  std::uint64_t problem;
  std::uint64_t workspace;
  std::array<std::uint32_t, 4> aligned;
};
static_assert(sizeof(Choice) <= sizeof(cublasLtMatmulAlgo_t));

template <typename T, typename Opaque>
T& own(Opaque* handle) {
  return *reinterpret_cast<T*>(handle);
}

template <typename T, typename Opaque, typename... Arguments>
cublasStatus_t make(Opaque** handle, Arguments... arguments) {
  *handle = reinterpret_cast<Opaque*>(new T{arguments...});
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t set(T& field, const void* from, std::size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool is_8_bits(const Layout& matrix) {
  return matrix.type == CUDA_R_8F_E4M3 || matrix.type == CUDA_R_8F_E5M2;
}

std::int64_t rows_of(const Layout& matrix, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? matrix.rows : matrix.columns;
}

std::int64_t columns_of(const Layout& matrix, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? matrix.columns : matrix.rows;
}

bool fits(const Product& product, const Layout& a, const Layout& b, const Layout& c,
          const Layout& d) {
  for (const Layout* matrix : {&a, &b, &c, &d})
    if (matrix->rows <= 0 || matrix->columns <= 0 || matrix->leading < matrix->rows ||
        matrix->batch != d.batch || matrix->mode != d.mode)
      return false;
  const auto [op_a, op_b] = product.transposed;
  return columns_of(a, op_a) == rows_of(b, op_b) && rows_of(a, op_a) == d.rows &&
         columns_of(b, op_b) == d.columns && c.rows == d.rows && c.columns == d.columns &&
         c.type == d.type;
}

bool is_supported(const Product& product, const Layout& a, const Layout& b, const Layout& d) {
  const bool tf32 = product.arithmetic == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!is_8_bits(a) && !is_8_bits(b))
    return a.type == b.type && (d.type == a.type || d.type == CUDA_R_32F) &&
           (!tf32 || a.type == CUDA_R_32F);
  // From the table under cublasLtMatmul(): at most one factor is e5m2, only the first factor is
  // transposed, and sides are multiples of 16.
  if (!is_8_bits(a) || !is_8_bits(b) || (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2))
    return false;
  if (product.transposed[0] != CUBLAS_OP_T || product.transposed[1] != CUBLAS_OP_N) return false;
  for (const std::int64_t side : {a.rows, a.columns, b.columns, a.leading, b.leading})
    if (side % 16 != 0) return false;
  return product.arithmetic == CUBLAS_COMPUTE_32F && product.scales[0] != nullptr &&
         product.scales[1] != nullptr && !is_8_bits(d);
}

std::uint64_t problem_of(const Product& product, const Layout& a, const Layout& b,
                         const Layout& d) {
  std::uint64_t hash = product.epilogue + 31 * product.transposed[0] + 7 * product.transposed[1] +
                       101 * product.arithmetic;
  for (const Layout* matrix : {&a, &b, &d})
    for (const std::int64_t number :
         {std::int64_t{matrix->type}, matrix->rows, matrix->columns, matrix->leading,
          std::int64_t{matrix->batch}, matrix->stride, std::int64_t{matrix->mode}})
      hash = hash * 1099511628211U + static_cast<std::uint64_t>(number);
  return hash;
}

// The matrix of that number, found by the stride or in an array of addresses.
template <typename T, typename Data>
T* matrix_of(const Layout& layout, Data* data, std::int64_t of) {
  if (layout.mode == CUBLASLT_BATCH_MODE_STRIDED) return static_cast<T*>(data) + of * layout.stride;
  return static_cast<T* const*>(data)[of];
}

bool is_aligned(const void* data, std::uint32_t to) {
  return reinterpret_cast<std::uintptr_t>(data) % to == 0;
}

// Element (row, column) at row + column · leading.
std::vector<float> read(const Layout& matrix, cublasOperation_t operation, const void* data,
                        std::int64_t of) {
  const std::int64_t rows = rows_of(matrix, operation), columns = columns_of(matrix, operation);
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
  with_type(matrix.type, [&]<typename T>(T) {
    const T* const first = matrix_of<const T>(matrix, data, of);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        numbers[static_cast<std::size_t>(r * columns + c)] = headroom::host::load(
            first[operation == CUBLAS_OP_N ? r + c * matrix.leading : c + r * matrix.leading]);
  });
  return numbers;
}

void multiply(const Product& product, const Layout& of_a, const Layout& of_b, const Layout& of_d,
              const void* a, const void* b, void* d) {
  const auto [op_a, op_b] = product.transposed;
  const auto other = [](cublasOperation_t op) {
    return op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  const std::int64_t inner = columns_of(of_a, op_a);
  double scale = 1;
  if (is_8_bits(of_a)) scale = double{*product.scales[0]} * double{*product.scales[1]};
  for (std::int64_t of = 0; of < of_d.batch; ++of) {
    const std::vector<float> rows = read(of_a, op_a, a, of);
    const std::vector<float> columns = read(of_b, other(op_b), b, of);
    with_type(of_d.type, [&]<typename T>(T) {
      T* const result = matrix_of<T>(of_d, d, of);
      for (std::int64_t i = 0; i < of_d.rows; ++i)
        for (std::int64_t j = 0; j < of_d.columns; ++j) {
          const float* const left = rows.data() + i * inner;
          const float* const right = columns.data() + j * inner;
          double sum = 0;
          for (std::int64_t k = 0; k < inner; ++k) sum += double{left[k]} * double{right[k]};
          sum *= scale;
          if (product.epilogue == CUBLASLT_EPILOGUE_BIAS)
            sum += headroom::host::load(static_cast<const T*>(product.bias)[i]);
          headroom::host::store(result[i + j * of_d.leading], static_cast<float>(sum));
        }
    });
  }
}

}  // namespace

std::size_t cublasLtGetVersion() { return 0; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "refused by the simulated GPU"; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (is_refused()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  return make<Layout>(layout, type, static_cast<std::int64_t>(rows),
                      static_cast<std::int64_t>(columns), leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &own<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* from, std::size_t bytes) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    return set(own<Layout>(layout).batch, from, bytes);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    return set(own<Layout>(layout).stride, from, bytes);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_MODE && !lacks("batches_by_address"))
    return set(own<Layout>(layout).mode, from, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product,
                                        cublasComputeType_t arithmetic, cudaDataType_t scale) {
  return scale == CUDA_R_32F ? make<Product>(product, arithmetic) : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete &own<Product>(product);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* from, std::size_t bytes) {
  auto& product = own<Product>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(product.transposed[0], from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(product.transposed[1], from, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(product.epilogue, from, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(product.bias, from, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return set(product.scales[0], from, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return set(product.scales[1], from, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make<Preference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &own<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* from, std::size_t bytes) {
  auto& preference = own<Preference>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference.workspace, from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference.aligned[0], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference.aligned[1], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference.aligned[2], from, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference.aligned[3], from, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

// Returns one algorithm, with or without workspace depending on the shapes. A library that lacks
// "first_products" also ranks an algorithm before it that it cannot run.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  *found = 0;
  if (is_refused()) return CUBLAS_STATUS_INTERNAL_ERROR;
  const auto& of = own<Product>(product);
  const auto &of_a = own<Layout>(a), &of_b = own<Layout>(b), &of_d = own<Layout>(d);
  if (wanted < 1 || !fits(of, of_a, of_b, own<Layout>(c), of_d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_supported(of, of_a, of_b, of_d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (of.epilogue == CUBLASLT_EPILOGUE_BIAS && lacks("bias_epilogue"))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto& preferred = own<Preference>(preference);
  const std::uint64_t problem = problem_of(of, of_a, of_b, of_d);
  const Choice choice = {.problem = problem,
                         .workspace = std::min(preferred.workspace, problem / 64 % 3 * 4000),
                         .aligned = preferred.aligned};
  if (wanted > 1 && lacks("first_products")) {
    results[*found] = {};
    results[(*found)++].state = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  cublasLtMatmulHeuristicResult_t& result = results[(*found)++];
  result = {};
  std::memcpy(&result.algo, &choice, sizeof(choice));
  result.workspaceSize = choice.workspace;
  result.state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                              cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const Lock lock;
  const auto of = own<Product>(product);
  const auto of_a = own<Layout>(layout_a), of_b = own<Layout>(layout_b),
             of_d = own<Layout>(layout_d);
  Choice choice{};
  std::memcpy(&choice, algorithm, sizeof(choice));
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (choice.problem != problem_of(of, of_a, of_b, of_d) || workspace_bytes < choice.workspace)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool by_address = of_d.mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY;
  const std::array<const void*, 4> places = {a, b, c, d};
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!is_aligned(places[i], by_address ? sizeof(void*) : choice.aligned[i]))
      return CUBLAS_STATUS_INVALID_VALUE;
  if (of.epilogue == CUBLASLT_EPILOGUE_BIAS && !is_shown(of.bias, 1))
    return CUBLAS_STATUS_INVALID_VALUE;
  const cudaError_t given = give(stream, [=] {
    if (choice.workspace > 0) poison(workspace, choice.workspace);
    for (std::size_t i = 0; by_address && i < places.size(); ++i)
      for (std::int32_t matrix = 0; matrix < of_d.batch; ++matrix)
        if (!is_aligned(static_cast<void* const*>(places[i])[matrix], choice.aligned[i]))
          stop("a matrix is not aligned as its algorithm demands");
    multiply(of, of_a, of_b, of_d, a, b, d);
  });
  if (given == cudaErrorMemoryAllocation) return CUBLAS_STATUS_ALLOC_FAILED;
  return given == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
