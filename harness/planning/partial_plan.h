// A plan in the making: what is placed, how low each of the others can still go, and what follows
// from that. Everything can be taken back, latest first.
//
// Nothing unplaced ever goes below what is placed in its life. Of each section is known: its
// unplaced buffers must fit above the lowest of them; those too high to be that one therefore stand
// on another. What is lifted is known to stand on one of its unplaced neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/planning/instance.h"

namespace headroom {

class PartialPlan {
 public:
  // `failures`: how often each buffer was among those that found no room; counted on.
  PartialPlan(const PlanInstance& instance, Bytes capacity, std::vector<std::uint64_t>& failures);

  // Each draws conclusions; false when what is left cannot fit, to be taken back.
  bool start();
  bool place(PlanIndex buffer);  // at offset(buffer)
  bool lift(PlanIndex buffer);   // decides that it goes above offset(buffer)

  std::size_t mark() const { return trail_.size(); }
  void take_back(std::size_t mark);

  // Whether a lowest plan may have it at offset(buffer), and nothing unplaced below.
  bool can_be_next(PlanIndex buffer) const;

  // In how many ways its most constrained section can go on at the least: one for each buffer that
  // can be the lowest, and one where room may stay empty.
  PlanIndex fewest_ways(PlanIndex buffer) const;

  // Of what is placed; of others how low those placed let them go.
  Bytes offset(PlanIndex buffer) const { return offset_[buffer]; }

 private:
  enum class Kind : std::uint8_t { place, offset, bound, lift };
  struct Change {
    Kind kind;
    PlanIndex buffer;
    Bytes before;
  };

  bool raise(PlanIndex buffer, Bytes bound);
  bool raise_beyond_fixed(PlanIndex buffer);
  bool conclude();
  bool conclude_in(PlanIndex section);
  bool conclude_about_lifted(PlanIndex buffer);
  void look_again(PlanIndex buffer);

  const PlanInstance& instance_;
  const Bytes capacity_;
  std::vector<std::uint64_t>& failures_;
  std::vector<PlanIndex> twin_;  // the one before it of the same life, size and alignment
  std::vector<std::vector<PlanIndex>> fixed_neighbours_;
  std::vector<Bytes> offset_;
  std::vector<Bytes> bound_;  // of the unplaced: no lower in what follows
  std::vector<bool> placed_, lifted_;
  std::vector<Bytes> unplaced_bytes_;    // by section
  std::vector<Bytes> lowest_top_;        // by section, of the unplaced
  std::vector<PlanIndex> ways_;          // by section
  std::vector<PlanIndex> to_look_at_;    // sections
  std::vector<bool> will_be_looked_at_;  // by section
  std::vector<Change> trail_;
};

}  // namespace headroom
