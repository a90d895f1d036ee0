#include "harness/planning/greedy.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "harness/planning/first_fit.h"
#include "harness/planning/skyline.h"
#include "harness/planning/unplaced_buffers.h"

namespace headroom {
namespace {

// Sort key of a buffer; the lowest key is placed first.
std::tuple<double, double, double> key_of(const PlanBuffer& buffer, PlanOrder order) {
  const auto size = static_cast<double>(buffer.size);
  const auto start = static_cast<double>(buffer.lower);
  const auto end = static_cast<double>(buffer.upper);
  const double life = end - start;
  switch (order) {
    case PlanOrder::start:
      return {start, -size, -life};
    case PlanOrder::end:
      return {-end, -size, -life};
    case PlanOrder::lifetime:
      return {-life, -size, start};
    case PlanOrder::area:
      return {-size * life, -size, start};
    case PlanOrder::hint:
      return {
          buffer.hint ? static_cast<double>(*buffer.hint) : std::numeric_limits<double>::infinity(),
          -size, -life};
    case PlanOrder::size:
      break;
  }
  return {-size, -life, start};
}

// Returns the indices, in the given order, of the buffers that need room.
std::vector<std::size_t> ordered(const std::vector<PlanBuffer>& buffers, PlanOrder order) {
  std::vector<std::pair<std::tuple<double, double, double>, std::size_t>> keyed;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].needs_room()) keyed.emplace_back(key_of(buffers[i], order), i);
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::size_t> indices;
  indices.reserve(keyed.size());
  for (const auto& [key, i] : keyed) indices.push_back(i);
  return indices;
}

Skyline flat_above(const std::vector<PlanBuffer>& buffers) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const PlanBuffer& buffer : buffers) {
    begin = std::min(begin, buffer.lower);
    end = std::max(end, buffer.upper);
  }
  return {begin, end};
}

bool needs_first_fit(const std::vector<PlanBuffer>& buffers) {
  return std::any_of(buffers.begin(), buffers.end(), [](const PlanBuffer& buffer) {
    return !buffer.gaps.empty() || buffer.offset.has_value();
  });
}

}  // namespace

Offsets plan_greedily(const std::vector<PlanBuffer>& buffers, PlanOrder order) {
  const std::vector<std::size_t> indices = ordered(buffers, order);
  if (order == PlanOrder::hint || needs_first_fit(buffers))
    return plan_by_first_fit(buffers, indices);
  std::vector<PlanBuffer> in_order;
  in_order.reserve(indices.size());
  for (const std::size_t i : indices) in_order.push_back(buffers[i]);

  Offsets offsets(buffers.size(), 0);
  UnplacedBuffers unplaced(in_order);
  Skyline skyline = flat_above(in_order);
  for (std::size_t placed = 0; placed < in_order.size();) {
    const Skyline::Span low = skyline.lowest();
    const std::uint32_t next = unplaced.first_within(low.begin, low.end);
    if (next == UnplacedBuffers::kNone) {
      skyline.level(low);
      continue;
    }
    const PlanBuffer& buffer = in_order[next];
    const Bytes offset = align_up(low.height, buffer.alignment);
    offsets[indices[next]] = offset;
    skyline.raise(buffer.lower, buffer.upper, offset + buffer.size);
    unplaced.remove(next);
    ++placed;
  }
  return offsets;
}

Offsets plan_greedily(const std::vector<PlanBuffer>& buffers) {
  const Bytes bound = least_bytes(buffers);
  Offsets best;
  Bytes lowest = std::numeric_limits<Bytes>::max();
  // Lifetimes in training steps nest. The first two orders suit that and often reach the bound.
  std::vector<PlanOrder> orders = {PlanOrder::start, PlanOrder::end, PlanOrder::lifetime,
                                   PlanOrder::area, PlanOrder::size};
  if (std::any_of(buffers.begin(), buffers.end(),
                  [](const PlanBuffer& buffer) { return buffer.hint.has_value(); }))
    orders.insert(orders.begin(), PlanOrder::hint);
  for (const PlanOrder order : orders) {
    Offsets offsets = plan_greedily(buffers, order);
    if (const Bytes height = makespan(buffers, offsets); height < lowest) {
      lowest = height;
      best = std::move(offsets);
    }
    if (lowest <= bound) break;
  }
  return best;
}

}  // namespace headroom
