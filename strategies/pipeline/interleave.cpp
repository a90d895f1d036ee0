// interleave(n): n threads load records at once, so that the latencies of their reads overlap, and
// pass them on in order (tf.data's interleave with deterministic=true over files; here over
// records). Costs up to 2n records in host memory.
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "strategies/pipeline/parallel.h"

namespace headroom {
namespace {

const bool interleave_is_registered = Registry<StageKind>::instance().add(
    {.name = "interleave",
     .summary = "Reads records on the given number of threads at once and passes them on in order",
     .parameters = {"value"},
     .examples = {"map|interleave(2)|stream"},
     .check = [](const Spec& spec) { threads_of(spec, "value", 0); },
     .loads_ahead = [](const Spec&) { return true; },
     .over_records = [](const Spec& spec, StageKind::Records inner,
                        const StageContext& context) -> StageKind::Records {
       return make_parallel(std::move(inner), context,
                            {.name = spec.to_string(), .threads = threads_of(spec, "value", 0)});
     }});

}  // namespace
}  // namespace headroom
