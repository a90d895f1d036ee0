#include "strategies/checkpointing/chain.h"

#include <algorithm>
#include <tuple>

namespace headroom::checkpointing {
namespace {

// One choice of segments up to the end of a module.
struct Way {
  Bytes kept = 0;
  Work work = {};
  std::size_t before = 0;  // index of the way to the segment's first module
  const Segment* segment = nullptr;
};

bool holds(Bytes kept_before, const Segment& segment, Bytes budget) {
  return kept_before + segment.kept + segment.inside <= budget;
}

// The Pareto-optimal ways in bytes kept and work, those that keep least first.
std::vector<Way> best_of(std::vector<Way> ways) {
  std::sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    return std::tie(a.kept, a.work) < std::tie(b.kept, b.work);
  });
  std::vector<Way> best;
  for (const Way& way : ways)
    if (best.empty() || way.work < best.back().work) best.push_back(way);
  return best;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  touched += other.touched;
  return *this;
}

// Kept bytes only grow along the chain, and all kept values are alive while a segment is
// recomputed, because the backward pass visits segments from last to first. So of two ways to the
// same module, one that keeps less and needs less work is never worse, whatever follows.
std::optional<std::vector<Segment>> cheapest(const Chain& chain, Bytes budget) {
  std::vector<std::vector<Way>> ways(chain.modules + 1);
  ways[0] = {Way{}};
  for (std::size_t end = 1; end <= chain.modules; ++end) {
    std::vector<Way> all;
    for (const Segment& segment : chain.segments) {
      if (segment.end != end) continue;
      for (std::size_t before = 0; before < ways[segment.first].size(); ++before) {
        Way way = ways[segment.first][before];
        if (!holds(way.kept, segment, budget)) break;
        way = {way.kept + segment.kept, way.work, before, &segment};
        way.work += segment.work;
        all.push_back(way);
      }
    }
    ways[end] = best_of(std::move(all));
  }
  if (ways.back().empty()) return std::nullopt;
  std::vector<Segment> result;
  for (const Way* way = &ways.back().back(); way->segment != nullptr;
       way = &ways[way->segment->first][way->before])
    result.push_back(*way->segment);
  std::reverse(result.begin(), result.end());
  return result;
}

Bytes highest(const std::vector<Segment>& choice) {
  Bytes kept = 0, peak = 0;
  for (const Segment& segment : choice) {
    peak = std::max(peak, kept + segment.kept + segment.inside);
    kept += segment.kept;
  }
  return peak;
}

Bytes smallest_budget(const Chain& chain) {
  const auto feasible = [&](Bytes budget) {
    std::vector<std::optional<Bytes>> least(chain.modules + 1);  // bytes kept
    least[0] = 0;
    for (std::size_t end = 1; end <= chain.modules; ++end)
      for (const Segment& segment : chain.segments) {
        if (segment.end != end || !least[segment.first] ||
            !holds(*least[segment.first], segment, budget))
          continue;
        const Bytes kept = *least[segment.first] + segment.kept;
        least[end] = std::min(least[end].value_or(kept), kept);
      }
    return least.back().has_value();
  };
  Bytes enough = 1;
  while (!feasible(enough)) enough *= 2;
  Bytes too_little = enough / 2;
  if (feasible(0)) return 0;
  while (enough - too_little > 1) {
    const Bytes middle = too_little + (enough - too_little) / 2;
    (feasible(middle) ? enough : too_little) = middle;
  }
  return enough;
}

}  // namespace headroom::checkpointing
