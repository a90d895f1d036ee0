// A step captured once and replayed, as CUDA graphs are (CUDA C++ Programming Guide, "CUDA Graphs";
// torch.cuda.CUDAGraph). A replay launches what was recorded with the addresses that were recorded,
// so every transient value of a Program has a fixed place: an offset in one block, planned from
// overlapping lifetimes. PyTorch likewise gives each graph a private pool. The block is allocated
// before the first step and never freed.
//   pool=shared  one block for all Programs, of the size of the largest (default).
//                Phases, shapes and micro-batches run one after another and pass on no values in
//                it. Graphs captured into one pool do the same, which PyTorch allows if they are
//                replayed in the order of their capture.
//   pool=own     a block for each Program
// Cost: reserved memory stays at the peak, also between steps and during an evaluation, which is
// not captured and takes additional memory. Gain: a step makes no requests to the strategy. On cuda
// the step is launched as one CUDA graph, whose own memory belongs to the driver; on host the ops
// are called with operands resolved once, which saves only bookkeeping.
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/program/captured.h"
#include "harness/program/pass.h"

namespace headroom {
namespace {

CapturePool pool_of(const Spec& spec) {
  const std::string pool = spec.text("pool", "shared");
  if (pool == "shared") return CapturePool::shared;
  if (pool == "own") return CapturePool::own;
  throw InputError(fmt::format("{}: pool is shared or own, not '{}'", spec.to_string(), pool));
}

const bool captured_is_registered = Registry<ExecutionStrategy>::instance().add(
    {.name = "captured",
     .summary = "Captures a step at its first run and replays it, on cuda as a CUDA graph. "
                "Everything that a step makes lies in one block that is kept (pool=shared, or "
                "pool=own: one for each Program), and no step asks the allocator for memory",
     .parameters = {"pool"},
     .examples = {"captured", "captured(pool=own)"},
     .apply = [](Program lowered,
                 const Spec& spec) { return capture(std::move(lowered), pool_of(spec)); },
     .refuses = {{"inject", "fragmentation", "a replayed step allocates nothing between its ops"},
                 {"pipeline", "staging",
                  "a captured step has one place for its batch, and would still read it while the "
                  "next one is copied there"}}});

}  // namespace
}  // namespace headroom
