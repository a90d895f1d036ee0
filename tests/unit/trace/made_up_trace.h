// Random traces for tests of files; their events need not be consistent.
#pragma once

#include <random>

#include "harness/trace/trace.h"

namespace headroom {

inline Trace random_trace(std::uint64_t seed, int events = 500) {
  std::mt19937_64 random(seed);
  Trace trace;
  trace.header = {"meta(card=v100-16gb)", "dense",   "bfc(growth=on)",
                  "resnet(depth=18)",     16 * kGiB, 2 * kMiB};
  trace.op_names = {"conv1", "\"quoted\"", "ünïcode"};
  for (int i = 0; i < events; ++i) {
    trace.events.push_back(
        {static_cast<EventKind>(random() % kEventKindCount),
         static_cast<Role>(random() % kRoleCount), static_cast<Phase>(random() % kPhaseCount),
         static_cast<std::uint8_t>(random()), static_cast<std::uint32_t>(random()),
         random() % 4 == 0 ? kNoOp : static_cast<std::uint32_t>(random() % 3),
         static_cast<std::int32_t>(random()), random(), random(), random(), random()});
  }
  return trace;
}

inline bool same_times(const Trace& a, const Trace& b) {
  for (std::size_t i = 0; i < a.events.size(); ++i)
    if (a.events[i].time_ns != b.events[i].time_ns) return false;
  return true;
}

}  // namespace headroom
