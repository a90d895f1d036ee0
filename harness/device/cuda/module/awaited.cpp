#include "harness/device/cuda/module/awaited.h"

#include <map>

#include "harness/base/error.h"

namespace headroom::cuda {

std::vector<std::vector<std::size_t>> awaited_copies(const Program& program) {
  std::vector<std::vector<std::size_t>> awaited(program.ops.size());
  std::map<ValueId, std::size_t> under_way;
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    const Op& op = program.ops[index];
    for (const ValueId id : op.inputs)
      if (const auto found = under_way.find(id); found != under_way.end()) {
        awaited[index].push_back(found->second);
        under_way.erase(found);
      }
    if (op.kind == "copy_in") under_way[op.outputs.front()] = index;
  }
  if (!under_way.empty())
    throw Error("no op reads what " + program.ops[under_way.begin()->second].name + " copies back");
  return awaited;
}

}  // namespace headroom::cuda
