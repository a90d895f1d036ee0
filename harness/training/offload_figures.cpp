#include "harness/training/offload_figures.h"

namespace headroom {

std::map<std::string, double> offload_figures(const Trainer& trainer, int steps) {
  const HostStore* store = trainer.host_side();
  if (store == nullptr) return {};
  return {{"offloaded_bytes_per_step", static_cast<double>(trainer.offloaded_bytes()) / steps},
          {"offload_peak_bytes", static_cast<double>(store->peak())},
          {"offload_reserved_bytes", static_cast<double>(store->reserved_peak())}};
}

}  // namespace headroom
