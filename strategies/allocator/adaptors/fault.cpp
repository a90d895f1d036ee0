// fault: injects out-of-memory errors, at the nth request or at each with a probability, to test
// that callers handle them. Which requests fail depends on seed and order only, never on time.
// Cost: nothing.
#include <random>

#include "harness/base/registry.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"

namespace headroom {
namespace {

class Fault final : public ForwardingAllocator {
 public:
  Fault(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory),
        nth_(spec.integer("nth", 0)),
        probability_(spec.number("probability", 0)),
        random_(static_cast<std::uint64_t>(spec.integer("seed", 1))) {
    if (spec.has("nth") == spec.has("probability"))
      throw InputError("fault: give either nth or probability, as in fault(nth=100)|caching");
    if (spec.has("nth") && nth_ < 1) throw InputError("fault: nth counts from 1");
    if (!(probability_ >= 0 && probability_ <= 1))
      throw InputError("fault: probability must lie between 0 and 1");
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes > 0) {
      ++requests_;
      const bool unlucky = std::uniform_real_distribution<double>(0, 1)(random_) < probability_;
      if (requests_ == nth_ || unlucky)
        refuse(bytes, "fault, on purpose at request " + std::to_string(requests_));
    }
    return inner().allocate(bytes, hint);
  }

 private:
  std::int64_t nth_;
  double probability_;
  std::mt19937_64 random_;
  std::int64_t requests_ = 0;
};

const bool fault_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "fault",
     .summary = "Refuses requests on purpose: the nth= request, or each with probability= (random "
                "by seed=)",
     .parameters = {"nth", "probability", "seed"},
     .examples = {"fault(probability=0,seed=7)|caching"},
     .create = create_adaptor<Fault>});

}  // namespace
}  // namespace headroom
