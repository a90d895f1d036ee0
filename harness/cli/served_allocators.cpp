#include "harness/cli/served_allocators.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/memory/served_allocator_check.h"

namespace headroom {

void check_served_allocators(const std::vector<std::string>& allocators, Bytes capacity) {
  for (const std::string& text : allocators) {
    try {
      check_served_allocator(Spec::parse_composition(text), capacity);
    } catch (const InputError& error) {
      throw InputError(fmt::format("--allocator: {}", error.what()));
    }
  }
}

}  // namespace headroom
