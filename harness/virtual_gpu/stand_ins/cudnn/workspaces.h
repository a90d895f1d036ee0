// Workspaces of convolutions that differ on a card from what cuDNN says for its description.
#pragma once

#include <cstdint>

#include "harness/virtual_gpu/stand_ins/cudnn/convolution.h"

namespace headroom::virtual_gpu {

// The first four functions follow cuDNN's descriptors from a convolution to its plan.

// Notes an attribute that the program sets.
void note_attribute(void* descriptor, int name, std::int64_t count, const void* values);
// Notes that `heuristics` propose `count` configurations, the best one first.
void note_choices(void* heuristics, std::int64_t count, void* const* chosen);
// Notes the engine of a plan whose configuration was set.
void note_engine(void* plan, Engine engine);
// Forgets a descriptor that is destroyed.
void forget_attributes(void* descriptor);

// Returns the workspace of a plan on the card, in bytes, where `described` is what cuDNN gives for
// the card's description.
//
// It differs for the engines of partial_sums.h, and for those that call cuBLASLt: filters of
// 1 x 1 with stride 1 and neither padding nor groups. For these the stand-in for cuBLASLt says that
// products need nothing. The rule for them was found on an H200 with cuDNN 9.19, by asking about
// 4,953 convolutions with the GPU and with its description. Over images in the order NHWC the
// gradients of filters take more than the rule knows: up to 33 MiB, as cuBLASLt splits them.
//
// Depthwise convolutions in bfloat16 (filters of 3 x 3, 5 x 5 or 7 x 7) have engines of their own
// on the card, ranked first, which cuDNN 9.10 and 9.19 leave out without a card and 9.26 does not.
// Of 252 that were asked with 9.19, three had another engine on the H200.
std::int64_t workspace_of_plan(void* plan, std::int64_t described);

}  // namespace headroom::virtual_gpu
