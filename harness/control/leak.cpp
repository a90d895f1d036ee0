// leak: every step allocates one block that is not freed before training ends.
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/control/injection.h"

namespace headroom {
namespace {

Bytes leaked_bytes(const Spec& spec) {
  const Bytes bytes = spec.bytes("bytes", 64 * kKiB);
  if (bytes == 0) throw InputError(spec.to_string() + ": bytes must be above 0");
  return bytes;
}

class Leak final : public Injection {
 public:
  Leak(Bytes bytes, Allocator& allocator) : bytes_(bytes), allocator_(allocator) {}
  ~Leak() override {
    for (const Block& block : kept_) allocator_.deallocate(block);
  }
  Leak(const Leak&) = delete;
  Leak& operator=(const Leak&) = delete;

  void end_step(std::chrono::nanoseconds) override {
    kept_.push_back(allocator_.allocate(bytes_, {.role = Role::workspace, .phase = Phase::update}));
  }

  Reason why_not_engaged() const override {
    return unless(!kept_.empty(), "leak: no step kept a block");
  }

 private:
  Bytes bytes_;
  Allocator& allocator_;
  std::vector<Block> kept_;
};

const bool leak_is_registered = Registry<InjectionKind>::instance().add(
    {.name = "leak",
     .summary = "Each step keeps a block until training ends",
     .parameters = {"bytes"},
     .examples = {"leak", "leak(bytes=1MiB)"},
     .metric = "steady_allocated_growth_bytes_per_step",
     .shows = InjectionKind::Shows::difference,
     .text =
         [](const Spec& spec) {
           return fmt::format("a block of {} that each step keeps",
                              format_bytes(leaked_bytes(spec)));
         },
     .create = [](const Spec& spec, Allocator& allocator) -> std::unique_ptr<Injection> {
       return std::make_unique<Leak>(leaked_bytes(spec), allocator);
     }});

}  // namespace
}  // namespace headroom
