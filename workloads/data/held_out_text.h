// A text of which training never sees the end: held-out batches are drawn from there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "harness/workload/workload.h"
#include "workloads/data/byte_pairs.h"

namespace headroom {

using TextBatches = std::function<std::unique_ptr<BatchSource>(EncodedText)>;

// Holds back the last tenth, or the last `least` tokens where that is more. Held-out batches are
// drawn from it without an end, the same ones after every restart. `make` makes the source of
// batches of a text, which must not depend on anything else.
std::unique_ptr<BatchSource> with_held_out_text(EncodedText text, std::int64_t least,
                                                TextBatches make);

}  // namespace headroom
