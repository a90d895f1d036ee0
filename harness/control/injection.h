// An effect put into a cell on purpose, so that the instrument can be seen to see it: the seam
// that positive controls plug into. The axis `inject` of a Cell names one; the effect is really
// there (time passes, blocks are held), never written into the figures.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/memory/allocator.h"

namespace headroom {

// Acts inside training steps, on the allocator of the cell it is in.
class Injection {
 public:
  virtual ~Injection() = default;  // gives back what it holds
  // An op has computed; its outputs are live, what it used for the last time is not given back yet.
  virtual void after_op() {}
  // The step has done all of its own work, in the time given. What passes here belongs to the step.
  virtual void end_step(std::chrono::nanoseconds own_time) { static_cast<void>(own_time); }
  // Why nothing was put in after all; "" = it was.
  virtual std::string why_not_engaged() const = 0;
};

struct InjectionKind {
  static constexpr std::string_view kKind = "injection";
  // How the metric must show the effect: as a ratio to the clean arm, or as a difference from it.
  enum class Shows { ratio, difference };

  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;
  std::string metric;  // the figure that must rise
  Shows shows = Shows::difference;
  std::function<std::string(const Spec&)> text;  // what is put in: "64 KiB held more each step"
  std::function<std::unique_ptr<Injection>(const Spec&, Allocator&)> create;
};

// The axis value of a cell without one.
inline constexpr const char* kNoInjection = "none";

// Throws InputError for an unknown name or parameter. Null for `none`.
std::unique_ptr<Injection> make_injection(const Spec& spec, Allocator& allocator);
void check_injection(const Spec& spec);

}  // namespace headroom
