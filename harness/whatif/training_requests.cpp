#include "harness/whatif/training_requests.h"

#include "harness/memory/recording_allocator.h"
#include "harness/memory/unlimited_allocator.h"

namespace headroom {

RequestList training_requests(const TrainingPlan& plan, int steps) {
  TraceRecorder recorder(0);
  for (const Program* program : plan.programs())
    for (const Op& op : program->ops) recorder.trace().op_names.push_back(op.name);
  const auto meta =
      make_device(Spec("meta", {{"capacity", "1GiB"}}));  // unused: no memory is taken from it
  UnlimitedAllocator unlimited;
  RecordingAllocator recorded(unlimited, recorder);
  Trainer trainer(plan, *meta, recorded, recorder, nullptr, 0);
  for (int step = 1; step <= steps; ++step) {
    recorder.enter_step(step);
    trainer.step();
  }
  return requests_of(recorder.trace());
}

}  // namespace headroom
