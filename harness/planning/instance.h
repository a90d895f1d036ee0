// A planning problem prepared for search: time reduced to the moments that matter, and orders in
// which to try buffers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/trace/buffers.h"

namespace headroom {

using PlanIndex = std::uint32_t;

// Buffers with time divided into sections. There is one section for each moment whose set of live
// buffers is not contained in that of a neighbouring moment. A buffer is in use in some of the
// sections [first, last]; the others are its gaps.
struct PlanInstance {
  std::vector<PlanIndex> first, last;
  std::vector<std::vector<PlanIndex>> sections_of;  // sections in which each buffer is in use
  std::vector<Bytes> size, alignment;
  std::vector<std::optional<Bytes>> fixed;         // offset, if given
  std::vector<std::vector<PlanIndex>> neighbours;  // buffers in use at the same time
  std::vector<std::vector<PlanIndex>> members;     // by section

  std::size_t buffers() const { return size.size(); }
  std::size_t sections() const { return members.size(); }
};

// Builds the instance for the `chosen` buffers. Each must use all of its bytes at some time, and
// none in its gaps.
PlanInstance make_instance(const std::vector<PlanBuffer>& buffers,
                           const std::vector<PlanIndex>& chosen);

// The keys by which buffers are ranked, most important first. total: the most bytes alive at once
// during the buffer's life.
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

// Returns the rank of each buffer in a static order; rank 0 is tried first. `shuffle` 0 keeps the
// order, and every other value perturbs it in its own way.
std::vector<PlanIndex> ranks(const PlanInstance& instance, RankOrder order, std::uint32_t shuffle);

}  // namespace headroom
