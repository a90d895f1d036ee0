#include "tests/cuda/loop_program.h"

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernels/gemm.h"
#include "harness/device/cuda/module/work/accumulate.h"
#include "harness/device/cuda/module/work/average_pool.h"
#include "harness/device/cuda/module/work/batch_norm.h"
#include "harness/device/cuda/module/work/cast.h"
#include "harness/device/cuda/module/work/dropout.h"
#include "harness/device/cuda/module/work/elementwise.h"
#include "harness/device/cuda/module/work/gather.h"
#include "harness/device/cuda/module/work/gradients.h"
#include "harness/device/cuda/module/work/hits.h"
#include "harness/device/cuda/module/work/layer_norm.h"
#include "harness/device/cuda/module/work/lifetimes.h"
#include "harness/device/cuda/module/work/linear.h"
#include "harness/device/cuda/module/work/loss.h"
#include "harness/device/cuda/module/work/max_pool.h"
#include "harness/device/cuda/module/work/resample.h"
#include "harness/device/cuda/module/work/sigmoid_loss.h"
#include "harness/device/cuda/module/work/softmax.h"
#include "harness/device/cuda/module/work/update/adafactor.h"
#include "harness/device/cuda/module/work/update/adam8bit.h"
#include "harness/device/cuda/module/work/update/prune.h"
#include "harness/device/cuda/module/work/update/quantise.h"
#include "harness/device/cuda/module/work/update/update.h"
#include "harness/device/cuda/module/work/update/update_lists.h"
#include "harness/device/cuda/module/work/works.h"
#include "harness/program/conditional.h"
#include "tests/cuda/loop_queue.h"
#include "tests/unit/reference/reference.h"

namespace headroom::testing {
namespace {

// Element (i, j) of op(matrix), as defined in the documentation of cublasLtMatmul.
template <typename T>
double element(const T* data, const cuda::GemmMatrix& matrix, bool transposed, std::int64_t i,
               std::int64_t j) {
  return host::load(transposed ? data[j + i * matrix.leading] : data[i + j * matrix.leading]);
}

template <typename A, typename B, typename Result>
void naive_gemm(const cuda::Gemm& gemm, const std::byte* a, const std::byte* b, double scale,
                const Result* bias, std::byte* d) {
  const std::int64_t inner = gemm.transpose_a ? gemm.of_a.rows : gemm.of_a.columns;
  if (inner != (gemm.transpose_b ? gemm.of_b.columns : gemm.of_b.rows) ||
      gemm.of_d.rows != (gemm.transpose_a ? gemm.of_a.columns : gemm.of_a.rows) ||
      gemm.of_d.columns != (gemm.transpose_b ? gemm.of_b.rows : gemm.of_b.columns) ||
      gemm.of_a.leading < gemm.of_a.rows || gemm.of_b.leading < gemm.of_b.rows ||
      gemm.of_d.leading < gemm.of_d.rows)
    throw Error("cuBLAS would refuse these shapes");
  if (host::EightBits<A> && (!gemm.transpose_a || gemm.transpose_b))
    throw Error("cuBLAS multiplies 8 bits only where the first factor alone is transposed");
  for (std::int64_t call = 0; call < gemm.calls; ++call)
    for (std::int64_t of = 0; of < gemm.batch; ++of) {
      const A* first = cuda::elements<A>(a) + call * gemm.steps[0] + of * gemm.of_a.stride;
      const B* second = cuda::elements<B>(b) + call * gemm.steps[1] + of * gemm.of_b.stride;
      Result* result = cuda::elements<Result>(d) + call * gemm.steps[2] + of * gemm.of_d.stride;
      for (std::int64_t j = 0; j < gemm.of_d.columns; ++j)
        for (std::int64_t i = 0; i < gemm.of_d.rows; ++i) {
          double sum = 0;
          for (std::int64_t k = 0; k < inner; ++k)
            sum += element(first, gemm.of_a, gemm.transpose_a, i, k) *
                   element(second, gemm.of_b, gemm.transpose_b, k, j);
          const double added = bias == nullptr ? 0 : host::load(bias[i]);
          host::store(result[i + j * gemm.of_d.leading], static_cast<float>(scale * sum + added));
        }
    }
}

// The type of an operand of a product.
template <typename Make>
void for_factor_type(DType dtype, Make make) {
  if (dtype == DType::f8e4m3) return make(host::F8E4M3{});
  if (dtype == DType::f8e5m2) return make(host::F8E5M2{});
  Value of_that_type;
  of_that_type.dtype = dtype;
  host::for_type_of(of_that_type, make);
}

// Returns the device's transposed copy of a column-major matrix, or the matrix itself.
std::byte* as_read(bool turned, const cuda::GemmMatrix& copy, std::byte* given,
                   std::vector<cuda::SixteenBytes>& room) {
  if (!turned) return given;
  room.resize(static_cast<std::size_t>(copy.rows * copy.columns) / sizeof(room[0]));
  auto* const to = reinterpret_cast<std::byte*>(room.data());
  LoopQueue queue(test_seed(), nullptr);
  cuda::transpose_bytes_work<LoopQueue>(copy.columns, copy.rows)(
      queue, {.inputs = {&given, 1}, .outputs = {&to, 1}});
  return to;
}

void run_gemm(const Program& program, const Op& op, const OpBuffers& buffers) {
  const cuda::Gemm gemm = cuda::gemm_of(op, program);
  std::vector<cuda::SixteenBytes> copy_of_a, copy_of_b;
  std::byte* const a = as_read(gemm.turned[0], gemm.of_a, buffers.inputs[gemm.a], copy_of_a);
  std::byte* const b = as_read(gemm.turned[1], gemm.of_b, buffers.inputs[gemm.b], copy_of_b);
  double scale = 1;
  if (is_f8(program.value(op.inputs[0]).dtype))
    for (std::byte* const factor : buffers.inputs.last(2)) scale *= *cuda::floats(factor);
  const auto multiply = [&]<typename A, typename B, typename Result>(A, B, Result) {
    std::vector<Result> bias;
    if (gemm.has_bias) {
      bias.resize(static_cast<std::size_t>(gemm.of_d.rows));
      std::byte* from = buffers.inputs[2];
      auto* to = reinterpret_cast<std::byte*>(bias.data());
      LoopQueue queue(test_seed(), nullptr);
      cuda::Cast<float, Result>(gemm.of_d.rows)(queue, {.inputs = {&from, 1}, .outputs = {&to, 1}});
    }
    naive_gemm<A, B, Result>(gemm, a, b, scale, gemm.has_bias ? bias.data() : nullptr,
                             buffers.outputs[0]);
  };
  for_factor_type(program.value(op.inputs[gemm.a]).dtype, [&](auto of_a) {
    for_factor_type(program.value(op.inputs[gemm.b]).dtype, [&](auto of_b) {
      host::for_type_of(program.value(op.outputs[0]),
                        [&](auto result) { multiply(of_a, of_b, result); });
    });
  });
}

void run_reference(const Program& program, const Op& op, const OpBuffers& buffers) {
  Tensors tensors(program);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const float* data = cuda::floats(buffers.inputs[i]);
    tensors[op.inputs[i]].assign(data, data + cuda::count_of(program, op.inputs[i]));
  }
  execute_reference(program, op, tensors);
  const Tensor& y = tensors[op.outputs[0]];
  std::copy(y.begin(), y.end(), cuda::floats(buffers.outputs[0]));
}

class LoopProgram final : public CompiledProgram {
 public:
  explicit LoopProgram(const Program& lowered) : program_(lowered) {}

  // Repeated runs of an op give the same bits, but the order of sums is random.
  void run(std::size_t index, const OpBuffers& buffers) override {
    const Op& op = program_.ops.at(index);
    if (op.kind.find("convolution") != std::string::npos)
      return run_reference(program_, op, buffers);
    const float* unless = is_conditional(op) ? cuda::floats(buffers.inputs.back()) : nullptr;
    LoopQueue queue(test_seed() + index, unless);
    if (op.kind.starts_with("linear") || op.kind == "batched_matmul") {
      run_gemm(program_, op, buffers);
      if (op.kind == "linear_backward_weights")
        cuda::bias_gradient_work<LoopQueue>(op, program_)(queue, buffers);
      return;
    }
    static const cuda::Works<LoopQueue> works = cuda::every_work<LoopQueue>();
    const auto found = works.find(op.kind);
    if (found == works.end()) throw Error("the CUDA device has no kernel for " + op.kind);
    found->second(unconditional(op), program_)(queue, buffers);
  }

 private:
  const Program& program_;
};

}  // namespace

std::unique_ptr<CompiledProgram> compile_in_loops(const Program& lowered) {
  return std::make_unique<LoopProgram>(lowered);
}

}  // namespace headroom::testing
