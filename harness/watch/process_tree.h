// What the kernel charges a process and all its descendants. Source: proc(5).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

struct ProcessUsage {
  pid_t pid = 0;
  std::uint64_t started = 0;  // clock ticks since boot: with the pid it names one process for good
  std::string command;        // "python3"
  Bytes resident = 0;         // VmRSS: shared pages count in full in each process
  Bytes high_water_mark = 0;  // VmHWM: of resident bytes, exact, since the process began
  Bytes swapped = 0;          // VmSwap
  std::optional<Bytes> proportional;  // PSS: shared pages divided among those who share them
};

enum class Root { included, left_out };
enum class Proportional { read, left_out };  // reading it walks all pages of each process

class ProcessTree {
 public:
  ProcessTree(pid_t root, Root of_tree) : root_(root), of_tree_(of_tree) {}

  // Who is alive now, ordered by pid. Whoever once belonged to the tree stays in it when its parent
  // dies. A process that ends while it is read, or has ended and waits for its parent, is left out.
  std::vector<ProcessUsage> read(Proportional proportional);

 private:
  pid_t root_;
  Root of_tree_;
  std::map<pid_t, std::uint64_t> members_;  // pid → started
};

}  // namespace headroom
