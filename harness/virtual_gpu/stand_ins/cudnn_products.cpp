#include "harness/virtual_gpu/stand_ins/cudnn_products.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

namespace headroom::virtual_gpu {
namespace {

using std::int64_t;

// Numbers from cuDNN's documentation (cudnn_graph.h).
constexpr int kDilations = 102, kStrides = 103, kPaddingAfter = 104, kPaddingBefore = 105;
constexpr int kHeuristicsGraph = 201, kPlanConfig = 401, kGraphOps = 801;
constexpr int kTensorType = 901, kTensorSizes = 902, kTensorStrides = 903;
constexpr int kForward = 702, kBackwardData = 708, kBackwardWeights = 714;  // ..._CONV_DESC
constexpr int kWeights = 1, kInput = 2;  // added to these, the operands
constexpr int kFloat = 0;

constexpr int64_t kProductBytes = 400, kProductBytesIn16Bits = 272;

struct Descriptor {
  int type = kFloat;
  std::vector<int64_t> sizes;
  bool channels_last = false;
  bool is_plain = true;  // a convolution without strides, padding and dilation
  int kind = 0;          // of an operation
  void* convolution = nullptr;
  void* weights = nullptr;
  void* input = nullptr;
  std::optional<int64_t> workspace;  // of a graph, heuristics, a configuration or a plan
};

std::mutex mutex;
std::map<void*, Descriptor> descriptors;

bool are_all(int64_t wanted, int64_t count, const void* values) {
  const auto* first = static_cast<const int64_t*>(values);
  return std::all_of(first, first + count, [wanted](int64_t value) { return value == wanted; });
}

const Descriptor& at(void* descriptor) { return descriptors[descriptor]; }

std::optional<int64_t> workspace_of_operation(const Descriptor& operation) {
  if (operation.kind == 0 || !at(operation.convolution).is_plain) return {};
  const Descriptor& weights = at(operation.weights);
  if (at(operation.input).channels_last) return {};
  const std::vector<int64_t>&filters = weights.sizes, &images = at(operation.input).sizes;
  if (filters.size() < 3 || images.size() != filters.size() || images[1] != filters[1]) return {};
  if (!std::all_of(filters.begin() + 2, filters.end(), [](int64_t size) { return size == 1; }))
    return {};
  const bool single = weights.type == kFloat;
  const int64_t in = filters[1], out = filters[0];
  if (operation.kind != kBackwardWeights)
    return out > in ? 0 : single ? kProductBytes : kProductBytesIn16Bits;
  // The engine computes a product in single precision for each image and adds up the results. It is
  // ranked first if these results are no larger than the factors.
  const int64_t pixels =
      std::accumulate(images.begin() + 2, images.end(), int64_t{1}, std::multiplies<>());
  const int64_t results = in * out * int64_t{sizeof(float)};
  if (results > pixels * (in + out) * (single ? 4 : 2)) return {};
  return images[0] * results;
}

}  // namespace

void note_attribute(void* descriptor, int name, int64_t count, const void* values) {
  if (values == nullptr || count < 1) return;
  const std::lock_guard lock(mutex);
  const auto pointer = [&] { return *static_cast<void* const*>(values); };
  switch (name) {
    case kDilations:
    case kStrides:
      descriptors[descriptor].is_plain &= are_all(1, count, values);
      break;
    case kPaddingBefore:
    case kPaddingAfter:
      descriptors[descriptor].is_plain &= are_all(0, count, values);
      break;
    case kTensorType:
      descriptors[descriptor].type = *static_cast<const int*>(values);
      break;
    case kTensorSizes: {
      const auto* sizes = static_cast<const int64_t*>(values);
      descriptors[descriptor].sizes.assign(sizes, sizes + count);
      break;
    }
    case kTensorStrides:
      descriptors[descriptor].channels_last =
          count > 1 && static_cast<const int64_t*>(values)[1] == 1;
      break;
    case kForward:
    case kBackwardData:
    case kBackwardWeights:
      descriptors[descriptor].kind = name;
      descriptors[descriptor].convolution = pointer();
      break;
    case kForward + kWeights:
    case kBackwardData + kWeights:
    case kBackwardWeights + kWeights:
      descriptors[descriptor].weights = pointer();
      break;
    case kForward + kInput:
    case kBackwardData + kInput:
    case kBackwardWeights + kInput:
      descriptors[descriptor].input = pointer();
      break;
    case kGraphOps:
      if (count > 1) break;  // a product with something else in one kernel
      descriptors[descriptor].workspace = workspace_of_operation(at(pointer()));
      break;
    case kHeuristicsGraph:
    case kPlanConfig:
      descriptors[descriptor].workspace = at(pointer()).workspace;
      break;
    default:
      break;
  }
}

void note_first_choice(void* heuristics, void* chosen) {
  const std::lock_guard lock(mutex);
  descriptors[chosen].workspace = at(heuristics).workspace;
}

void forget_attributes(void* descriptor) {
  const std::lock_guard lock(mutex);
  descriptors.erase(descriptor);
}

std::optional<int64_t> workspace_of_product(void* plan) {
  const std::lock_guard lock(mutex);
  const auto found = descriptors.find(plan);
  return found == descriptors.end() ? std::nullopt : found->second.workspace;
}

}  // namespace headroom::virtual_gpu
