// Rules `dense`: every value takes exactly the bytes of its elements, so that a trace depends on no
// library and no machine. There are no workspaces, padding or reorders. Assumption: max_pool keeps
// one byte per output element to locate the maximum in the backward pass.
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/lowering/lowering.h"

namespace headroom::dense_lowering {
namespace {

Program lower_dense(Program program, PersistentLayouts& persistent, const Spec&) {
  for (Value& value : program.values) {
    value.bytes = static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype);
    value.layout.clear();
    if (!value.persistent) continue;
    const Value& first = persistent.try_emplace(value.name, value).first->second;
    if (first.shape != value.shape || first.dtype != value.dtype)
      throw Error(fmt::format("'{}' is {} in one Program and {} in another", value.name,
                              to_string(first.shape), to_string(value.shape)));
    if (!first.layout.empty())
      throw Error(fmt::format("'{}' already has a layout of other rules", value.name));
  }
  return program;
}

const bool registered = Registry<LoweringRules>::instance().add(
    {.name = "dense",
     .summary = "Plain sizes: the product of the shape, without a library, reorders or workspaces",
     .identity = [](const Spec&) { return std::string("dense"); },
     .lower = lower_dense});

}  // namespace
}  // namespace headroom::dense_lowering
