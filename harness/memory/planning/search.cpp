#include "harness/memory/planning/search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "harness/memory/planning/greedy.h"
#include "harness/memory/planning/instance.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;
using Index = PlanIndex;

class Search {
 public:
  Search(const PlanInstance& instance, std::vector<Index> rank, Bytes capacity,
         std::uint64_t node_limit, Clock::time_point deadline)
      : instance_(instance),
        rank_(std::move(rank)),
        capacity_(capacity),
        node_limit_(node_limit),
        deadline_(deadline),
        lowest_(instance.buffers()),
        placed_(instance.buffers()),
        total_(instance.sections()),
        floor_(instance.sections()) {
    for (std::size_t s = 0; s < instance.sections(); ++s)
      for (const Index i : instance.members[s]) total_[s] += instance.size[i];
  }

  PlanSearch::Outcome run() {
    for (const Bytes total : total_)
      if (total > capacity_) return PlanSearch::Outcome::infeasible;
    std::vector<Index> all(instance_.buffers());
    std::iota(all.begin(), all.end(), Index{0});
    std::sort(all.begin(), all.end(),
              [&](Index a, Index b) { return instance_.first[a] < instance_.first[b]; });
    if (solve_parts(all, 0, 0)) return PlanSearch::Outcome::found;
    return gave_up_ ? PlanSearch::Outcome::timed_out : PlanSearch::Outcome::infeasible;
  }

  const std::vector<Bytes>& offsets() const { return lowest_; }
  std::uint64_t nodes() const { return nodes_; }

 private:
  // What a placement changed, so that it can be taken back.
  struct Change {
    Index buffer;
    Bytes lowest;
  };

  bool out_of_budget() {
    if (nodes_ >= node_limit_ || ((nodes_ & 0xFFF) == 0 && Clock::now() >= deadline_))
      gave_up_ = true;
    return gave_up_;
  }

  // `unplaced` in order of first section. Buffers that share no section, nor do so through others,
  // are independent: parts.
  bool solve_parts(const std::vector<Index>& unplaced, Bytes last_offset, Index last_rank) {
    std::size_t begin = 0;
    while (begin < unplaced.size()) {
      Index reach = instance_.last[unplaced[begin]];
      std::size_t end = begin + 1;
      for (; end < unplaced.size() && instance_.first[unplaced[end]] <= reach; ++end)
        reach = std::max(reach, instance_.last[unplaced[end]]);
      const std::vector<Index> part(unplaced.begin() + static_cast<std::ptrdiff_t>(begin),
                                    unplaced.begin() + static_cast<std::ptrdiff_t>(end));
      // What earlier parts placed is taken back with the caller's trail.
      if (!solve(part, last_offset, last_rank)) return false;
      begin = end;
    }
    return true;
  }

  bool solve(const std::vector<Index>& part, Bytes last_offset, Index last_rank) {
    std::vector<Index> candidates = part;
    std::sort(candidates.begin(), candidates.end(), [&](Index a, Index b) {
      return std::tie(lowest_[a], rank_[a]) < std::tie(lowest_[b], rank_[b]);
    });
    // Whoever cannot begin below this leaves room under itself for a whole other buffer.
    Bytes lowest_top = std::numeric_limits<Bytes>::max();
    for (const Index i : part)
      lowest_top = std::min(lowest_top, std::max(lowest_[i], last_offset) + instance_.size[i]);
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const Index i = candidates[c];
      if (lowest_[i] >= lowest_top) break;
      // Plans differ by more than the order in which they are written down.
      if (std::tie(lowest_[i], rank_[i]) < std::tie(last_offset, last_rank)) continue;
      if (has_earlier_twin(candidates, c)) continue;
      if (out_of_budget()) return false;
      ++nodes_;
      const std::size_t mark = trail_.size();
      if (place(i, part)) {
        std::vector<Index> rest;
        rest.reserve(part.size() - 1);
        for (const Index j : part)
          if (j != i) rest.push_back(j);
        if (solve_parts(rest, lowest_[i], rank_[i])) return true;
        // It stands in nobody's way: somewhere else it would help nobody.
        if (!gave_up_ && is_out_of_the_way(i)) {
          take_back(mark);
          return false;
        }
      }
      take_back(mark);
      if (gave_up_) return false;
    }
    return false;
  }

  bool is_out_of_the_way(Index i) const {
    const auto& others = instance_.neighbours[i];
    return std::all_of(others.begin(), others.end(), [&](Index j) { return placed_[j]; });
  }

  // One of the same size and life that could stand in the same place.
  bool has_earlier_twin(const std::vector<Index>& candidates, std::size_t c) const {
    const Index i = candidates[c];
    for (std::size_t d = 0; d < c; ++d) {
      const Index j = candidates[d];
      if (instance_.size[i] == instance_.size[j] && instance_.first[i] == instance_.first[j] &&
          instance_.last[i] == instance_.last[j] && lowest_[i] == lowest_[j] &&
          instance_.alignment[i] == instance_.alignment[j])
        return true;
    }
    return false;
  }

  // False when what is left can no longer fit.
  bool place(Index i, const std::vector<Index>& part) {
    const Bytes top = lowest_[i] + instance_.size[i];
    placed_[i] = true;
    trail_.push_back({i, kPlacement});
    for (Index s = instance_.first[i]; s <= instance_.last[i]; ++s) total_[s] -= instance_.size[i];
    if (top > capacity_) return false;
    for (const Index j : instance_.neighbours[i]) {
      if (placed_[j] || lowest_[j] >= top) continue;
      trail_.push_back({j, lowest_[j]});
      lowest_[j] = align_up(top, instance_.alignment[j]);
      if (lowest_[j] + instance_.size[j] > capacity_) return false;
    }
    return fits(part, lowest_[i]);
  }

  // In every section the unplaced buffers fit above the lowest place any of them can take.
  bool fits(const std::vector<Index>& part, Bytes last_offset) {
    Index from = std::numeric_limits<Index>::max();
    Index to = 0;
    for (const Index j : part) {
      from = std::min(from, instance_.first[j]);
      to = std::max(to, instance_.last[j]);
    }
    for (Index s = from; s <= to; ++s) floor_[s] = std::numeric_limits<Bytes>::max();
    for (const Index j : part) {
      if (placed_[j]) continue;
      const Bytes lowest = std::max(lowest_[j], last_offset);
      for (Index s = instance_.first[j]; s <= instance_.last[j]; ++s)
        floor_[s] = std::min(floor_[s], lowest);
    }
    for (Index s = from; s <= to; ++s)
      if (floor_[s] != std::numeric_limits<Bytes>::max() && floor_[s] + total_[s] > capacity_)
        return false;
    return true;
  }

  void take_back(std::size_t mark) {
    while (trail_.size() > mark) {
      const auto [i, lowest] = trail_.back();
      trail_.pop_back();
      if (lowest != kPlacement) {
        lowest_[i] = lowest;
        continue;
      }
      placed_[i] = false;
      for (Index s = instance_.first[i]; s <= instance_.last[i]; ++s)
        total_[s] += instance_.size[i];
    }
  }

  static constexpr Bytes kPlacement = std::numeric_limits<Bytes>::max();

  const PlanInstance& instance_;
  const std::vector<Index> rank_;
  const Bytes capacity_;
  const std::uint64_t node_limit_;
  const Clock::time_point deadline_;
  std::vector<Bytes> lowest_;  // where a buffer stands, or the lowest place it can still take
  std::vector<bool> placed_;
  std::vector<Bytes> total_;  // Σ sizes of the unplaced, by section
  std::vector<Bytes> floor_;  // scratch of fits()
  std::vector<Change> trail_;
  std::uint64_t nodes_ = 0;
  bool gave_up_ = false;
};

}  // namespace

PlanSearch search_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                       Clock::time_point deadline) {
  std::vector<Index> chosen;
  for (Index i = 0; i < buffers.size(); ++i)
    if (buffers[i].size > 0 && buffers[i].lower < buffers[i].upper) chosen.push_back(i);
  const PlanInstance instance = make_instance(buffers, chosen);
  PlanSearch result;
  std::uint64_t limit = 4000;
  for (std::uint32_t round = 0;; ++round) {
    for (const RankOrder order : kRankOrders) {
      Search search(instance, ranks(instance, order, round), capacity, limit, deadline);
      result.outcome = search.run();
      result.nodes += search.nodes();
      if (result.outcome == PlanSearch::Outcome::found) {
        result.offsets.assign(buffers.size(), 0);
        for (std::size_t i = 0; i < chosen.size(); ++i)
          result.offsets[chosen[i]] = search.offsets()[i];
      }
      if (result.outcome != PlanSearch::Outcome::timed_out || Clock::now() >= deadline)
        return result;
    }
    limit += limit / 4;
  }
}

Offsets plan_low(const std::vector<PlanBuffer>& buffers, Clock::time_point deadline) {
  // Beyond this, what search keeps of every section would not fit into memory, and greedy plans
  // are near the bound anyway.
  constexpr std::size_t kMostToSearch = 5000;
  Offsets best = plan_greedily(buffers);
  if (buffers.size() > kMostToSearch) return best;
  const Bytes bound = peak_live_bytes(buffers);
  Bytes high = makespan(buffers, best);
  Bytes low = bound;  // nothing below it is known to be impossible or was tried in vain
  while (low < high && Clock::now() < deadline) {
    // The bound itself first: it is often reached.
    const Bytes capacity = low == bound ? bound : low + (high - low) / 2;
    const auto share = low == bound ? (deadline - Clock::now()) / 3 : (deadline - Clock::now()) / 2;
    PlanSearch found = search_plan(buffers, capacity, Clock::now() + share);
    if (found.outcome == PlanSearch::Outcome::found) {
      best = std::move(found.offsets);
      high = makespan(buffers, best);
    } else {
      low = capacity + 1;
    }
  }
  return best;
}

}  // namespace headroom
