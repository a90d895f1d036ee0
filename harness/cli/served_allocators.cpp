#include "harness/cli/served_allocators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"

namespace headroom {
namespace {

// They decide by the role, phase or name of a request. No framework tells its allocator any.
constexpr std::array kNeedPurpose = {"guard", "partition"};

void require_no_purpose(const Spec& element) {
  if (std::find(kNeedPurpose.begin(), kNeedPurpose.end(), element.name()) != kNeedPurpose.end())
    throw NotSupported(
        fmt::format("{} needs the role, phase or module of each request, which PyTorch does not "
                    "tell its allocator; leave it out",
                    element.name()));
}

void check(const Spec& spec, DeviceMemory& memory) {
  static_cast<void>(make_allocator(spec, memory));
  require_no_purpose(spec);
  for (const Spec& element : spec.inner()) require_no_purpose(element);
}

}  // namespace

void check_served_allocators(const std::vector<std::string>& allocators, Bytes capacity) {
  const auto device = make_device(Spec("meta", {{"capacity", std::to_string(capacity)}}));
  for (const std::string& text : allocators) {
    try {
      check(Spec::parse_composition(text), device->memory());
    } catch (const InputError& error) {
      throw InputError(fmt::format("--allocator: {}", error.what()));
    }
  }
}

}  // namespace headroom
