// A differentiated Program as a chain of modules with what each choice holds and costs. For the
// files of this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/checkpointing/chain.h"
#include "strategies/checkpointing/regions.h"

namespace headroom::checkpointing {

// Where what segments are made again from is kept.
enum class Keep : std::uint8_t { on_device, on_host };

// Of all segments of `units`; what recompute() (and keep_where_asked() without prefetch) would make
// of them, without making it. On the device are counted, with Keep::on_host, the bytes of what
// segments are made again from only from when it is back, with that segment; and those of
// everything else that one module makes and a later one reads, with the first that reads it.
Chain chain_of(const Program& differentiated, const std::vector<Unit>& units, Keep keep);

}  // namespace headroom::checkpointing
