#include "tests/cuda/simulated_gpu/refusal.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/cuda/simulated_gpu/streams.h"

namespace headroom::simulated_gpu {
namespace {

// Counts calls since the variable was last changed.
class Refusals {
 public:
  bool is_next() {
    read();
    ++calls_;
    return refused_ != 0 && (calls_ == refused_ || is_lost());
  }
  bool is_lost() {
    read();
    return loses_ && calls_ >= refused_;
  }

 private:
  void read() {
    const char* const set = std::getenv("HEADROOM_SIMULATED_GPU_REFUSES");
    if (wanted_ == (set == nullptr ? "" : set)) return;
    wanted_ = set == nullptr ? "" : set;
    refused_ = std::strtoull(wanted_.c_str(), nullptr, 10);
    loses_ = wanted_.ends_with('+');
    calls_ = 0;
  }

  std::string wanted_;
  std::uint64_t refused_ = 0, calls_ = 0;
  bool loses_ = false;
};

Refusals& refusals() {
  static Refusals one;
  return one;
}

}  // namespace

bool is_refused() {
  const Lock lock;
  return refusals().is_next();
}

bool lacks(std::string_view what) {
  const char* const set = std::getenv("HEADROOM_SIMULATED_GPU_LACKS");
  const std::string names = set == nullptr ? "" : "," + std::string(set) + ",";
  return names.find("," + std::string(what) + ",") != std::string::npos;
}

bool is_lost() {
  const Lock lock;
  return refusals().is_lost();
}

}  // namespace headroom::simulated_gpu
