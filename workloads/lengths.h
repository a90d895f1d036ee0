// lengths=padded|bucketed|ragged: how texts of different lengths become batches. padded: every
// batch is as long as the longest may be. bucketed: each batch holds texts of similar length and is
// as long as its bucket, one of four. ragged: each batch is as long as its own longest text, so
// that consecutive steps rarely have the same shape.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/base/spec.h"

namespace headroom {

// The lengths of batches, the longest first. bucketed: quarters of it. ragged: 16 different lengths
// of at least a quarter of it (fewer if there are not so many), in a fixed random draw. Throws
// InputError for another value, or a sequence whose quarter is below `least`.
std::vector<std::int64_t> read_lengths(const Spec& spec, std::int64_t longest, std::int64_t least);

// The cycle of `shapes` shapes: each occurs four times, in a fixed random order.
std::vector<std::size_t> length_cycle(std::size_t shapes);

}  // namespace headroom
