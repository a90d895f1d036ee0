#include "harness/run/workload.h"

#include "harness/base/registry.h"

namespace headroom {

std::unique_ptr<Workload> make_workload(const Spec& spec) {
  const WorkloadKind& kind = Registry<WorkloadKind>::instance().find(spec.name());
  spec.require_known(kind.parameters);
  return kind.create(spec);
}

}  // namespace headroom
