// The answers of headroom gpu and headroom capture, for people and for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/device/meta/cards.h"
#include "harness/virtual_gpu/outcome.h"

namespace headroom {

enum class GpuVerdict { fits, does_not_fit, over_budget, failed, not_supported, no_gpu_used };
std::string_view to_string(GpuVerdict verdict);

// The result of the program with one thing changed: its batch, or a setting.
struct GpuVariant {
  std::string what;
  GpuVerdict verdict = GpuVerdict::fits;
  Bytes peak = 0;
};

// The program with one of Headroom's allocators in place of PyTorch's own.
struct ServedRun {
  std::string allocator;  // "" = PyTorch's own
  GpuVerdict verdict = GpuVerdict::fits;
  Bytes peak_requested = 0, peak_allocated = 0, peak_reserved = 0;  // 0: PyTorch does not count it
  Bytes peak_resident = 0;        // of the process, as the kernel counts it
  std::vector<double> step_us{};  // the median time of a step in each round
  std::string not_engaged;        // why the result does not count under the allocator's name
  std::string output;             // the file that has what the program printed
};

// The figures of the process and device that held most.
ServedRun served_run(const std::string& allocator, GpuVerdict verdict,
                     const virtual_gpu::Outcome& outcome);
// A table; the first of `runs` is PyTorch's own.
std::string to_words(const std::vector<ServedRun>& runs);
nlohmann::ordered_json to_json(const std::vector<ServedRun>& runs);

struct GpuBatchSearch {
  std::string name;                         // how the program is told its batch
  std::int64_t largest = 0;                 // that fits; 0: none of those tried
  std::optional<std::int64_t> too_large{};  // the smallest tried that does not
  std::vector<GpuVariant> tried;
};

// The same program on the machine's own GPU.
struct MeasuredRun {
  int exit_status = 0;
  virtual_gpu::Outcome outcome;  // without a ledger
};

// The result of one program on one card.
struct GpuAnswer {
  const Card* card = nullptr;
  Bytes memory = 0;   // available to the program: the card's without the context
  Bytes context = 0;  // reserved for the CUDA context
  bool context_is_estimated = false;
  std::optional<Bytes> budget;
  bool has_cudnn = false;  // whether the user's own cuDNN chose the workspaces
  int exit_status = 0;     // of the program, as a shell reports it
  virtual_gpu::Outcome outcome;
  std::string directory;  // of the record
  std::optional<GpuBatchSearch> batch{};
  std::vector<std::string> machines{};  // that clouds rent with as many of this card
  std::vector<GpuVariant> settings{};
  std::vector<ServedRun> served{};
  std::optional<MeasuredRun> measured{};
};

GpuVerdict verdict_of(const GpuAnswer& answer);
// The optimizer steps of the process that took most.
int steps_taken(const GpuAnswer& answer);
// A line about one batch or card, printed while the search goes on.
std::string trial_line(const std::string& what, const GpuAnswer& answer, bool served);
// Returns several lines; the first is the answer.
std::string to_words(const GpuAnswer& answer);
// The peaks that the machine's own GPU and the virtual one had; `answer` has a measured run.
std::string comparison_with_measured(const GpuAnswer& answer);
nlohmann::ordered_json measured_to_json(const GpuAnswer& answer);
nlohmann::ordered_json to_json(const GpuAnswer& answer);

// The result of one program on the machine's own GPU, or on its CPU if it has no GPU.
struct CaptureAnswer {
  int exit_status = 0;
  virtual_gpu::Outcome outcome;  // without a ledger
  std::string directory;
  std::vector<ServedRun> served{};
};

bool is_of_cpu(const CaptureAnswer& answer);
// Returns the peak of the device that held most, in reserved bytes, or in allocated bytes if it
// reserves nothing.
Bytes peak_of(const CaptureAnswer& answer);
std::string to_words(const CaptureAnswer& answer);
nlohmann::ordered_json to_json(const CaptureAnswer& answer);

}  // namespace headroom
