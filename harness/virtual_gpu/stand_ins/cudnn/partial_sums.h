// The partial sums of convolutions that cuDNN's engines for Hopper split.
#pragma once

#include <cstdint>

#include "harness/virtual_gpu/stand_ins/cudnn/convolution.h"

namespace headroom::virtual_gpu {

// Returns the bytes by which the workspace on the card exceeds the one that cuDNN gives for the
// card's description (less than zero where it is smaller); 0 for engines and cards that were not
// measured.
//
// The engines 62, 65, 67, 68 and 71 compute a convolution as a matrix product in tiles, as the
// persistent stream-K scheduler in NVIDIA's public CUTLASS does (include/cutlass/gemm/kernel/
// tile_scheduler_params.h). Clusters of blocks stay on the card and take one tile of the product
// after the other. Where fewer tiles are left than clusters, the clusters share them: each sums a
// part of K and keeps its partial sums in the workspace. So the size depends on how many clusters
// the card holds. Without a card cuDNN counts one group of 18 multiprocessors, whatever the
// description says.
//
// How cuDNN differs from the public source was measured on one H200 with cuDNN 9.19, in 4,953
// convolutions of networks: each part of a tile has its own sums, pairs of them are added in a
// tree, and splitting must gain more than a level of the tree costs. Without a card, cuDNN 9.10,
// 9.26, 9.27 and 9.28 number these engines and their tiles alike and give the sizes that the rule
// expects.
std::int64_t partial_sums_beyond_described(const Convolution& convolution, const Engine& engine);

}  // namespace headroom::virtual_gpu
