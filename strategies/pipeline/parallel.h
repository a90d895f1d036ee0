// Threads that load elements of the stage behind, several at once. For stages that offer threads.
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

// At most 2 · threads elements are in work or waiting. Elements of one epoch always come before
// those of the next, in either order.
std::unique_ptr<RecordStage> make_parallel(std::unique_ptr<RecordStage> inner,
                                           const StageContext& context, ParallelOptions options);

// The number of threads of the parameter, or `otherwise` if it is not given. Throws InputError
// unless 1 … 256.
std::int64_t threads_of(const Spec& spec, const std::string& key, std::int64_t otherwise);

}  // namespace headroom
