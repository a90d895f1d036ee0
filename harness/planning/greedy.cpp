#include "harness/planning/greedy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
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

Offsets plan_by_best_fit(const std::vector<PlanBuffer>& buffers,
                         const std::vector<std::size_t>& indices) {
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

}  // namespace

Offsets plan_greedily(const std::vector<PlanBuffer>& buffers, PlanOrder order) {
  const std::vector<std::size_t> indices = ordered(buffers, order);
  if (order == PlanOrder::hint || needs_first_fit(buffers))
    return plan_by_first_fit(buffers, indices);
  return plan_by_best_fit(buffers, indices);
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

Offsets improve_greedily(const std::vector<PlanBuffer>& buffers, Offsets plan,
                         std::chrono::steady_clock::time_point deadline) {
  if (needs_first_fit(buffers)) return plan;
  // How much the logarithm of a key changes. Which scale helps differs from problem to problem.
  constexpr std::array kScales = {0.05, 0.15, 0.4};
  std::vector<std::size_t> indices = ordered(buffers, PlanOrder::area);
  std::vector<double> keys(buffers.size());
  for (const std::size_t i : indices)
    keys[i] = -std::log(static_cast<double>(buffers[i].size) *
                        static_cast<double>(buffers[i].upper - buffers[i].lower));
  std::vector<double> best_keys = keys;
  Bytes height_of_best_keys = std::numeric_limits<Bytes>::max();
  const Bytes bound = least_bytes(buffers);
  Bytes lowest = makespan(buffers, plan);
  std::mt19937_64 random(1);
  std::normal_distribution<double> change;
  while (lowest > bound && std::chrono::steady_clock::now() < deadline) {
    std::stable_sort(indices.begin(), indices.end(),
                     [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
    Offsets offsets = plan_by_best_fit(buffers, indices);
    const Bytes height = makespan(buffers, offsets);
    if (height <= height_of_best_keys) {
      height_of_best_keys = height;
      best_keys = keys;
    }
    if (height < lowest) {
      lowest = height;
      plan = std::move(offsets);
    }
    keys = best_keys;
    const double scale = kScales[random() % kScales.size()];
    const std::uint64_t one_in = random() % 2 == 0 ? 1 : 8;
    for (const std::size_t i : indices)
      if (random() % one_in == 0) keys[i] += scale * change(random);
  }
  return plan;
}

}  // namespace headroom
