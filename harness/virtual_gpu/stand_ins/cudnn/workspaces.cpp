#include "harness/virtual_gpu/stand_ins/cudnn/workspaces.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/cudnn/partial_sums.h"

namespace headroom::virtual_gpu {
namespace {

using std::int64_t;

// Numbers from cuDNN's documentation (cudnn_graph.h).
constexpr int kDilations = 102, kStrides = 103, kPaddingAfter = 104, kPaddingBefore = 105;
constexpr int kHeuristicsGraph = 201, kConfigEngine = 300, kPlanConfig = 401, kGraphOps = 801;
constexpr int kTensorType = 901, kTensorSizes = 902, kTensorStrides = 903, kEngineGraph = 1300;
constexpr int kWeights = 1, kInput = 2, kOutput = 3;  // added to what an operation computes

constexpr int64_t kProductBytes = 400, kProductBytesIn16Bits = 272;

// Without a card these versions of cuDNN lack its engines for depthwise convolutions.
constexpr std::size_t kFirstWithoutDepthwise = 91'000, kLastWithoutDepthwise = 91'999;

struct Descriptor {
  int type = kFloat;
  std::vector<int64_t> sizes;
  bool channels_last = false;
  bool is_plain = true;
  bool is_dilated = false;
  int kind = 0;                        // of an operation
  std::array<void*, 4> operands = {};  // of an operation: the convolution, then as below
  std::optional<Convolution>
      computes;  // what a graph does, heuristics, an engine, a configuration or a plan
  bool is_first_choice = false;  // of heuristics: a configuration, or its plan
  Engine engine;                 // of a plan
};

std::mutex shapes_mutex;
std::map<void*, Descriptor> descriptors;

bool are_all(int64_t wanted, int64_t count, const void* values) {
  const auto* first = static_cast<const int64_t*>(values);
  return std::all_of(first, first + count, [wanted](int64_t value) { return value == wanted; });
}

const Descriptor& at(void* descriptor) { return descriptors[descriptor]; }

std::optional<Convolution> convolution_of(const Descriptor& operation) {
  if (operation.kind == 0) return {};
  const Descriptor& convolution = at(operation.operands[0]);
  const Descriptor& weights = at(operation.operands[kWeights]);
  const Descriptor& input = at(operation.operands[kInput]);
  return Convolution{operation.kind,
                     weights.type,
                     input.sizes,
                     weights.sizes,
                     at(operation.operands[kOutput]).sizes,
                     input.channels_last,
                     convolution.is_plain,
                     convolution.is_dilated};
}

// Engines that call cuBLASLt have no other knob.
bool calls_cublas(const Engine& engine) {
  return engine.knobs.size() == 1 && engine.knobs.count(kWorkspaceKnob) == 1;
}

int64_t workspace_of_product(const Convolution& convolution, const Engine& engine,
                             int64_t described) {
  const std::vector<int64_t>&filters = convolution.filters, &images = convolution.images;
  if (!convolution.is_plain || filters.size() < 3 || images.size() != filters.size() ||
      images[1] != filters[1])
    return described;
  if (!std::all_of(filters.begin() + 2, filters.end(), [](int64_t size) { return size == 1; }))
    return described;
  const bool single = convolution.type == kFloat;
  const bool uses_workspace = engine.knobs.at(kWorkspaceKnob) > 0;
  if (convolution.kind != kBackwardWeights)
    return !uses_workspace ? described : single ? kProductBytes : kProductBytesIn16Bits;
  if (convolution.channels_last) return described;
  // The engine computes a product in single precision for each image and adds up the results.
  return images[0] * filters[0] * filters[1] * int64_t{sizeof(float)} +
         (single && uses_workspace ? kProductBytes : 0);
}

// Whether the card has an engine for depthwise convolutions that cuDNN ranks before all others.
bool is_depthwise(const Convolution& convolution, const Engine& engine) {
  const std::vector<int64_t>&filters = convolution.filters, &images = convolution.images;
  return card().compute_major == 9 && engine.version >= kFirstWithoutDepthwise &&
         engine.version <= kLastWithoutDepthwise && convolution.type == kBfloat16 &&
         !convolution.is_dilated && images.size() == 4 && filters.size() == 4 && filters[1] == 1 &&
         images[1] > 1 && filters[0] == images[1] && filters[2] == filters[3] &&
         (filters[2] == 3 || filters[2] == 5 || filters[2] == 7);
}

int64_t workspace_of_depthwise(const Convolution& convolution) {
  if (convolution.kind != kBackwardWeights || !convolution.channels_last) return 0;
  // Eight parts of each image have sums of their own, for channels in groups of 32.
  const std::vector<int64_t>&filters = convolution.filters, &images = convolution.images;
  const int64_t channels = (images[1] + 31) / 32 * 32;
  return 8 * images[0] * channels * filters[2] * filters[3] * int64_t{sizeof(float)};
}

}  // namespace

void note_attribute(void* descriptor, int name, int64_t count, const void* values) {
  if (values == nullptr || count < 1) return;
  const std::lock_guard lock(shapes_mutex);
  const auto pointer = [&] { return *static_cast<void* const*>(values); };
  switch (name) {
    case kDilations:
      descriptors[descriptor].is_dilated = !are_all(1, count, values);
      [[fallthrough]];
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
    case kGraphOps:
      if (count > 1) break;  // a convolution with something else in one kernel
      descriptors[descriptor].computes = convolution_of(at(pointer()));
      break;
    case kHeuristicsGraph:
    case kEngineGraph:
    case kConfigEngine:
    case kPlanConfig:
      descriptors[descriptor].computes = at(pointer()).computes;
      descriptors[descriptor].is_first_choice = at(pointer()).is_first_choice;
      break;
    default:
      for (const int kind : {kForward, kBackwardData, kBackwardWeights}) {
        if (name < kind || name > kind + kOutput) continue;
        descriptors[descriptor].kind = kind;
        descriptors[descriptor].operands[name - kind] = pointer();
      }
      break;
  }
}

void note_choices(void* heuristics, int64_t count, void* const* chosen) {
  const std::lock_guard lock(shapes_mutex);
  const std::optional<Convolution> computes = at(heuristics).computes;
  for (int64_t i = 0; i < count; ++i) descriptors[chosen[i]].computes = computes;
  if (count > 0) descriptors[chosen[0]].is_first_choice = true;
}

void note_engine(void* plan, Engine engine) {
  const std::lock_guard lock(shapes_mutex);
  descriptors[plan].engine = std::move(engine);
}

void forget_attributes(void* descriptor) {
  const std::lock_guard lock(shapes_mutex);
  descriptors.erase(descriptor);
}

int64_t workspace_of_plan(void* plan, int64_t described) {
  const std::lock_guard lock(shapes_mutex);
  const auto found = descriptors.find(plan);
  if (found == descriptors.end() || !found->second.computes) return described;
  const Convolution& convolution = *found->second.computes;
  const Engine& engine = found->second.engine;
  if (found->second.is_first_choice && is_depthwise(convolution, engine))
    return workspace_of_depthwise(convolution);
  if (calls_cublas(engine)) return workspace_of_product(convolution, engine, described);
  return std::max<int64_t>(described + partial_sums_beyond_described(convolution, engine), 0);
}

}  // namespace headroom::virtual_gpu
