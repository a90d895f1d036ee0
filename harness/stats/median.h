#pragma once

#include <vector>

namespace headroom {

// The median; of an even number of values, the mean of the two in the middle. Throws
// std::out_of_range where there is no value.
double median_of(std::vector<double> values);

}  // namespace headroom
