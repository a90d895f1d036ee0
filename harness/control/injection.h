// An effect injected into a cell to show that the instrument detects it; positive controls
// implement this interface. The axis `inject` of a Cell names it. The effect is real (time passes,
// blocks are held) and is never written into the figures.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/memory/allocator.h"

namespace headroom {

// Acts inside training steps, on the allocator of its cell.
class Injection {
 public:
  virtual ~Injection() = default;  // frees what it holds
  // Called after an op has computed. Its outputs are live, and operands it used for the last time
  // are not yet freed.
  virtual void after_op() {}
  // Called when the step has done its own work, which took `own_time`. Time that passes here counts
  // towards the step.
  virtual void end_step(std::chrono::nanoseconds own_time) { static_cast<void>(own_time); }
  // Why nothing was injected; absent if it was.
  virtual Reason why_not_engaged() const = 0;
};

struct InjectionKind {
  static constexpr std::string_view kKind = "injection";
  // Whether the effect appears as a ratio to training without it, or as a difference from it.
  enum class Shows { ratio, difference };

  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;
  std::string metric;  // the figure that must rise
  Shows shows = Shows::difference;
  std::function<std::string(const Spec&)> text;  // what is injected: "64 KiB held more each step"
  std::function<std::unique_ptr<Injection>(const Spec&, Allocator&)> create;
};

// The axis value of a cell without an injection.
inline constexpr const char* kNoInjection = "none";

// Both throw InputError for an unknown name or parameter. make_injection() returns null for `none`.
std::unique_ptr<Injection> make_injection(const Spec& spec, Allocator& allocator);
void check_injection(const Spec& spec);

}  // namespace headroom
