// pinned: batches in page-locked host memory, from which a GPU copies by itself. The host's device
// memory is host memory and gains nothing; for a GPU the cuda module would have to offer such
// memory, which it does not yet. Named, so that a cell that asks for it stays in the report with
// this reason.
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/pipeline/pipeline.h"

namespace headroom {
namespace {

std::string why_not() {
  return "pinned staging needs page-locked host memory from a cuda device; host and meta have no "
         "use for it, and the cuda module does not offer it yet: leave 'pinned' out";
}

const bool pinned_is_registered = Registry<StageKind>::instance().add(
    {.name = "pinned",
     .summary = "Batches in page-locked host memory",
     .parameters = {},
     .examples = {},
     .over_batches = [](const Spec&, StageKind::Batches, const StageContext&)
         -> StageKind::Batches { throw NotSupported(why_not()); },
     .unavailable = why_not});

}  // namespace
}  // namespace headroom
