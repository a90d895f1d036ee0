#include "harness/program/ops/rules.h"

namespace headroom::hold_op {
namespace {

const bool hold = Registry<OpDefinition>::instance().add(
    {.name = "hold",
     .summary = "any values: they live until here, and nothing is computed",
     .infer = [](const Op&, std::span<const Value>) { return std::vector<Value>{}; }});

}  // namespace
}  // namespace headroom::hold_op
