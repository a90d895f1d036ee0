#pragma once

#include <vector>

namespace headroom {

// The median; for an even number of values, the mean of the middle two. Throws std::out_of_range
// for an empty vector.
double median_of(std::vector<double> values);

}  // namespace headroom
