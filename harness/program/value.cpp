#include "harness/program/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/base/error.h"

namespace headroom {

Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::s32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return 1;
  }
  throw Error("not an element type");
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::s32:
      return "s32";
    case DType::u8:
      return "u8";
    case DType::f8e4m3:
      return "f8e4m3";
    case DType::f8e5m2:
      return "f8e5m2";
  }
  throw Error("not an element type");
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::weight:
      return "weight";
    case Role::statistic:
      return "statistic";
    case Role::gradient:
      return "gradient";
    case Role::optimizer_state:
      return "optimizer_state";
    case Role::activation:
      return "activation";
    case Role::activation_gradient:
      return "activation_gradient";
    case Role::workspace:
      return "workspace";
    case Role::result:
      return "result";
  }
  throw Error("not a role");
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dimension : shape)
    if (dimension < 0 || __builtin_mul_overflow(count, dimension, &count) || count > kMostElements)
      throw InputError(
          fmt::format("a tensor of shape {} is larger than any device's memory; make "
                      "batch, lengths or widths smaller",
                      to_string(shape)));
  return count;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

}  // namespace headroom
