#include "harness/planning/search.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>

#include "harness/base/duration.h"
#include "harness/planning/greedy.h"
#include "harness/planning/instance.h"
#include "harness/planning/partial_plan.h"
#include "harness/planning/shaped_search.h"

namespace headroom {
namespace {

using Index = PlanIndex;

// Sections with this many continuations or more are all alike.
constexpr Index kManyWays = 3;

// Chooses first the buffers whose sections have the fewest continuations, then the lowest, then
// those that most often could not be placed, then by `rank`.
class Search {
 public:
  Search(const PlanInstance& instance, std::vector<Index> rank, Bytes capacity,
         std::vector<std::uint64_t>& failures, std::uint64_t node_limit, Clock::time_point deadline)
      : instance_(instance),
        rank_(std::move(rank)),
        failures_(failures),
        plan_(instance, capacity, failures),
        node_limit_(node_limit),
        deadline_(deadline) {}

  PlanSearch::Outcome run() {
    std::vector<Index> all(instance_.buffers());
    std::iota(all.begin(), all.end(), Index{0});
    std::sort(all.begin(), all.end(),
              [&](Index a, Index b) { return instance_.first[a] < instance_.first[b]; });
    if (plan_.start() && solve_parts(all)) return PlanSearch::Outcome::found;
    return gave_up_ ? PlanSearch::Outcome::timed_out : PlanSearch::Outcome::infeasible;
  }

  Bytes offset(Index buffer) const { return plan_.offset(buffer); }
  std::uint64_t nodes() const { return nodes_; }

 private:
  bool out_of_budget() {
    if (nodes_ >= node_limit_ || ((nodes_ & 0xFF) == 0 && Clock::now() >= deadline_))
      gave_up_ = true;
    return gave_up_;
  }

  // Takes `unplaced` in order of first section. Splits it into independent parts: groups of buffers
  // that share no section, directly or through others.
  bool solve_parts(const std::vector<Index>& unplaced) {
    std::size_t begin = 0;
    while (begin < unplaced.size()) {
      Index reach = instance_.last[unplaced[begin]];
      std::size_t end = begin + 1;
      for (; end < unplaced.size() && instance_.first[unplaced[end]] <= reach; ++end)
        reach = std::max(reach, instance_.last[unplaced[end]]);
      const std::vector<Index> part(unplaced.begin() + static_cast<std::ptrdiff_t>(begin),
                                    unplaced.begin() + static_cast<std::ptrdiff_t>(end));
      if (!solve(part)) return false;
      begin = end;
    }
    return true;
  }

  // On failure, the caller undoes these decisions together with its own.
  bool solve(const std::vector<Index>& part) {
    while (true) {
      const std::optional<Index> next = choose(part);
      if (!next || out_of_budget()) return false;
      ++nodes_;
      const std::size_t mark = plan_.mark();
      if (plan_.place(*next)) {
        std::vector<Index> rest;
        rest.reserve(part.size() - 1);
        std::remove_copy(part.begin(), part.end(), std::back_inserter(rest), *next);
        if (solve_parts(rest)) return true;
        if (gave_up_) return false;
      }
      plan_.take_back(mark);
      if (!plan_.lift(*next)) return false;
    }
  }

  // Returns the next buffer to place, or none if this plan cannot be continued. In a plan in which
  // no buffer could be pushed down, the lowest unplaced buffer can always be next.
  std::optional<Index> choose(const std::vector<Index>& part) const {
    std::optional<Index> best;
    std::tuple<Index, Bytes, std::uint64_t, Index> best_key;
    for (const Index i : part) {
      if (!plan_.can_be_next(i)) continue;
      const Index ways = std::min(plan_.fewest_ways(i), kManyWays);
      const auto key = std::tuple(ways, plan_.offset(i), ~failures_[i], rank_[i]);
      if (best && key >= best_key) continue;
      best = i;
      best_key = key;
    }
    return best;
  }

  const PlanInstance& instance_;
  const std::vector<Index> rank_;
  const std::vector<std::uint64_t>& failures_;
  PartialPlan plan_;
  const std::uint64_t node_limit_;
  const Clock::time_point deadline_;
  std::uint64_t nodes_ = 0;
  bool gave_up_ = false;
};

// Whether the buffer always uses either all of its bytes or none.
bool is_rectangular(const PlanBuffer& buffer) {
  return std::all_of(buffer.gaps.begin(), buffer.gaps.end(), [&](const PlanGap& gap) {
    return gap.lower == gap.upper || gap.begin == gap.end ||
           (gap.begin == 0 && gap.end == buffer.size);
  });
}

bool is_ever_in_use(const PlanBuffer& buffer) {
  bool ever = false;
  for_each_piece(buffer, [&](const PlanPiece&) { ever = true; });
  return ever;
}

}  // namespace

PlanSearch search_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                       Clock::time_point deadline) {
  if (least_bytes(buffers) > capacity || !fixed_violations(buffers).empty())
    return {.outcome = PlanSearch::Outcome::infeasible, .offsets = {}};
  if (!std::all_of(buffers.begin(), buffers.end(), is_rectangular))
    return search_shaped_plan(buffers, capacity, deadline);
  std::vector<Index> chosen;
  for (Index i = 0; i < buffers.size(); ++i)
    if (is_ever_in_use(buffers[i])) chosen.push_back(i);
  const PlanInstance instance = make_instance(buffers, chosen);
  PlanSearch result;
  // Shared by all searches, so that later ones learn from earlier ones.
  std::vector<std::uint64_t> failures(instance.buffers());
  // Starting anew in another order soon finds more than going on: most searches that succeed place
  // few buffers twice.
  std::uint64_t limit = std::max<std::uint64_t>(500, 2 * instance.buffers());
  for (std::uint32_t round = 0;; ++round) {
    for (const RankOrder order : kRankOrders) {
      Search search(instance, ranks(instance, order, round), capacity, failures, limit, deadline);
      result.outcome = search.run();
      result.nodes += search.nodes();
      if (result.outcome == PlanSearch::Outcome::found) {
        result.offsets.clear();
        for (const PlanBuffer& buffer : buffers)
          result.offsets.push_back(buffer.offset.value_or(0));
        for (Index i = 0; i < chosen.size(); ++i) result.offsets[chosen[i]] = search.offset(i);
      }
      if (result.outcome != PlanSearch::Outcome::timed_out || Clock::now() >= deadline)
        return result;
    }
    limit += limit / 20;
  }
}

Offsets plan_low(const std::vector<PlanBuffer>& buffers, Clock::time_point deadline) {
  Offsets best = plan_greedily(buffers);
  if (buffers.size() > kMostToSearch) return improve_greedily(buffers, std::move(best), deadline);
  const Bytes bound = least_bytes(buffers);
  Bytes high = makespan(buffers, best);
  Bytes low = bound;  // capacities below this are impossible or were tried without success
  while (low < high && Clock::now() < deadline) {
    // The bound itself is tried first, because it is often reached.
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
