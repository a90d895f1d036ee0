// lengths=padded|bucketed|ragged: how texts of different lengths become batches. padded: every
// batch is as long as the longest may be. bucketed: each holds texts of about one length and is as
// long as its bucket, of which there are four up to the longest. ragged: each is as long as its own
// longest text happens to be, so that hardly two steps in a row have one shape.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/base/spec.h"

namespace headroom {

// The lengths of batches, the longest first. bucketed: quarters of it. ragged: 16 lengths from a
// quarter of it on, no two alike (fewer where there are not so many), drawn once and for all.
// Throws InputError for another value, or a sequence whose quarter is below `least`.
std::vector<std::int64_t> read_lengths(const Spec& spec, std::int64_t longest, std::int64_t least);

// The turns of that many shapes: each four times, in an order that was drawn once and for all.
std::vector<std::size_t> length_cycle(std::size_t shapes);

}  // namespace headroom
