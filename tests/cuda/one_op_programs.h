// Small Programs that test every kind of op with a CUDA kernel, on random shapes with all operands
// as inputs. Convolutions are separate, because only a GPU has their kernels.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness/program/program.h"

namespace headroom::testing {

class Sizes {
 public:
  explicit Sizes(std::uint64_t seed) : random_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool coin() { return (*this)(0, 1) == 1; }

 private:
  std::mt19937_64 random_;
};

struct OneOp {
  std::string name;
  bool computes_in_16_bits;  // as well as in f32
  std::function<void(Sizes&, ProgramBuilder&, DType)> build;
};

std::vector<OneOp> one_op_programs();
// For GPUs of compute capability 8.9 or newer.
std::vector<OneOp> programs_in_8_bits();
std::vector<OneOp> convolution_programs();

// A real operand in element type `type`.
ValueId operand(ProgramBuilder& build, const std::string& name, const Shape& shape, DType type);

}  // namespace headroom::testing
