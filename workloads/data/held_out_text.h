// Splits a text: training never sees its end, from which held-out batches are drawn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "harness/workload/workload.h"
#include "workloads/data/byte_pairs.h"

namespace headroom {

using TextBatches = std::function<std::unique_ptr<BatchSource>(EncodedText)>;

// Holds back the last tenth, or the last `least` tokens if that is more. Held-out batches are drawn
// from it without end, the same ones after every restart. `make` creates the source of batches of a
// text and must depend on nothing else.
std::unique_ptr<BatchSource> with_held_out_text(EncodedText text, std::int64_t least,
                                                TextBatches make);

}  // namespace headroom
