#include "harness/planning/shaped_search.h"

#include <optional>

#include "harness/base/duration.h"
#include "harness/planning/collisions.h"

namespace headroom {
namespace {

using Offset = std::int64_t;

// Buffers `a` and `b` collide while the offset of `b` minus that of `a` lies in `apart`. Either `b`
// must go above `a`, or `a` above `b`.
struct Conflict {
  std::uint32_t a, b;
  Distances apart;
};

struct Placing {
  struct Edge {
    std::uint32_t from;
    Offset distance;  // minimum distance above `from`
  };
  std::vector<Offset> lowest, highest;   // by buffer
  std::vector<std::vector<Edge>> above;  // by buffer: the buffers decided to lie below it
  std::vector<bool> decided;             // by conflict
  std::size_t edges = 0;                 // total number in `above`
};

class ShapedSearch {
 public:
  ShapedSearch(const std::vector<PlanBuffer>& buffers, Bytes capacity, Clock::time_point deadline)
      : buffers_(buffers), capacity_(static_cast<Offset>(capacity)), deadline_(deadline) {}

  PlanSearch run() {
    PlanSearch result;
    std::optional<Placing> start = begin();
    if (!start) return result;
    const bool found = is_possible_ && solve(std::move(*start));
    result.nodes = nodes_;
    if (found) {
      result.outcome = PlanSearch::Outcome::found;
      for (const Offset offset : plan_) result.offsets.push_back(static_cast<Bytes>(offset));
    } else if (!gave_up_) {
      result.outcome = PlanSearch::Outcome::infeasible;
    }
    return result;
  }

 private:
  static constexpr std::size_t kMostConflicts = 1'000'000;
  static constexpr std::size_t kMostHeld = std::size_t{1} << 25;  // units of 16 bytes: 512 MiB

  // Returns none if there are too many conflicts or time is up.
  std::optional<Placing> begin() {
    Placing state;
    for (const PlanBuffer& buffer : buffers_) {
      const auto size = static_cast<Offset>(buffer.needs_room() ? buffer.size : 0);
      const auto fixed = static_cast<Offset>(buffer.offset.value_or(0));
      state.lowest.push_back(fixed);
      state.highest.push_back(buffer.offset ? fixed : capacity_ - size);
      is_possible_ = is_possible_ && fixed + size <= capacity_;
    }
    for (std::uint32_t a = 0; a < buffers_.size(); ++a) {
      for (std::uint32_t b = a + 1; b < buffers_.size(); ++b)
        for (const Distances& apart : collisions(buffers_[a], buffers_[b]))
          conflicts_.push_back({a, b, apart});
      if (conflicts_.size() > kMostConflicts || Clock::now() >= deadline_) return std::nullopt;
    }
    state.above.resize(buffers_.size());
    state.decided.resize(conflicts_.size());
    return state;
  }

  bool solve(Placing state) {
    ++nodes_;
    if (Clock::now() >= deadline_) gave_up_ = true;
    if (gave_up_ || !conclude(state)) return false;
    const std::optional<std::size_t> next = collision(state);
    if (!next) {
      plan_ = std::move(state.lowest);
      return true;
    }
    const Conflict& conflict = conflicts_[*next];
    state.decided[*next] = true;
    // Tries first the alternative that lifts a buffer less.
    const Offset apart = state.lowest[conflict.b] - state.lowest[conflict.a];
    const bool b_above = conflict.apart.last - apart <= apart - conflict.apart.first;
    Placing other = state;
    put_above(state, conflict, b_above);
    put_above(other, conflict, !b_above);
    // The memory held by the alternative, for backtracking.
    const std::size_t held = other.edges + buffers_.size() + conflicts_.size() / 128;
    held_ += held;
    if (held_ > kMostHeld) gave_up_ = true;
    const bool found = solve(std::move(state)) || solve(std::move(other));
    held_ -= held;
    return found;
  }

  static void put_above(Placing& state, const Conflict& conflict, bool b_above) {
    ++state.edges;
    if (b_above)
      state.above[conflict.b].push_back({conflict.a, conflict.apart.last + 1});
    else
      state.above[conflict.a].push_back({conflict.b, 1 - conflict.apart.first});
  }

  // Propagates until nothing changes. Returns false if no valid plan is left.
  bool conclude(Placing& state) const {
    bool decided = true;
    while (decided) {
      if (!move_apart(state)) return false;
      decided = false;
      for (std::size_t i = 0; i < conflicts_.size(); ++i) {
        if (state.decided[i]) continue;
        const auto& [a, b, apart] = conflicts_[i];
        const Offset least = state.lowest[b] - state.highest[a];
        const Offset most = state.highest[b] - state.lowest[a];
        const bool may_be_above = most > apart.last;
        const bool may_be_below = least < apart.first;
        const bool never_meet = least > apart.last || most < apart.first;
        if (!never_meet && !may_be_above && !may_be_below) return false;
        if (!never_meet && may_be_above && may_be_below) continue;
        state.decided[i] = true;
        if (never_meet) continue;
        put_above(state, conflicts_[i], may_be_above);
        decided = true;
      }
    }
    return true;
  }

  // Propagates the decided edges to all bounds. If the bounds still change after as many rounds as
  // there are buffers, the edges form a cycle.
  bool move_apart(Placing& state) const {
    bool changed = true;
    for (std::size_t round = 0; changed; ++round) {
      if (round > buffers_.size()) return false;
      changed = false;
      for (std::size_t i = 0; i < buffers_.size(); ++i) {
        for (const auto& [from, distance] : state.above[i]) {
          const Offset lowest = state.lowest[from] + distance;
          if (lowest > state.lowest[i]) {
            state.lowest[i] =
                static_cast<Offset>(align_up(static_cast<Bytes>(lowest), buffers_[i].alignment));
            changed = true;
          }
          const Offset highest = state.highest[i] - distance;
          if (highest < state.highest[from]) {
            state.highest[from] = highest;
            changed = true;
          }
          if (state.highest[from] < state.lowest[from]) return false;
        }
        if (state.highest[i] < state.lowest[i]) return false;
      }
    }
    return true;
  }

  // Returns, of the conflicts with every buffer at its lowest offset, the one whose two buffers use
  // the most bytes.
  std::optional<std::size_t> collision(const Placing& state) const {
    std::optional<std::size_t> found;
    Offset widest = 0;
    for (std::size_t i = 0; i < conflicts_.size(); ++i) {
      const auto& [a, b, apart] = conflicts_[i];
      const Offset now = state.lowest[b] - state.lowest[a];
      if (now < apart.first || now > apart.last || apart.last - apart.first < widest) continue;
      widest = apart.last - apart.first;
      found = i;
    }
    return found;
  }

  const std::vector<PlanBuffer>& buffers_;
  const Offset capacity_;
  const Clock::time_point deadline_;
  std::vector<Conflict> conflicts_;
  std::vector<Offset> plan_;
  std::uint64_t nodes_ = 0;
  std::size_t held_ = 0;
  bool is_possible_ = true;
  bool gave_up_ = false;
};

}  // namespace

PlanSearch search_shaped_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                              Clock::time_point deadline) {
  return ShapedSearch(buffers, capacity, deadline).run();
}

}  // namespace headroom
