// The reference for kernels and backward rules: every op kind computed in double, straight from its
// definition, over plain row-major tensors. Shares no code with the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "harness/program/program.h"

namespace headroom::testing {

using Tensor = std::vector<double>;

// Tensors by value id; an absent tensor is empty.
class Tensors {
 public:
  explicit Tensors(const Program& program) : tensors_(program.values.size()) {}
  Tensor& operator[](ValueId id) { return tensors_.at(id); }
  const Tensor& operator[](ValueId id) const { return tensors_.at(id); }

 private:
  std::vector<Tensor> tensors_;
};

// Runs one op; its inputs must be present.
void execute_reference(const Program& program, const Op& op, Tensors& tensors);
// Runs all ops of the Program.
void execute_reference(const Program& program, Tensors& tensors);

// The nearest bf16 value; x must lie in the range of bf16.
double rounded_to_bf16(double x);
// The nearest f16 value; infinite from 65520 on.
double rounded_to_f16(double x);

// Philox4x32-10 of Salmon et al. 2011, one counter at a time.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// Seed of this test run, printed once. Set HEADROOM_TEST_SEED=… to repeat a failure.
std::uint64_t test_seed();

// Fills every input and persistent value with new contents that a float represents exactly: normal
// for f32, a class below `classes` for s32 labels, positive for variances, squares, steps and loss
// scales.
void fill_randomly(const Program& program, Tensors& tensors, std::mt19937_64& random,
                   std::int64_t classes);

}  // namespace headroom::testing
