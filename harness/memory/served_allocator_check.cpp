#include "harness/memory/served_allocator_check.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "harness/base/error.h"
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

}  // namespace

void check_served_allocator(const Spec& spec, Bytes capacity) {
  const auto device = make_device(Spec("meta", {{"capacity", std::to_string(capacity)}}));
  static_cast<void>(make_allocator(spec, device->memory()));
  require_no_need(spec);
  for (const Spec& element : spec.inner()) require_no_need(element);
}

}  // namespace headroom
