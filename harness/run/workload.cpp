#include "harness/run/workload.h"

#include "harness/base/registry.h"

namespace headroom {

std::unique_ptr<Workload> make_workload(const Spec& spec) {
  const WorkloadKind& kind = Registry<WorkloadKind>::instance().find(spec.name());
  spec.require_known(kind.parameters);
  return kind.create(spec);
}

Program apply_optimizer(Program program, const Spec& spec) {
  const OptimizerStrategy& strategy = Registry<OptimizerStrategy>::instance().find(spec.name());
  spec.require_known(strategy.parameters);
  return strategy.apply(std::move(program), spec);
}

}  // namespace headroom
