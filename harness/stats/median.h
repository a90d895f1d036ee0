#pragma once

#include <vector>

namespace headroom {

// Of two values in the middle, their mean. Throws std::out_of_range where there is no value.
double median_of(std::vector<double> values);

}  // namespace headroom
