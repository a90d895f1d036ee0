#include "harness/execution/captured_executor.h"

#include <algorithm>
#include <span>

#include "harness/base/error.h"
#include "harness/program/offload.h"

namespace headroom {
namespace {

// Runs op by op on devices that cannot capture.
class OpByOp final : public CapturedProgram {
 public:
  OpByOp(CompiledProgram& compute, std::span<const OpBuffers> buffers)
      : compute_(compute), buffers_(buffers) {}
  void run() override {
    for (std::size_t index = 0; index < buffers_.size(); ++index)
      compute_.run(index, buffers_[index]);
  }

 private:
  CompiledProgram& compute_;
  std::span<const OpBuffers> buffers_;
};

std::unique_ptr<CapturedProgram> captured(CompiledProgram& compute,
                                          std::span<const OpBuffers> buffers) {
  if (auto* capturing = dynamic_cast<CapturingProgram*>(&compute))
    return capturing->capture(buffers);
  return std::make_unique<OpByOp>(compute, buffers);
}

// Addresses by value; null for values without bytes, and on meta.
std::vector<std::byte*> data_of(const Program& program, const CapturePools::Place& place,
                                const PersistentBlocks& persistent) {
  const std::vector<bool> on_host = kept_on_host(program);
  std::vector<std::byte*> data(program.values.size(), nullptr);
  for (ValueId id = 0; id < program.values.size(); ++id) {
    const Value& value = program.value(id);
    if (value.persistent) {
      const auto found = persistent.find(value.name);
      if (found == persistent.end())
        throw Error("the Program uses '" + value.name + "', which has no memory");
      data[id] = found->second.data;
    } else if (std::byte* block = on_host[id] ? place.host.data : place.device.data;
               block != nullptr && value.bytes > 0) {
      data[id] = block + place.plan.offsets[id];
    }
  }
  return data;
}

}  // namespace

CapturedExecutor::CapturedExecutor(const Program& lowered, CompiledProgram* compute,
                                   const CapturePools::Place& place,
                                   const PersistentBlocks& persistent)
    : program_(lowered), data_(data_of(lowered, place, persistent)) {
  if (compute == nullptr) return;
  const auto pointer = [this](ValueId id) { return id == kNoValue ? nullptr : data_[id]; };
  const auto list = [&](const std::vector<ValueId>& ids) {
    std::vector<std::byte*>& pointers = lists_.emplace_back();
    std::transform(ids.begin(), ids.end(), std::back_inserter(pointers), pointer);
    return std::span<std::byte* const>(pointers);
  };
  lists_.reserve(2 * lowered.ops.size());
  for (const Op& op : lowered.ops)
    buffers_.push_back({.inputs = list(op.inputs),
                        .outputs = list(op.outputs),
                        .workspace = pointer(op.workspace)});
  captured_ = captured(*compute, buffers_);
}

void CapturedExecutor::run(const Transfer& feed, const Transfer& read,
                           const std::function<void()>& fed) {
  for (const ValueId id : program_.inputs) feed(id, data_[id]);
  if (fed) fed();
  if (captured_ != nullptr) captured_->run();
  for (const ValueId id : program_.results) read(id, data_[id]);
  ++executions_;
}

void CapturedExecutor::feed_ahead(const Transfer&) {
  throw Error("'" + program_.name + "' is captured: its inputs have one place");
}

Reason CapturedExecutor::why_not_engaged() const {
  if (executions_ > 1) return std::nullopt;
  return "captured: '" + program_.name + "' did not run a second time, so nothing was replayed";
}

}  // namespace headroom
