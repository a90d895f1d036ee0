// A partial plan: the placed buffers, the lowest offset still possible for each other buffer, and
// what follows from these. Every change can be undone, in reverse order.
//
// No unplaced buffer goes below a placed one that lives at the same time. All unplaced buffers of a
// section must fit above the lowest of them, so a buffer too high to be the lowest must rest on
// another one. A lifted buffer is known to rest on one of its unplaced neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/planning/instance.h"

namespace headroom {

class PartialPlan {
 public:
  // `failures` counts how often each buffer could not be placed; this class adds to it.
  PartialPlan(const PlanInstance& instance, Bytes capacity, std::vector<std::uint64_t>& failures);

  // Each of these propagates what follows. It returns false when the remaining buffers cannot fit;
  // the caller then undoes it.
  bool start();
  bool place(PlanIndex buffer);  // at offset(buffer)
  bool lift(PlanIndex buffer);   // commits to a place above offset(buffer)

  std::size_t mark() const { return trail_.size(); }
  void take_back(std::size_t mark);

  // Whether the buffer can be placed next, at offset(buffer), with no unplaced buffer below it.
  bool can_be_next(PlanIndex buffer) const;

  // Returns the fewest continuations of any of the buffer's sections: one for each buffer that can
  // be the lowest there, and one if room may stay empty.
  PlanIndex fewest_ways(PlanIndex buffer) const;

  // Offset of a placed buffer. For an unplaced one, the lowest offset that the placed buffers
  // allow.
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
  std::vector<PlanIndex> twin_;  // previous buffer with the same life, size and alignment
  std::vector<std::vector<PlanIndex>> fixed_neighbours_;
  std::vector<Bytes> offset_;
  std::vector<Bytes> bound_;  // lower bound on the offset of each unplaced buffer
  std::vector<bool> placed_, lifted_;
  std::vector<Bytes> unplaced_bytes_;    // by section
  std::vector<Bytes> lowest_top_;        // by section: lowest top of an unplaced buffer
  std::vector<PlanIndex> ways_;          // by section
  std::vector<PlanIndex> to_look_at_;    // sections whose conclusions are out of date
  std::vector<bool> will_be_looked_at_;  // by section
  std::vector<Change> trail_;
};

}  // namespace headroom
