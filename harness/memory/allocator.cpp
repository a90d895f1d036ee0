#include "harness/memory/allocator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <span>

#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom {
namespace {

const Registry<AllocatorStrategy>& strategies() { return Registry<AllocatorStrategy>::instance(); }
const Registry<AllocatorAdaptor>& adaptors() { return Registry<AllocatorAdaptor>::instance(); }

void check_adaptor(const Spec& composition, const Spec& element) {
  if (strategies().contains(element.name()))
    throw InputError(
        fmt::format("{}: '{}' is a strategy and must come last; what may stand before it: {}",
                    composition.to_string(), element.name(), fmt::join(adaptors().names(), ", ")));
  element.require_known(adaptors().find(element.name()).parameters);
}

void check_strategy(const Spec& composition, const Spec& element) {
  if (adaptors().contains(element.name()))
    throw InputError(fmt::format("{}: '{}' needs a strategy behind it, as in {}|{}",
                                 composition.to_string(), element.name(), composition.to_string(),
                                 strategies().names().front()));
  element.require_known(strategies().find(element.name()).parameters);
}

std::unique_ptr<Allocator> make_element(const Spec& element, std::span<const Spec> behind,
                                        DeviceMemory& memory) {
  if (behind.empty()) return strategies().find(element.name()).create(element, memory);
  const auto make_inner = [behind](DeviceMemory& its_memory) {
    return make_element(behind.front(), behind.subspan(1), its_memory);
  };
  return adaptors().find(element.name()).create(element, make_inner, memory);
}

}  // namespace

void refuse_request(Bytes bytes, const DeviceMemory& memory, const AllocatorStatistics& now,
                    const std::string& allocator) {
  throw OutOfMemory({.requested_bytes = bytes,
                     .capacity_bytes = memory.capacity(),
                     .reserved_bytes = now.reserved,
                     .allocated_bytes = now.allocated,
                     .free_bytes = now.reserved - now.allocated - now.pending,
                     .largest_free_bytes = now.largest_free,
                     .allocator = allocator});
}

void check_allocator(const Spec& spec) {
  if (spec.inner().empty()) return check_strategy(spec, spec);
  check_adaptor(spec, spec);
  for (auto element = spec.inner().begin(); element != spec.inner().end(); ++element) {
    if (std::next(element) == spec.inner().end())
      check_strategy(spec, *element);
    else
      check_adaptor(spec, *element);
  }
}

std::unique_ptr<Allocator> make_allocator(const Spec& spec, DeviceMemory& memory) {
  check_allocator(spec);
  return make_element(spec, spec.inner(), memory);
}

std::vector<std::string> allocator_examples() {
  std::vector<std::string> examples;
  for (const auto& [name, strategy] : strategies().all())
    examples.insert(examples.end(), strategy.examples.begin(), strategy.examples.end());
  for (const auto& [name, adaptor] : adaptors().all())
    examples.insert(examples.end(), adaptor.examples.begin(), adaptor.examples.end());
  return examples;
}

}  // namespace headroom
