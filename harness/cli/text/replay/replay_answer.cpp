#include "harness/cli/text/replay/replay_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/cli/text/oom_text.h"
#include "harness/cli/text/print.h"

namespace headroom {
namespace {

constexpr const char* kPyTorch = "caching";

Bytes reserved(const Tried& one) { return one.outcome.ledger.reserved.overall_peak; }

// Orders the rows: settings of PyTorch, settings of TensorFlow, then strategies that neither has.
int rank(const Tried& one) {
  const std::string setting = framework_setting(one.allocator);
  if (setting.starts_with("PYTORCH")) return 0;
  return setting.empty() ? 2 : 1;
}

void print_rows(const std::vector<const Tried*>& rows) {
  std::set<std::string> told;  // two parameters may stand for one setting
  for (const Tried* one : rows) {
    const std::string setting = framework_setting(one->allocator);
    if (!setting.empty() && !told.insert(setting).second) continue;
    out::print(
        "  {:<62} {:>11}\n",
        setting.empty() ? one->allocator.to_string() + " (a strategy of Headroom's)" : setting,
        format_bytes(reserved(*one)));
  }
}

}  // namespace

std::string framework_setting(const Spec& allocator) {
  if (!allocator.inner().empty()) return "";
  const std::string& name = allocator.name();
  if (name == "expandable") return "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
  if (name == "bfc")
    return allocator.flag("growth", false) ? "TF_FORCE_GPU_ALLOW_GROWTH=true"
                                           : "TensorFlow's default";
  if (name == "async") return "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync";
  if (name != kPyTorch) return "";
  std::vector<std::string> words;
  for (const auto& [key, value] : allocator.parameters()) {
    if (key == "max_split_size")
      words.push_back(fmt::format("max_split_size_mb:{}", allocator.bytes(key, 0) / kMiB));
    else if (key != "fraction")  // set by a call, not by the variable
      words.push_back(fmt::format("{}:{}", key, value));
  }
  if (words.empty()) return "PyTorch's default";
  return fmt::format("PYTORCH_CUDA_ALLOC_CONF={}", fmt::join(words, ","));
}

void print_replay_answer(const std::vector<Tried>& tried, const ReplayDevice& device,
                         Bytes peak_live) {
  const std::string capacity = format_bytes(device.capacity);
  const auto usual = std::find_if(tried.begin(), tried.end(), [](const Tried& one) {
    return one.allocator.to_string() == kPyTorch;
  });
  if (usual == tried.end()) return;
  const bool served = !usual->outcome.failure;
  if (served)
    out::print("YES: PyTorch's caching allocator serves it in {}, with {} reserved at the peak.\n",
               capacity, format_bytes(reserved(*usual)));
  else
    out::print("NO: PyTorch's caching allocator does not serve it in {}: {}", capacity,
               failure_text(*usual->outcome.failure));
  if (peak_live > device.capacity) {
    out::print("No allocator can: {} were live at once. The training step itself must need less.\n",
               format_bytes(peak_live));
    return;
  }
  std::vector<const Tried*> better;
  for (const Tried& one : tried)
    if (!one.outcome.failure && (!served || reserved(one) < reserved(*usual)))
      better.push_back(&one);
  std::sort(better.begin(), better.end(), [](const Tried* a, const Tried* b) {
    return std::pair(rank(*a), reserved(*a)) < std::pair(rank(*b), reserved(*b));
  });
  if (better.empty()) {
    out::print("{}\n",
               served ? "No other strategy reserves less." : "No other strategy serves it.");
    return;
  }
  out::print("{}, with the memory reserved at the peak:\n",
             served ? "What reserves less" : "What would serve it");
  print_rows(better);
}

}  // namespace headroom
