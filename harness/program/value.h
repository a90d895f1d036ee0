// A tensor as the Program sees it: shape, element type and the role it plays in training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

// f8e4m3 and f8e5m2 name their exponent and fraction bits (Micikevicius et al. 2022). Their numbers
// are meaningful only together with a scale, which is a separate value.
enum class DType : std::uint8_t { f32, bf16, f16, s32, u8, f8e4m3, f8e5m2 };
Bytes size_of(DType dtype);
std::string_view to_string(DType dtype);
inline bool is_f8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

// The purpose of a value. Memory at the peak is split by role.
enum class Role : std::uint8_t {
  input,            // images, labels: filled by the pipeline, the staging buffer of a step
  weight,           // trained
  statistic,        // kept between steps and not trained: BatchNorm's running mean and variance
  gradient,         // of a weight
  optimizer_state,  // momentum and the like
  activation,       // of the forward pass
  activation_gradient,
  workspace,  // scratch of one op (user-managed scratchpad)
  result,     // loss, metrics read by the host
};
inline constexpr int kRoleCount = 9;
std::string_view to_string(Role role);

using Shape = std::vector<std::int64_t>;
// Throws InputError for more than kMostElements elements, which exceeds any device, and for a
// negative dimension.
std::int64_t element_count(const Shape& shape);
// Limit that lets sizes of several values of 8-byte elements be added, or one be rounded up, in 64
// bits without overflow checks.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
std::string to_string(const Shape& shape);  // "[8,64,56,56]"

// How a persistent value is filled before the first step.
enum class Fill : std::uint8_t { none, constant, normal };
struct Initializer {
  Fill fill = Fill::none;
  double parameter = 0.0;  // the constant, or the standard deviation around 0
};

using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = ~ValueId{0};

struct Value {
  std::string name;
  Shape shape = {};  // logical; layouts and padding appear only after lower()
  DType dtype = DType::f32;
  Role role = Role::activation;
  // Persistent values live across steps and are shared between Programs by name.
  bool persistent = false;
  Initializer initializer = {};

  // Set by lower(); before that, bytes is 0 and layout empty.
  Bytes bytes = 0;          // what the allocator is asked for
  std::string layout = {};  // opaque library descriptor; empty = dense row-major
};

}  // namespace headroom
