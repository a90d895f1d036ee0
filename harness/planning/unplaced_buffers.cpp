#include "harness/planning/unplaced_buffers.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace headroom {

UnplacedBuffers::UnplacedBuffers(const std::vector<PlanBuffer>& buffers)
    : buffers_(buffers), nodes_(2 * std::bit_ceil(buffers.size())), leaf_of_(buffers.size()) {
  std::vector<std::uint32_t> indices(buffers.size());
  std::iota(indices.begin(), indices.end(), std::uint32_t{0});
  if (!indices.empty()) build(1, indices.begin(), indices.end(), true);
}

std::uint32_t UnplacedBuffers::first_within(std::int64_t begin, std::int64_t end) const {
  std::uint32_t found = kNone;
  descend(1, begin, end, found);
  return found;
}

void UnplacedBuffers::remove(std::uint32_t buffer) {
  nodes_[leaf_of_[buffer]] = {};
  for (std::size_t node = leaf_of_[buffer] / 2; node > 0; node /= 2) join_children(node);
}

void UnplacedBuffers::build(std::size_t node, Indices begin, Indices end, bool by_lower) {
  if (end - begin == 1) {
    const PlanBuffer& buffer = buffers_[*begin];
    nodes_[node] = {buffer.lower, buffer.upper, *begin};
    leaf_of_[*begin] = node;
    return;
  }
  const Indices middle = begin + (end - begin) / 2;
  std::nth_element(begin, middle, end, [&](std::uint32_t a, std::uint32_t b) {
    return by_lower ? buffers_[a].lower < buffers_[b].lower : buffers_[a].upper < buffers_[b].upper;
  });
  build(2 * node, begin, middle, !by_lower);
  build(2 * node + 1, middle, end, !by_lower);
  join_children(node);
}

void UnplacedBuffers::join_children(std::size_t node) {
  const Node& a = nodes_[2 * node];
  const Node& b = nodes_[2 * node + 1];
  nodes_[node] = {.latest_lower = std::max(a.latest_lower, b.latest_lower),
                  .earliest_upper = std::min(a.earliest_upper, b.earliest_upper),
                  .first = std::min(a.first, b.first)};
}

void UnplacedBuffers::descend(std::size_t at, std::int64_t begin, std::int64_t end,
                              std::uint32_t& found) const {
  const Node& node = nodes_[at];
  if (node.first >= found || node.latest_lower < begin || node.earliest_upper > end) return;
  const PlanBuffer& first = buffers_[node.first];
  if (first.lower >= begin && first.upper <= end) {
    found = node.first;
    return;
  }
  // A leaf never gets here, since its buffer either lies within the range or was rejected above.
  // Searching the better half first may make the other half unnecessary.
  const std::size_t left = 2 * at;
  const std::size_t better = nodes_[left + 1].first < nodes_[left].first ? left + 1 : left;
  descend(better, begin, end, found);
  descend(better ^ 1, begin, end, found);
}

}  // namespace headroom
