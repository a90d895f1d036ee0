#include "harness/cli/served_allocators.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"

namespace headroom {
namespace {

struct Need {
  std::string_view allocator, what;
};
// What PyTorch does not tell its allocator.
constexpr std::array<Need, 3> kNeeds = {{{"guard", "the role and phase of each request"},
                                         {"partition", "the module of each request"},
                                         {"planned", "which blocks outlast a step"}}};

void require_no_need(const Spec& element) {
  for (const auto& [allocator, what] : kNeeds)
    if (element.name() == allocator)
      throw NotSupported(fmt::format(
          "{} needs to know {}, which PyTorch does not tell its allocator; name another", allocator,
          what));
}

void check(const Spec& spec, DeviceMemory& memory) {
  static_cast<void>(make_allocator(spec, memory));
  require_no_need(spec);
  for (const Spec& element : spec.inner()) require_no_need(element);
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
