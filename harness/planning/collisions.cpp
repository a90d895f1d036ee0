#include "harness/planning/collisions.h"

namespace headroom {
namespace {

std::int64_t minus(Bytes a, Bytes b) {
  return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

}  // namespace

void join(std::vector<Distances>& distances) {
  std::sort(distances.begin(), distances.end(),
            [](const Distances& a, const Distances& b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (const Distances& next : distances) {
    if (kept > 0 && next.first <= distances[kept - 1].last + 1)
      distances[kept - 1].last = std::max(distances[kept - 1].last, next.last);
    else
      distances[kept++] = next;
  }
  distances.resize(kept);
}

std::vector<Distances> collisions(const PlanBuffer& a, const PlanBuffer& b) {
  std::vector<Distances> found;
  if (a.upper <= b.lower || b.upper <= a.lower) return found;
  for_each_piece(a, [&](const PlanPiece& mine) {
    for_each_piece(b, [&](const PlanPiece& other) {
      if (mine.upper <= other.lower || other.upper <= mine.lower) return;
      found.push_back({minus(mine.begin, other.end) + 1, minus(mine.end, other.begin) - 1});
    });
  });
  join(found);
  return found;
}

}  // namespace headroom
