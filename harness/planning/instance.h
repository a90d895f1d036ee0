// A planning problem as search sees it: time reduced to the moments that matter, and orders in
// which to try buffers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/trace/buffers.h"

namespace headroom {

using PlanIndex = std::uint32_t;

// Buffers with time reduced to the moments that matter: those at which the set of buffers in use
// is not part of a neighbour's. A buffer is in use in some of the sections [first, last], in the
// others it has gaps.
struct PlanInstance {
  std::vector<PlanIndex> first, last;
  std::vector<std::vector<PlanIndex>> sections_of;  // in use there
  std::vector<Bytes> size, alignment;
  std::vector<std::optional<Bytes>> fixed;         // offset
  std::vector<std::vector<PlanIndex>> neighbours;  // in use at once
  std::vector<std::vector<PlanIndex>> members;     // by section

  std::size_t buffers() const { return size.size(); }
  std::size_t sections() const { return members.size(); }
};

// Of the `chosen` buffers, which use all of their bytes at some time, and none in their gaps.
PlanInstance make_instance(const std::vector<PlanBuffer>& buffers,
                           const std::vector<PlanIndex>& chosen);

// By what buffers are ranked, first key first; total: the most that lives at once in its life.
enum class RankOrder : std::uint8_t {
  lifetime_area_total,
  lifetime_total_area,
  total_area_lifetime,
  total_lifetime_area,
  area_total_lifetime,
  size_lifetime_total,
};
inline constexpr std::array kRankOrders = {
    RankOrder::lifetime_area_total, RankOrder::total_area_lifetime, RankOrder::total_lifetime_area,
    RankOrder::area_total_lifetime, RankOrder::size_lifetime_total, RankOrder::lifetime_total_area};

// Place of each buffer in a static order, the one to try first at 0. `shuffle` 0 leaves the order
// as it is, others disturb it, each in its own way.
std::vector<PlanIndex> ranks(const PlanInstance& instance, RankOrder order, std::uint32_t shuffle);

}  // namespace headroom
