// Outputs that lie where an input lay: which kernels can write over an operand, and which ops of a
// lowered Program do. Set by execution passes, kept by validate(), followed by whoever counts or
// allocates.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "harness/program/op.h"

namespace headroom {

// Places in an op's `outputs` and `inputs`.
struct InPlace {
  std::size_t output;
  std::size_t input;
  bool operator==(const InPlace&) const = default;
};

// What the kernels of every device can do for a kind, the best choice first: element by element, or
// with all that is needed read before. Empty: nothing.
const std::vector<InPlace>& in_place_choices(std::string_view kind);
std::vector<std::string_view> kinds_with_in_place_choices();

// The input's memory becomes the output's; nobody reads the input again. In traces it stays one
// block, under the role it was taken for.
void put_in_place(Op& op, const InPlace& places);
std::optional<InPlace> in_place(const Op& op);

}  // namespace headroom
