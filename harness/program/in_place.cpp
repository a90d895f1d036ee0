#include "harness/program/in_place.h"

#include <map>

namespace headroom {
namespace {

constexpr const char* kInPlace = "in_place";

// oneDNN's batch normalisation and element-wise primitives allow src = dst and diff_src = diff_dst
// (API reference, "supports in-place operation"), not diff_src = src. Overwriting a gradient is
// preferred, because an activation may have further readers.
const std::map<std::string_view, std::vector<InPlace>>& choices() {
  static const std::map<std::string_view, std::vector<InPlace>> choices = {
      {"add", {{0, 0}, {0, 1}}},
      {"batch_norm", {{0, 0}}},
      {"batch_norm_add_relu", {{0, 3}, {0, 0}}},
      {"batch_norm_add_relu_backward", {{3, 1}, {0, 0}}},
      {"batch_norm_backward", {{0, 1}}},
      {"batch_norm_relu", {{0, 0}}},
      {"batch_norm_relu_backward", {{0, 1}, {0, 0}}},
      {"causal_softmax", {{0, 0}}},
      {"dropout", {{0, 0}}},
      {"dropout_backward", {{0, 0}}},
      {"gather_rows_backward_add", {{0, 2}}},
      {"gelu", {{0, 0}}},
      {"gelu_backward", {{0, 1}}},
      {"layer_norm", {{0, 0}}},
      {"layer_norm_backward", {{0, 1}, {0, 0}}},
      {"leaky_relu", {{0, 0}}},
      {"leaky_relu_backward", {{0, 1}, {0, 0}}},
      {"masked", {{0, 0}}},
      {"masked_softmax", {{0, 0}}},
      {"masked_softmax_backward", {{0, 1}, {0, 0}}},
      {"relu", {{0, 0}}},
      {"relu_backward", {{0, 1}, {0, 0}}},
      {"sigmoid_cross_entropy_backward", {{0, 0}}},
      {"softmax_cross_entropy", {{1, 0}}},
      {"softmax_cross_entropy_and_gradient", {{1, 0}}},
      {"softmax_cross_entropy_backward", {{0, 0}}},
      {"tanh", {{0, 0}}},
      {"tanh_backward", {{0, 1}}},
  };
  return choices;
}

}  // namespace

const std::vector<InPlace>& in_place_choices(std::string_view kind) {
  static const std::vector<InPlace> none;
  const auto found = choices().find(kind);
  return found == choices().end() ? none : found->second;
}

std::vector<std::string_view> kinds_with_in_place_choices() {
  std::vector<std::string_view> kinds;
  for (const auto& [kind, places] : choices()) kinds.push_back(kind);
  return kinds;
}

void put_in_place(Op& op, const InPlace& places) {
  op.attributes[kInPlace] = std::vector<std::int64_t>{static_cast<std::int64_t>(places.output),
                                                      static_cast<std::int64_t>(places.input)};
}

std::optional<InPlace> in_place(const Op& op) {
  if (!op.attributes.contains(kInPlace)) return std::nullopt;
  const auto& places = op.list(kInPlace);
  return InPlace{.output = static_cast<std::size_t>(places.at(0)),
                 .input = static_cast<std::size_t>(places.at(1))};
}

}  // namespace headroom
