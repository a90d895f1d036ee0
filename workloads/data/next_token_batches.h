// Batches for language modelling from left to right: pieces of text, each token's label the next.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/workload/workload.h"
#include "workloads/data/byte_pairs.h"

namespace headroom {

struct NextTokenOptions {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  // the longest length
  std::uint64_t seed = 0;
};

// Inputs, all s32 [batch·sequence], of any sequence up to the longest: tokens, positions, labels,
// and if the Program takes one, a fresh dropout key [2]. Throws InputError when the text is shorter
// than the longest.
std::unique_ptr<BatchSource> make_next_token_batches(EncodedText text, NextTokenOptions options);

}  // namespace headroom
