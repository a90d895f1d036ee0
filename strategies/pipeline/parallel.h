// Threads that load several elements of the stage behind at once, for stages that offer threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "harness/workload/pipeline.h"

namespace headroom {

enum class Delivery : std::uint8_t { ordered, as_finished };

struct ParallelOptions {
  std::string name;
  std::int64_t threads = 1;
  Delivery delivery = Delivery::ordered;
};

// At most 2 · threads elements are being loaded or wait. Elements of one epoch always precede those
// of the next, whether the order is kept or not.
std::unique_ptr<RecordStage> make_parallel(std::unique_ptr<RecordStage> inner,
                                           const StageContext& context, ParallelOptions options);

// The number of threads of the parameter, or `otherwise` if it is not given. Throws InputError
// unless 1 … 256.
std::int64_t threads_of(const Spec& spec, const std::string& key, std::int64_t otherwise);

}  // namespace headroom
