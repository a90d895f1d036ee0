#include "harness/stats/median.h"

#include <algorithm>
#include <cstddef>

namespace headroom {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values.at(middle)
                                : (values.at(middle - 1) + values.at(middle)) / 2;
}

}  // namespace headroom
