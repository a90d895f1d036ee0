// lengths=padded|bucketed: how texts of different lengths become batches. padded: every batch is as
// long as the longest may be. bucketed: each holds texts of about one length and is as long as its
// bucket, of which there are four up to the longest, so that steps differ in shape.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/base/spec.h"

namespace headroom {

// The lengths of batches, the longest first; quarters of it where it is bucketed. Throws InputError
// for another value, or a sequence whose quarter is below `least`.
std::vector<std::int64_t> read_lengths(const Spec& spec, std::int64_t longest, std::int64_t least);

// The turns of that many shapes: each four times, in an order that was drawn once and for all.
std::vector<std::size_t> length_cycle(std::size_t shapes);

}  // namespace headroom
