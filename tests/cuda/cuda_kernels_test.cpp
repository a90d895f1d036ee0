// The GPU's kernels against the reference, with all memory from bfc over cudaMalloc: every kind of
// op of every workload, on random shapes and in whole training steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/cuda/load_module.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"
#include "harness/program/lowering/channels_last.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/tf32.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/validator.h"
#include "tests/cuda/judged_programs.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using testing::HostExecution;
using ::testing::IsEmpty;
using testing::Tensors;
using ::testing::ThrowsMessage;

// Copies an op's operands, outputs and workspace from the host to the GPU, runs the op there and
// copies all of them back, so that whatever the kernel does not write stays poisoned.
class OnGpu final : public CompiledProgram {
 public:
  OnGpu(const Program& lowered, Device& device, Allocator& allocator)
      : program_(lowered),
        device_(device),
        allocator_(allocator),
        compiled_(device.compile(lowered)) {}

  void run(std::size_t index, const OpBuffers& buffers) override {
    const Op& op = program_.ops.at(index);
    const auto inputs = take(op.inputs, buffers.inputs);
    const auto outputs = take(op.outputs, buffers.outputs);
    const auto workspace = take({&op.workspace, 1}, {&buffers.workspace, 1});
    compiled_->run(index, {.inputs = inputs, .outputs = outputs, .workspace = workspace.front()});
    device_.synchronize();
    for (const auto& [host, copy] : copies_) {
      device_.read(copy.value, copy.block.data, {host, copy.value.bytes});
      allocator_.deallocate(copy.block);
    }
    copies_.clear();
  }

 private:
  struct Copy {
    Value value;
    Block block;
  };

  // Maps each host address to one GPU address, whatever its role.
  std::vector<std::byte*> take(std::span<const ValueId> ids, std::span<std::byte* const> host) {
    std::vector<std::byte*> places;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == kNoValue) {
        places.push_back(nullptr);
        continue;
      }
      Value value = program_.value(ids[i]);
      value.layout.clear();  // these copies keep the order of the bytes
      if (!copies_.contains(host[i])) {
        const Block block = allocator_.allocate(value.bytes, {.role = value.role});
        copies_[host[i]] = {value, block};
        device_.write(value, block.data, {host[i], value.bytes});
      }
      places.push_back(copies_[host[i]].block.data);
    }
    return places;
  }

  const Program& program_;
  Device& device_;
  Allocator& allocator_;
  std::unique_ptr<CompiledProgram> compiled_;
  std::map<std::byte*, Copy> copies_;
};

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    const DeviceKind& cuda = Registry<DeviceKind>::instance().find("cuda");
    if (const std::string reason = cuda.unavailable(); !reason.empty())
      GTEST_SKIP() << "no CUDA GPU: " << reason;
    device_ = cuda.create(Spec::parse("cuda(capacity=512MiB)"));
    device_->memory().record_into(&recorder_);
    recorder_.trace().header.capacity_bytes = device_->memory().capacity();
    strategy_ = make_allocator(Spec::parse("bfc(growth=on)"), device_->memory());
    allocator_ = std::make_unique<RecordingAllocator>(*strategy_, recorder_);
  }

  HostExecution::Compile on_gpu() {
    return [this](const Program& lowered) {
      return std::make_unique<OnGpu>(lowered, *device_, *allocator_);
    };
  }

  Program lower_for_gpu() const {
    PersistentLayouts layouts;
    return lower(program_, "cudnn", layouts);
  }

  ValueId input(const char* name, Shape shape, DType dtype = DType::f32) {
    return build_.input(name, std::move(shape), dtype);
  }

  std::vector<Bytes> workspaces_taken() const {
    std::vector<Bytes> taken;
    for (const TraceEvent& event : recorder_.trace().events)
      if (event.kind == EventKind::alloc && event.role == Role::workspace)
        taken.push_back(event.requested);
    return taken;
  }

  Program program_{.name = "test"};
  ProgramBuilder build_{program_};
  TraceRecorder recorder_{64};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> strategy_;
  std::unique_ptr<RecordingAllocator> allocator_;
};

TEST_F(CudaKernels, of_every_kind_agree_with_the_reference_on_random_shapes) {
  testing::judge(testing::one_op_programs(), "cudnn", on_gpu());
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

TEST_F(CudaKernels, in_8_bits_agree_with_the_reference_on_random_shapes) {
  try {
    testing::judge(testing::programs_in_8_bits(), "cudnn", on_gpu());
  } catch (const NotSupported& error) {
    // Anything else that the library lacks is a failure.
    if (std::string(error.what()).find("compute capability 8.9") == std::string::npos) throw;
    GTEST_SKIP() << error.what();
  }
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

TEST_F(CudaKernels, of_convolutions_agree_with_the_reference_on_random_shapes) {
  testing::judge(testing::convolution_programs(), "cudnn", on_gpu());
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

TEST_F(CudaKernels, of_whole_training_steps_agree_with_the_reference_op_by_op) {
  testing::judge_training_steps("cudnn", on_gpu());
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

// At this length, even exact sums of TF32 products would differ by far more than the tolerance.
TEST_F(CudaKernels, of_products_compute_in_f32) {
  build_.emit_one("linear", "fc", {input("x", {33, 301}), input("w", {17, 301}), input("b", {17})});
  HostExecution run(lower_for_gpu(), on_gpu());
  Tensors tensors(run.program());
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(run.program(), tensors, random, 3);
  run.write_all(tensors);
  run.run_and_judge();
}

// The library need not use TF32, but must not use anything coarser. Rounding operands to 11 bits
// changes each by up to 2^-11 of its value, and truncating them by up to twice that.
TEST_F(CudaKernels, of_products_that_may_use_tf32_are_no_coarser) {
  const std::int64_t rows = 64, inner = 512, columns = 96;
  const ValueId x = input("x", {rows, inner}), w = input("w", {columns, inner});
  const ValueId y = build_.emit_one("linear", "fc", {x, w, input("b", {columns})});
  compute_in_tf32(program_.ops.back());
  HostExecution run(lower_for_gpu(), on_gpu());
  Tensors tensors(run.program());
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(run.program(), tensors, random, 3);
  run.write_all(tensors);
  run.run();
  const auto found = run.read(y), of_x = run.read(x), of_w = run.read(w), bias = run.read(2);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = bias[at(c)], size = 1;
      for (std::int64_t k = 0; k < inner; ++k) {
        const double product = of_x[at(r * inner + k)] * of_w[at(c * inner + k)];
        sum += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(found[at(r * columns + c)], sum, 0x1p-9 * size);
    }
}

// Copies change no bit, whenever they arrive.
TEST_F(CudaKernels, of_steps_that_offload_give_the_losses_of_those_that_do_not) {
  Cell cell{.workload = Spec::parse("resnet(batch=4,depth=18,width=8)"),
            .device = Spec::parse("cuda(capacity=256MiB)"),
            .rules = "cudnn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .warmup_steps = 2,
            .measured_steps = 4};
  const Sample plain = run_cell(cell, 7, "");
  for (const char* strategy :
       {"offload(prefetch=0)", "offload(prefetch=1)", "offload(prefetch=30)"}) {
    cell.checkpointing = Spec::parse(strategy);
    const Sample offloaded = run_cell(cell, 7, "");
    EXPECT_EQ(offloaded.status, SampleStatus::ok) << offloaded.reason;
    EXPECT_EQ(offloaded.loss, plain.loss) << strategy;
  }
}

TEST_F(CudaKernels, of_convolution_refuse_padding_that_differs_between_sides) {
  build_.emit_one("convolution", "conv", {input("x", {1, 1, 8, 8}), input("w", {1, 1, 3, 3})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{0, 1, 1, 1}}});
  EXPECT_THAT([&] { lower_for_gpu(); },
              ThrowsMessage<InputError>(HasSubstr("differs between sides")));
}

TEST_F(CudaKernels, of_convolutions_keep_to_the_workspace_limit_of_the_rules) {
  constexpr Bytes kLimit = 64 * kKiB;
  build_.emit_one("convolution", "conv", {input("x", {32, 64, 56, 56}), input("w", {64, 64, 3, 3})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}});
  PersistentLayouts layouts;
  const Program limited = lower(program_, "cudnn(workspace_limit=64KiB)", layouts);
  EXPECT_THAT(limited.rules, HasSubstr("workspace_limit=65536"));
  const ValueId workspace = limited.ops.front().workspace;
  EXPECT_LE(workspace == kNoValue ? 0 : limited.value(workspace).bytes, kLimit);
  device_->compile(limited);  // compiles only if it finds the same algorithm
}

// Even exact sums of TF32 products would differ by more than the tolerance.
TEST_F(CudaKernels, of_convolutions_compute_in_f32) {
  build_.emit_one("convolution", "conv", {input("x", {2, 64, 16, 16}), input("w", {64, 64, 3, 3})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}});
  HostExecution run(lower_for_gpu(), on_gpu());
  Tensors tensors(run.program());
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(run.program(), tensors, random, 3);
  run.write_all(tensors);
  run.run_and_judge();
}

// cuDNN takes tensors of fewer than 2^31 elements. Lowering needs no memory, so this runs anywhere.
TEST_F(CudaKernels, of_convolutions_divide_a_batch_that_is_too_large_for_one_call) {
  build_.emit_one("convolution", "conv",
                  {input("x", {4096, 64, 128, 128}), input("w", {64, 64, 3, 3})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}});
  EXPECT_NO_THROW(device_->compile(lower_for_gpu()));
}

TEST_F(CudaKernels, of_convolutions_refuse_an_image_that_is_too_large_for_one_call) {
  build_.emit_one("convolution", "conv",
                  {input("x", {2, 2048, 1024, 1024}), input("w", {1, 2048, 1, 1})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{0, 0, 0, 0}}});
  EXPECT_THAT([&] { lower_for_gpu(); },
              ThrowsMessage<NotSupported>(HasSubstr("one image of 2147483648")));
}

// Shapes that NVIDIA's libraries may not support. The simulated GPU can be told to support none.
class CudaKernelsWithout : public CudaKernels {
 protected:
  void SetUp() override {
    if (cuda_module().module == nullptr || !cuda_module().module->simulated)
      GTEST_SKIP() << "not on a simulated GPU, which can be told what it lacks";
    CudaKernels::SetUp();
  }
  void TearDown() override {
    for (const char* name : {kLacks, kMostElements}) unsetenv(name);
  }

  void judge_products() {
    std::vector<testing::OneOp> products = testing::programs_in_8_bits();
    for (testing::OneOp& one : testing::one_op_programs())
      if (one.name == "linear" || one.name == "batched_matmul") products.push_back(std::move(one));
    ASSERT_EQ(products.size(), 3U);
    testing::judge(products, "cudnn", on_gpu());
  }

  static constexpr const char* kLacks = "HEADROOM_SIMULATED_GPU_LACKS";
  static constexpr const char* kMostElements = "HEADROOM_SIMULATED_GPU_MOST_ELEMENTS";
};

TEST_F(CudaKernelsWithout, room_for_a_whole_batch_agree_with_the_reference) {
  setenv(kMostElements, "6000", 1);  // two or three of the largest images here are more
  std::vector<testing::OneOp> convolutions = testing::convolution_programs();
  convolutions.push_back(
      {"three large images", true, [](testing::Sizes&, ProgramBuilder& build, DType type) {
         const Shape x = {3, 20, 13, 13}, w = {20, 20, 3, 3};
         const Attributes window = {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}};
         Attributes data = window, weights = window;
         data["input_shape"] = x;
         weights["weight_shape"] = w;
         const auto of_x = testing::operand(build, "x", x, type);
         const auto of_w = testing::operand(build, "w", w, type);
         const auto dy = testing::operand(build, "dy", x, type);
         build.emit_one("convolution", "conv", {of_x, of_w}, window);
         build.emit_one("convolution_backward_data", "conv.data", {dy, of_w}, data);
         build.emit_one("convolution_backward_weights", "conv.weights", {of_x, dy}, weights);
       }});
  // In 16 bits, weight gradients are rounded after every call.
  for (testing::OneOp& one : convolutions) one.computes_in_16_bits = false;
  testing::judge(convolutions, "cudnn", on_gpu());
}

TEST_F(CudaKernelsWithout, the_best_product_take_the_next) {
  setenv(kLacks, "first_products", 1);
  judge_products();
}

TEST_F(CudaKernelsWithout, batches_by_address_multiply_those_of_each_stride_in_a_call) {
  setenv(kLacks, "batches_by_address", 1);
  judge_products();
}

// In 16 bits the result is rounded once more, so only f32 stays within the tolerance.
TEST_F(CudaKernelsWithout, products_that_add_a_bias_add_it_afterwards) {
  setenv(kLacks, "bias_epilogue", 1);
  for (testing::OneOp one : testing::one_op_programs())
    if (one.name == "linear") {
      one.computes_in_16_bits = false;
      testing::judge({one}, "cudnn", on_gpu());
    }
}

// Otherwise no test would reach some kernels for channels-last images. A real library may reject
// some shapes in that order.
TEST_F(CudaKernelsWithout, a_lack_see_all_images_of_16_bits_channels_last) {
  testing::Sizes sizes(testing::test_seed());
  testing::convolution_programs().at(0).build(sizes, build_, DType::bf16);
  const Program program = lower_for_gpu();
  std::set<std::string> kinds;
  for (const Op& op : program.ops)
    for (const ValueId id : op.outputs)
      if (is_channels_last(program.value(id))) kinds.insert(op.kind);
  EXPECT_THAT(kinds, ElementsAre("add", "batch_norm", "batch_norm_add_relu", "batch_norm_backward",
                                 "batch_norm_inference", "batch_norm_relu",
                                 "batch_norm_relu_backward", "cast", "convolution",
                                 "convolution_backward_data", "global_average_pool_backward",
                                 "leaky_relu", "max_pool", "max_pool_backward", "relu_backward"));
}

// Some convolutions then take row-major copies of channels-last images.
TEST_F(CudaKernelsWithout, much_workspace_agree_with_the_reference) {
  testing::judge(testing::convolution_programs(), "cudnn(workspace_limit=8KiB)", on_gpu());
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

TEST_F(CudaKernelsWithout, nhwc_convolutions_keep_all_images_row_major) {
  setenv(kLacks, "nhwc_convolutions", 1);
  testing::judge(testing::convolution_programs(), "cudnn", on_gpu());
  testing::Sizes sizes(testing::test_seed());
  testing::convolution_programs().at(0).build(sizes, build_, DType::bf16);
  for (const Value& value : lower_for_gpu().values) EXPECT_EQ(value.layout, "") << value.name;
}

TEST_F(CudaKernelsWithout, deterministic_convolutions_list_what_there_is) {
  setenv(kLacks, "deterministic_convolutions", 1);
  build_.emit_one("convolution", "conv", {input("x", {1, 1, 8, 8}), input("w", {1, 1, 3, 3})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}});
  EXPECT_THAT([&] { lower_for_gpu(); }, ThrowsMessage<NotSupported>(AllOf(
                                            HasSubstr("no deterministic f32 algorithm"),
                                            HasSubstr("algorithm 0 (runs, math type"),
                                            HasSubstr("algorithm 3 (does not run, math type"))));
}

TEST_F(CudaKernels, take_the_temporary_storage_of_a_large_reduction_from_the_strategy) {
  constexpr std::int64_t kRows = 1'000'003;
  build_.emit_one("count_correct", "hits",
                  {input("logits", {kRows, 3}), input("labels", {kRows}, DType::s32)});
  HostExecution run(lower_for_gpu(), on_gpu());
  Tensors tensors(run.program());
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(run.program(), tensors, random, 3);
  run.write_all(tensors);
  run.run_and_judge();
  // The best of each row and the partial sums, so more than a placeholder.
  EXPECT_THAT(workspaces_taken(), ElementsAre(Gt(kBlockAlignment)));
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

TEST_F(CudaKernels, of_programs_lowered_under_other_rules_are_refused) {
  build_.emit_one("linear", "fc", {input("x", {2, 3}), input("w", {4, 3}), input("b", {4})});
  PersistentLayouts layouts;
  const Program dense = lower(program_, "dense", layouts);
  EXPECT_THAT([&] { device_->compile(dense); },
              ThrowsMessage<InputError>(HasSubstr("lowered under 'dense'")));
}

}  // namespace
}  // namespace headroom
