#include "harness/run/contention.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace headroom {

std::optional<std::uint64_t> cpu_wait_ns() {
  std::uint64_t total = 0;
  bool counted = false;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(thread.path() / "schedstat");
    std::uint64_t ran = 0;
    std::uint64_t waited = 0;
    // A thread that ended meanwhile has no file any more.
    if (!(file >> ran >> waited)) continue;
    total += waited;
    counted = counted || ran > 0;
  }
  if (!counted) return std::nullopt;
  return total;
}

void bound_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", 0);
}

}  // namespace headroom
