#include "harness/workload/workload.h"

#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom {

LentBatch BatchSource::lend_training_batch() {
  throw InputError("a device cannot copy from the memory of these batches; leave out 'staging'");
}

std::unique_ptr<RecordSource> Workload::open_records(std::uint64_t) const { return nullptr; }

std::string Workload::why_no_records() const {
  return "this workload delivers whole batches and has no records to load one by one";
}

std::unique_ptr<Workload> make_workload(const Spec& spec) {
  const WorkloadKind& kind = Registry<WorkloadKind>::instance().find(spec.name());
  spec.require_known(kind.parameters);
  return kind.create(spec);
}

}  // namespace headroom
