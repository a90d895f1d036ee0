// Stands in for the functions of cuBLAS, cuSPARSE, cuSOLVER, cuFFT, NVRTC and CUPTI whose answers
// frameworks read. Functions that only compute are in symbols.txt.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

// cuBLAS and cuBLASLt

HEADROOM_EXPORT int cublasGetMathMode(void*, int* mode) {
  *mode = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cublasGetPointerMode_v2(void*, int* mode) {
  *mode = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cublasGetVersion_v2(void*, int* version) {
  *version = 130'401;
  return kSuccess;
}
HEADROOM_EXPORT std::size_t cublasLtGetVersion() { return 130'401; }
HEADROOM_EXPORT std::size_t cublasLtGetCudartVersion() { return 13'020; }
HEADROOM_EXPORT int cublasGetProperty(int which, int* value) {
  *value = which == 0 ? 13 : which == 1 ? 4 : 1;
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtGetProperty(int which, int* value) {
  return cublasGetProperty(which, value);
}
// Frameworks read back the attributes that they set in a description of cuBLASLt. An attribute has
// a number and a value of at most eight bytes.
namespace {

constexpr std::uint32_t kLayoutAttributes = 8, kMatmulAttributes = 32;

struct Layout {
  std::uint64_t values[kLayoutAttributes];
};
struct MatmulDescription {
  std::uint64_t values[kMatmulAttributes];
};

Layout layout_of(int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  Layout layout{};
  layout.values[0] = static_cast<std::uint32_t>(type);
  layout.values[2] = rows;
  layout.values[3] = columns;
  layout.values[4] = static_cast<std::uint64_t>(leading);
  layout.values[5] = 1;  // number of matrices
  return layout;
}

MatmulDescription matmul_of(int compute_type, int scale_type) {
  MatmulDescription description{};
  description.values[0] = static_cast<std::uint32_t>(compute_type);
  description.values[1] = static_cast<std::uint32_t>(scale_type);
  description.values[7] = 1;  // no epilogue
  return description;
}

template <std::size_t kCount>
int keep(std::uint64_t (&values)[kCount], unsigned attribute, const void* from, std::size_t bytes) {
  if (attribute >= kCount || bytes > sizeof values[0]) return kSuccess;
  values[attribute] = 0;
  std::memcpy(&values[attribute], from, bytes);
  return kSuccess;
}

template <std::size_t kCount>
int give(const std::uint64_t (&values)[kCount], unsigned attribute, void* to, std::size_t bytes,
         std::size_t* written) {
  if (written != nullptr) *written = bytes;
  if (to != nullptr) std::memset(to, 0, bytes);
  if (to != nullptr && attribute < kCount)
    std::memcpy(to, &values[attribute], std::min(bytes, sizeof values[0]));
  return kSuccess;
}

}  // namespace

HEADROOM_EXPORT int cublasLtMatrixLayoutCreate(Layout** out, int type, std::uint64_t rows,
                                               std::uint64_t columns, std::int64_t leading) {
  *out = new Layout(layout_of(type, rows, columns, leading));
  return kSuccess;
}
// `out` is memory of the caller, which has room for at least eight numbers.
HEADROOM_EXPORT int cublasLtMatrixLayoutInit_internal(Layout* out, std::size_t, int type,
                                                      std::uint64_t rows, std::uint64_t columns,
                                                      std::int64_t leading) {
  *out = layout_of(type, rows, columns, leading);
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute,
                                                     const void* value, std::size_t bytes) {
  return keep(layout->values, static_cast<unsigned>(attribute), value, bytes);
}
HEADROOM_EXPORT int cublasLtMatrixLayoutGetAttribute(const Layout* layout, int attribute,
                                                     void* value, std::size_t bytes,
                                                     std::size_t* written) {
  return give(layout->values, static_cast<unsigned>(attribute), value, bytes, written);
}
HEADROOM_EXPORT int cublasLtMatmulDescCreate(MatmulDescription** out, int compute_type,
                                             int scale_type) {
  *out = new MatmulDescription(matmul_of(compute_type, scale_type));
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtMatmulDescInit_internal(MatmulDescription* out, std::size_t bytes,
                                                    int compute_type, int scale_type) {
  if (bytes < sizeof *out) return kInvalidValue;
  *out = matmul_of(compute_type, scale_type);
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtMatmulDescDestroy(MatmulDescription* description) {
  delete description;
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtMatmulDescSetAttribute(MatmulDescription* description, int attribute,
                                                   const void* value, std::size_t bytes) {
  return keep(description->values, static_cast<unsigned>(attribute), value, bytes);
}
HEADROOM_EXPORT int cublasLtMatmulDescGetAttribute(const MatmulDescription* description,
                                                   int attribute, void* value, std::size_t bytes,
                                                   std::size_t* written) {
  return give(description->values, static_cast<unsigned>(attribute), value, bytes, written);
}
// cublasLtMatmulHeuristicResult_t by its documented fields.
struct MatmulHeuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
// Offers one algorithm that takes no workspace, because frameworks allocate a workspace of fixed
// size for cuBLASLt whatever the algorithm needs.
HEADROOM_EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*,
                                                   int wanted, MatmulHeuristic* out, int* found) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) *out = {{}, 0, kSuccess, 1.0f, {}};
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*,
                                   void*, const void*, const void*, void*, void* result, void*,
                                   const void*, void* workspace, std::size_t, void*) {
  note_workspace(workspace);
  forget_result(result);
  return kSuccess;
}
HEADROOM_EXPORT int cublasSetWorkspace_v2(void*, void* workspace, std::size_t) {
  note_workspace(workspace);
  return kSuccess;
}
HEADROOM_EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const void*, int, void* out,
                                                         std::size_t bytes, std::size_t* written) {
  if (out != nullptr) std::memset(out, 0, bytes);
  if (written != nullptr) *written = bytes;
  return kSuccess;
}

// Versions

HEADROOM_EXPORT int cusparseGetVersion(void*, int* version) {
  *version = 12'600;
  return kSuccess;
}
HEADROOM_EXPORT int cusparseGetProperty(int which, int* value) {
  *value = which == 0 ? 12 : which == 1 ? 6 : 0;
  return kSuccess;
}
HEADROOM_EXPORT int cusolverGetVersion(int* version) {
  *version = 12'000;
  return kSuccess;
}
HEADROOM_EXPORT int cufftGetVersion(int* version) {
  *version = 12'000;
  return kSuccess;
}
HEADROOM_EXPORT int cuptiGetVersion(std::uint32_t* version) {
  *version = 26;
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 2;
  return kSuccess;
}
HEADROOM_EXPORT const char* nvrtcGetErrorString(int) { return "not supported"; }
HEADROOM_EXPORT const char* cusparseGetErrorString(int) { return "no error"; }
HEADROOM_EXPORT const char* cusparseGetErrorName(int) { return "CUSPARSE_STATUS_SUCCESS"; }
HEADROOM_EXPORT const char* cublasGetStatusString(int) { return "CUBLAS_STATUS_SUCCESS"; }

// Plans of cuFFT are numbered. The size of their work areas is not known.

HEADROOM_EXPORT int cufftCreate(int* plan) {
  static std::atomic<int> last{0};
  *plan = ++last;
  return kSuccess;
}
HEADROOM_EXPORT int cufftXtMakePlanMany(int, int, void*, void*, long long, long long, int, void*,
                                        long long, long long, int, long long,
                                        std::size_t* work_bytes, int) {
  note_size_not_known("cufftXtMakePlanMany");
  *work_bytes = 0;
  return kSuccess;
}

// NVRTC compiles a kernel's source to no code. It names the architectures for which version 13
// compiles.

constexpr int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
HEADROOM_EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = std::size(kArchitectures);
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetSupportedArchs(int* architectures) {
  std::ranges::copy(kArchitectures, architectures);
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetCUBINSize(void*, std::size_t* bytes) {
  *bytes = 1;
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetPTXSize(void*, std::size_t* bytes) {
  *bytes = 1;
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetCUBIN(void*, char* code) {
  *code = '\0';
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetPTX(void*, char* code) {
  *code = '\0';
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetProgramLogSize(void*, std::size_t* bytes) {
  *bytes = 1;
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetProgramLog(void*, char* log) {
  *log = '\0';
  return kSuccess;
}
HEADROOM_EXPORT int nvrtcGetLoweredName(void*, const char* name, const char** lowered) {
  *lowered = name;
  return kSuccess;
}
