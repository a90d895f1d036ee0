// The memory that the kernel charges to a process and all its descendants. Source: proc(5).
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
  std::uint64_t started = 0;  // clock ticks since boot; unique together with the pid
  std::string command;        // "python3"
  Bytes resident = 0;         // VmRSS: includes all shared pages in each process
  Bytes high_water_mark = 0;  // VmHWM: peak of resident bytes since the process began, exact
  Bytes swapped = 0;          // VmSwap
  std::optional<Bytes> proportional;  // PSS: shared pages divided among their users
};

enum class Root { included, left_out };
enum class Proportional { read, left_out };  // reading it walks all pages of each process

class ProcessTree {
 public:
  ProcessTree(pid_t root, Root of_tree) : root_(root), of_tree_(of_tree) {}

  // The live processes, ordered by pid. A process remains in the tree when its parent dies. Zombies
  // and processes that end while they are read are left out.
  std::vector<ProcessUsage> read(Proportional proportional);

 private:
  pid_t root_;
  Root of_tree_;
  std::map<pid_t, std::uint64_t> members_;  // pid → started
};

}  // namespace headroom
