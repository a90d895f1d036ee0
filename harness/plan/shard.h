// A part of a run, so that several machines of one kind can share the work. Whole blocks: the arms
// of a pair stay together.
#pragma once

namespace headroom {

// The second of four: {2, 4}. {1, 1} is the whole run.
struct Shard {
  int number = 1;
  int count = 1;
  bool operator==(const Shard&) const = default;
};

}  // namespace headroom
