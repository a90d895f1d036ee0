#include "harness/memory/planning/greedy.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace headroom {
namespace {

// The buffers placed so far, found by the time they live in. A segment tree over all buffers in
// order of their beginning; a leaf holds its buffer's end once that is placed, a node the latest
// end below it.
class PlacedBuffers {
 public:
  explicit PlacedBuffers(const std::vector<PlanBuffer>& buffers) : buffers_(buffers) {
    by_start_.resize(buffers.size());
    std::iota(by_start_.begin(), by_start_.end(), std::size_t{0});
    std::stable_sort(by_start_.begin(), by_start_.end(), [&](std::size_t a, std::size_t b) {
      return buffers[a].lower < buffers[b].lower;
    });
    rank_.resize(buffers.size());
    for (std::size_t i = 0; i < by_start_.size(); ++i) rank_[by_start_[i]] = i;
    while (leaves_ < buffers.size()) leaves_ *= 2;
    latest_end_.assign(2 * leaves_, std::numeric_limits<std::int64_t>::min());
  }

  void place(std::size_t buffer) {
    std::size_t node = leaves_ + rank_[buffer];
    for (; node > 0; node /= 2)
      latest_end_[node] = std::max(latest_end_[node], buffers_[buffer].upper);
  }

  template <typename Visit>
  void overlapping(const PlanBuffer& wanted, const Visit& visit) const {
    descend(1, wanted, visit);
  }

 private:
  template <typename Visit>
  void descend(std::size_t node, const PlanBuffer& wanted, const Visit& visit) const {
    if (latest_end_[node] <= wanted.lower) return;
    if (node >= leaves_) {
      const std::size_t buffer = by_start_[node - leaves_];
      if (buffers_[buffer].lower < wanted.upper) visit(buffer);
      return;
    }
    descend(2 * node, wanted, visit);
    // All on the right begin no earlier than the first of them.
    const std::size_t first_right = first_leaf(2 * node + 1);
    if (first_right < by_start_.size() && buffers_[by_start_[first_right]].lower < wanted.upper)
      descend(2 * node + 1, wanted, visit);
  }

  std::size_t first_leaf(std::size_t node) const {
    while (node < leaves_) node *= 2;
    return node - leaves_;
  }

  const std::vector<PlanBuffer>& buffers_;
  std::vector<std::size_t> by_start_, rank_;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> latest_end_;
};

struct Taken {
  Bytes start;
  Bytes end;
};

// Where `wanted` goes among what is taken at some time of its life.
Bytes choose_offset(const PlanBuffer& wanted, std::vector<Taken>& taken, GapChoice choice) {
  std::sort(taken.begin(), taken.end(),
            [](const Taken& a, const Taken& b) { return a.start < b.start; });
  Bytes floor = 0;  // the end of everything so far
  Bytes chosen = 0;
  Bytes smallest_gap = std::numeric_limits<Bytes>::max();
  for (const Taken& next : taken) {
    const Bytes offset = align_up(floor, wanted.alignment);
    if (offset + wanted.size <= next.start) {
      if (choice == GapChoice::first) return offset;
      if (next.start - floor < smallest_gap) {
        smallest_gap = next.start - floor;
        chosen = offset;
      }
    }
    floor = std::max(floor, next.end);
  }
  return smallest_gap == std::numeric_limits<Bytes>::max() ? align_up(floor, wanted.alignment)
                                                           : chosen;
}

std::vector<std::size_t> ordered(const std::vector<PlanBuffer>& buffers, PlanOrder order) {
  std::vector<std::size_t> indices(buffers.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) {
    const PlanBuffer& buffer = buffers[i];
    const auto size = static_cast<double>(buffer.size);
    const auto life = static_cast<double>(buffer.upper - buffer.lower);
    const auto start = static_cast<double>(buffer.lower);
    switch (order) {
      case PlanOrder::size:
        return std::tuple(-size, -life, start);
      case PlanOrder::area:
        return std::tuple(-size * life, -size, start);
      case PlanOrder::lifetime:
        return std::tuple(-life, -size, start);
      case PlanOrder::start:
        break;
    }
    return std::tuple(start, -size, -life);
  };
  std::stable_sort(indices.begin(), indices.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return indices;
}

}  // namespace

Offsets plan_greedily(const std::vector<PlanBuffer>& buffers, PlanOrder order, GapChoice gap) {
  PlacedBuffers placed(buffers);
  Offsets offsets(buffers.size());
  std::vector<Taken> taken;
  for (const std::size_t i : ordered(buffers, order)) {
    taken.clear();
    placed.overlapping(buffers[i], [&](std::size_t other) {
      taken.push_back({offsets[other], offsets[other] + buffers[other].size});
    });
    offsets[i] = choose_offset(buffers[i], taken, gap);
    placed.place(i);
  }
  return offsets;
}

Offsets plan_greedily(const std::vector<PlanBuffer>& buffers) {
  Offsets best;
  Bytes lowest = std::numeric_limits<Bytes>::max();
  for (const PlanOrder order :
       {PlanOrder::size, PlanOrder::area, PlanOrder::lifetime, PlanOrder::start}) {
    for (const GapChoice gap : {GapChoice::best, GapChoice::first}) {
      Offsets offsets = plan_greedily(buffers, order, gap);
      if (const Bytes height = makespan(buffers, offsets); height < lowest) {
        lowest = height;
        best = std::move(offsets);
      }
    }
  }
  return best;
}

}  // namespace headroom
