#include "tests/unit/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "harness/base/error.h"
#include "harness/program/conditional.h"
#include "tests/unit/reference/kinds.h"

namespace headroom::testing {
namespace {

const Kinds& every_kind() {
  static const Kinds kinds = [] {
    Kinds all = image_kinds();
    for (const Kinds& more :
         {dense_kinds(), text_kinds(), update_kinds(), update_list_kinds(), eight_bit_kinds()})
      all.insert(more.begin(), more.end());
    return all;
  }();
  return kinds;
}

}  // namespace

void execute_reference(const Program& program, const Op& op, Tensors& tensors) {
  const auto found = every_kind().find(op.kind);
  if (found == every_kind().end()) throw Error("the reference does not know " + op.kind);
  if (is_conditional(op) && tensors[op.inputs.back()][0] != 0) return;
  found->second({program, unconditional(op), tensors});
}

void execute_reference(const Program& program, Tensors& tensors) {
  for (const Op& op : program.ops) execute_reference(program, op, tensors);
}

// Rounds to multiples of the last of 8 bits; std::nearbyint rounds ties to even.
double rounded_to_bf16(double x) {
  if (x == 0) return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7);
  return std::nearbyint(x / unit) * unit;
}

// Rounds to 11 bits, or to multiples of 2^-24 near zero.
double rounded_to_f16(double x) {
  if (x == 0) return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / unit) * unit;
  return std::abs(rounded) > 65504 ? std::copysign(HUGE_VAL, x) : rounded;
}

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = 0xD2511F53ULL * counter[0], q = 0xCD9E8D57ULL * counter[2];
    counter = {
        static_cast<std::uint32_t>(q >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(q),
        static_cast<std::uint32_t>(p >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("HEADROOM_TEST_SEED");
    const std::uint64_t chosen = given != nullptr ? std::stoull(given) : std::random_device{}();
    std::cout << "HEADROOM_TEST_SEED=" << chosen << "\n";
    setenv("HEADROOM_TEST_SEED", std::to_string(chosen).c_str(), 1);  // for the simulated GPU
    return chosen;
  }();
  return seed;
}

void fill_randomly(const Program& program, Tensors& tensors, std::mt19937_64& random,
                   std::int64_t classes) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<std::int64_t> label(0, classes - 1);
  for (ValueId id = 0; id < program.values.size(); ++id) {
    const Value& value = program.value(id);
    if (!value.persistent && value.role != Role::input) continue;
    Tensor& tensor = tensors[id];
    tensor.resize(static_cast<std::size_t>(element_count(value.shape)));
    const bool positive = value.name.ends_with("variance") || value.name.ends_with("square") ||
                          value.name.ends_with("steps") || value.name.ends_with("loss_scale");
    for (double& x : tensor) {
      if (value.dtype == DType::s32) x = static_cast<double>(label(random));
      if (value.dtype == DType::f32)
        x = positive ? 0.5F + std::abs(normal(random)) : normal(random);
    }
  }
}

}  // namespace headroom::testing
