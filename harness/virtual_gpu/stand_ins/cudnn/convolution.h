// A convolution as cuDNN's backend interface describes it, and the engine that a plan uses for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace headroom::virtual_gpu {

// Numbers from cuDNN's documentation (cudnn_graph.h): the attributes that name what an operation
// computes (..._CONV_DESC), types of data and knobs of engines.
constexpr int kForward = 702, kBackwardData = 708, kBackwardWeights = 714;
constexpr int kFloat = 0, kHalf = 2, kBfloat16 = 9;
constexpr int kTileSize = 2, kWorkspaceKnob = 25, kClusterRows = 27, kClusterColumns = 28;

struct Convolution {
  int kind = 0;
  int type = kFloat;
  std::vector<std::int64_t> images, filters, outputs;  // their sizes: N C H W, K C R S, N K P Q
  bool channels_last = false;
  bool is_plain = false;  // without strides, padding and dilation
  bool is_dilated = false;
};

struct Engine {
  std::size_t version = 0;  // of cuDNN, as cudnnGetVersion counts: 91900 for 9.19
  std::int64_t number = -1;
  std::map<int, std::int64_t> knobs;
};

}  // namespace headroom::virtual_gpu
