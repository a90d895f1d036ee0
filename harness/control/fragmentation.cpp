// fragmentation: the first step leaves a small block behind after every op, like a program that
// carelessly keeps a loss or a statistic. When the large blocks between them are freed, the holes
// cannot merge, and later steps find less contiguous memory than is free.
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/control/injection.h"

namespace headroom {
namespace {

Bytes pinned_bytes(const Spec& spec) {
  const Bytes bytes = spec.bytes("bytes", kBlockAlignment);
  if (bytes == 0) throw InputError(spec.to_string() + ": bytes must be above 0");
  return bytes;
}

class Fragmentation final : public Injection {
 public:
  Fragmentation(Bytes bytes, Allocator& allocator) : bytes_(bytes), allocator_(allocator) {}
  ~Fragmentation() override {
    for (const Block& block : pins_) allocator_.deallocate(block);
  }
  Fragmentation(const Fragmentation&) = delete;
  Fragmentation& operator=(const Fragmentation&) = delete;

  void after_op() override {
    if (!first_step_) return;
    pins_.push_back(allocator_.allocate(bytes_, {.role = Role::workspace}));
  }
  void end_step(std::chrono::nanoseconds) override { first_step_ = false; }

  Reason why_not_engaged() const override {
    return unless(!pins_.empty(), "fragmentation: no op left a block behind");
  }

 private:
  Bytes bytes_;
  Allocator& allocator_;
  bool first_step_ = true;
  std::vector<Block> pins_;
};

const bool fragmentation_is_registered = Registry<InjectionKind>::instance().add(
    {.name = "fragmentation",
     .summary = "The first step leaves a small block behind after every op",
     .parameters = {"bytes"},
     .examples = {"fragmentation", "fragmentation(bytes=4KiB)"},
     .metric = "external_fragmentation",
     .shows = InjectionKind::Shows::difference,
     .text =
         [](const Spec& spec) {
           return fmt::format("a block of {} left behind after every op of the first step",
                              format_bytes(pinned_bytes(spec)));
         },
     .create = [](const Spec& spec, Allocator& allocator) -> std::unique_ptr<Injection> {
       return std::make_unique<Fragmentation>(pinned_bytes(spec), allocator);
     }});

}  // namespace
}  // namespace headroom
