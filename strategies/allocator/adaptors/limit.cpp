// limit: refuses requests that would raise the bytes in use above a limit, however much the device
// still has. Follows RMM's limiting_resource_adaptor: requests count rounded up to 256 bytes; the
// cache of the strategy behind does not count. Cost: an addition per request.
#include <fmt/format.h>

#include "harness/base/registry.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"

namespace headroom {
namespace {

class Limit final : public ForwardingAllocator {
 public:
  Limit(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory), limit_(spec.bytes("value", 0)) {
    if (limit_ == 0) throw InputError("limit: give the bytes, as in limit(4GiB)|caching");
    name_ = fmt::format("limit({})", spec.text("value", ""));
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes > limit_ || align_up(bytes, kBlockAlignment) > limit_ - in_use_) refuse(bytes, name_);
    const Block block = inner().allocate(bytes, hint);
    in_use_ += align_up(block.requested, kBlockAlignment);
    return block;
  }

  void deallocate(const Block& block) override {
    inner().deallocate(block);
    in_use_ -= align_up(block.requested, kBlockAlignment);
  }

 private:
  Bytes limit_;
  Bytes in_use_ = 0;  // never above limit_
  std::string name_;
};

const bool limit_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "limit",
     .summary = "Refuses requests that would bring the bytes in use above the limit (RMM's rules)",
     .parameters = {"value"},
     .examples = {"limit(64MiB)|caching"},
     .create = create_adaptor<Limit>});

}  // namespace
}  // namespace headroom
