// A part of a run, so that several machines of one kind can share the work. Shards consist of whole
// blocks, which keeps pairs of samples together.
#pragma once

namespace headroom {

// {2, 4} is the second of four shards; {1, 1} is the whole run.
struct Shard {
  int number = 1;
  int count = 1;
  bool operator==(const Shard&) const = default;
};

}  // namespace headroom
