// Describes a differentiated Program as a chain of modules, with the bytes and work of each choice.
// For the files of this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/checkpointing/chain.h"
#include "strategies/checkpointing/regions.h"

namespace headroom::checkpointing {

// The place of the values from which segments are recomputed.
enum class Keep : std::uint8_t { on_device, on_host };

// Evaluates all segments of `units` as recompute() (and keep_where_asked() without prefetch) would
// build them, without building them. With Keep::on_host, values from which a segment is recomputed
// count on the device only once they are copied back, with that segment. All other values that one
// module makes and a later one reads count with the first module that reads them.
Chain chain_of(const Program& differentiated, const std::vector<Unit>& units, Keep keep);

}  // namespace headroom::checkpointing
