// Outputs that reuse the memory of an input: which kernels support it, and which ops of a lowered
// Program do it. Execution passes set it, validate() checks it, and code that counts or allocates
// memory obeys it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/program/op.h"

namespace headroom {

// Indices into an op's `outputs` and `inputs`.
struct InPlace {
  std::size_t output;
  std::size_t input;
  bool operator==(const InPlace&) const = default;
};

// The choices that the kernels of every device support for a kind, best first: the kernel works
// element by element, or reads all it needs before it writes. Empty: none.
const std::vector<InPlace>& in_place_choices(std::string_view kind);
std::vector<std::string_view> kinds_with_in_place_choices();

// The input's memory becomes the output's, and no later op reads the input. Traces show a single
// block, with the role it was allocated for.
void put_in_place(Op& op, const InPlace& places);
std::optional<InPlace> in_place(const Op& op);

}  // namespace headroom
