#include "strategies/checkpointing/segments.h"

#include <algorithm>

namespace headroom::checkpointing {

Program recompute_segments(Program program, std::size_t length) {
  const std::vector<Unit> units = units_of(program);
  Regions regions(forward_ops(program));
  for (std::size_t first = 0; first + length < units.size(); first += length) {
    const int region = regions.add(0);
    for (std::size_t unit = first; unit < first + length; ++unit)
      std::fill(regions.of_op.begin() + static_cast<std::ptrdiff_t>(units[unit].first),
                regions.of_op.begin() + static_cast<std::ptrdiff_t>(units[unit].end), region);
  }
  return recompute(std::move(program), regions);
}

}  // namespace headroom::checkpointing
