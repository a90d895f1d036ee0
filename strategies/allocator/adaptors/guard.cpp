// guard: a budget per scope. `guard(backward=2GiB)` refuses a request in the backward phase that
// would raise all live bytes above 2 GiB; `guard(activation=1GiB)` refuses one that would raise the
// bytes of activations above 1 GiB. Scopes are phases and roles. The budget limits the exact peak,
// because every request is seen. The run ends out of memory and names the scope. Cost: two
// additions per request.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "harness/base/registry.h"
#include "harness/program/op.h"
#include "harness/program/value.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"

namespace headroom {
namespace {

template <typename Scope, int count>
class Budgets {
 public:
  explicit Budgets(const Spec& spec) {
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      const std::string name(to_string(static_cast<Scope>(i)));
      if (spec.has(name)) limits_[i] = spec.bytes(name, 0);
    }
  }

  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.emplace_back(to_string(static_cast<Scope>(i)));
    return all;
  }

  bool is_broken_by(Scope scope, Bytes held, Bytes more) const {
    const auto& limit = limits_.at(static_cast<std::size_t>(scope));
    return limit && (held > *limit || more > *limit - held);
  }
  Bytes of(Scope scope) const { return *limits_.at(static_cast<std::size_t>(scope)); }

 private:
  std::array<std::optional<Bytes>, count> limits_;
};

using PhaseBudgets = Budgets<Phase, kPhaseCount>;
using RoleBudgets = Budgets<Role, kRoleCount>;

class Guard final : public ForwardingAllocator {
 public:
  Guard(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory), phases_(spec), roles_(spec) {
    if (spec.parameters().empty())
      throw InputError(
          "guard: name a budget, as in guard(backward=2GiB)|caching or guard(activation=1GiB)|bfc");
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    Bytes& of_role = by_role_.at(static_cast<std::size_t>(hint.role));
    if (phases_.is_broken_by(hint.phase, total_, bytes))
      break_budget(to_string(hint.phase), phases_.of(hint.phase), total_, bytes);
    if (roles_.is_broken_by(hint.role, of_role, bytes))
      break_budget(to_string(hint.role), roles_.of(hint.role), of_role, bytes);
    Block block = inner().allocate(bytes, hint);
    block.role = hint.role;
    of_role += block.requested;
    total_ += block.requested;
    return block;
  }

  void deallocate(const Block& block) override {
    inner().deallocate(block);
    by_role_.at(static_cast<std::size_t>(block.role)) -= block.requested;
    total_ -= block.requested;
  }

 private:
  [[noreturn]] void break_budget(std::string_view scope, Bytes budget, Bytes held,
                                 Bytes bytes) const {
    refuse(bytes, fmt::format("guard: {} may hold {} and holds {}", scope, format_bytes(budget),
                              format_bytes(held)));
  }

  PhaseBudgets phases_;
  RoleBudgets roles_;
  std::array<Bytes, kRoleCount> by_role_{};
  Bytes total_ = 0;
};

std::vector<std::string> scopes() {
  std::vector<std::string> names = PhaseBudgets::names();
  const std::vector<std::string> roles = RoleBudgets::names();
  names.insert(names.end(), roles.begin(), roles.end());
  return names;
}

const bool guard_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "guard",
     .summary = "Sets a budget for each phase or role. A request that exceeds it ends the run as "
                "out of memory; the message names the phase or role",
     .parameters = scopes(),
     .examples = {"guard(activation=1GiB,backward=2GiB)|bfc(growth=on)"},
     .create = create_adaptor<Guard>});

}  // namespace
}  // namespace headroom
