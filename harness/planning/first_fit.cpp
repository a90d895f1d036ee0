#include "harness/planning/first_fit.h"

#include "harness/planning/collisions.h"

namespace headroom {
namespace {

// The placed buffers, indexed by the stretches of time they live in.
class PlacedBuffers {
 public:
  PlacedBuffers(const std::vector<PlanBuffer>& buffers, const std::vector<std::size_t>& order)
      : buffers_(buffers), seen_by_(buffers.size(), kNobody) {
    for (const std::size_t i : order) begins_.push_back(buffers[i].lower);
    std::sort(begins_.begin(), begins_.end());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < begins_.size(); i += begins_.size() / kStretches + 1)
      begins_[kept++] = begins_[i];
    begins_.resize(kept);
    placed_.resize(kept + 1);
  }

  void add(std::size_t buffer) {
    for_each_stretch(buffer, [&](std::vector<std::size_t>& placed) { placed.push_back(buffer); });
  }

  // Calls with(other) once for each placed buffer that may live at the same time as `buffer`.
  template <typename Do>
  void for_each_near(std::size_t buffer, const Do& with) {
    for_each_stretch(buffer, [&](const std::vector<std::size_t>& placed) {
      for (const std::size_t other : placed) {
        if (seen_by_[other] == buffer) continue;
        seen_by_[other] = buffer;
        with(other);
      }
    });
  }

 private:
  static constexpr std::size_t kStretches = 512;
  static constexpr std::size_t kNobody = ~std::size_t{0};

  template <typename Do>
  void for_each_stretch(std::size_t buffer, const Do& with) {
    const auto first = std::upper_bound(begins_.begin(), begins_.end(), buffers_[buffer].lower);
    const auto end = std::lower_bound(first, begins_.end(), buffers_[buffer].upper);
    for (auto at = first - begins_.begin(); at <= end - begins_.begin(); ++at)
      with(placed_[static_cast<std::size_t>(at)]);
  }

  const std::vector<PlanBuffer>& buffers_;
  std::vector<std::int64_t> begins_;              // begin of every stretch but the first
  std::vector<std::vector<std::size_t>> placed_;  // by stretch
  std::vector<std::size_t> seen_by_;              // last buffer that visited each
};

// Returns the lowest aligned offset outside all ranges of `taken`.
Bytes lowest_free(const std::vector<Distances>& taken, Bytes alignment) {
  Bytes offset = 0;
  for (const Distances& range : taken) {
    if (range.last < 0 || static_cast<Bytes>(range.last) < offset) continue;
    if (range.first > static_cast<std::int64_t>(offset)) break;
    offset = align_up(static_cast<Bytes>(range.last) + 1, alignment);
  }
  return offset;
}

}  // namespace

Offsets plan_by_first_fit(const std::vector<PlanBuffer>& buffers,
                          const std::vector<std::size_t>& order) {
  Offsets offsets(buffers.size(), 0);
  PlacedBuffers placed(buffers, order);
  for (const std::size_t i : order) {
    if (!buffers[i].offset) continue;
    offsets[i] = *buffers[i].offset;
    placed.add(i);
  }
  std::vector<Distances> taken;
  for (const std::size_t i : order) {
    if (buffers[i].offset) continue;
    taken.clear();
    placed.for_each_near(i, [&](std::size_t other) {
      const auto base = static_cast<std::int64_t>(offsets[other]);
      for (const auto& [first, last] : collisions(buffers[other], buffers[i]))
        taken.push_back({base + first, base + last});
    });
    join(taken);
    offsets[i] = lowest_free(taken, buffers[i].alignment);
    placed.add(i);
  }
  return offsets;
}

}  // namespace headroom
