// The buffers that a planner has yet to place, searchable by lifetime.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "harness/trace/buffers.h"

namespace headroom {

class UnplacedBuffers {
 public:
  static constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();

  // `buffers` are sorted by priority, first to place first, and must outlive this.
  explicit UnplacedBuffers(const std::vector<PlanBuffer>& buffers);

  // Returns the first buffer by priority whose lifetime lies within [begin, end), or kNone. Worst
  // case O(√n), mostly O(log n).
  std::uint32_t first_within(std::int64_t begin, std::int64_t end) const;

  void remove(std::uint32_t buffer);

 private:
  // A k-d tree that splits by begin and end in turn. Node i has the children 2i and 2i + 1, each
  // with half of its buffers; a leaf has one.
  struct Node {
    std::int64_t latest_lower = std::numeric_limits<std::int64_t>::min();
    std::int64_t earliest_upper = std::numeric_limits<std::int64_t>::max();
    std::uint32_t first = kNone;
  };
  using Indices = std::vector<std::uint32_t>::iterator;

  void build(std::size_t node, Indices begin, Indices end, bool by_lower);
  void join_children(std::size_t node);
  void descend(std::size_t at, std::int64_t begin, std::int64_t end, std::uint32_t& found) const;

  const std::vector<PlanBuffer>& buffers_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> leaf_of_;
};

}  // namespace headroom
