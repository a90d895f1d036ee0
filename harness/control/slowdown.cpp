// slowdown: every step busy-waits for a share of the time its own work took. By default it slows
// the step by twice the margin of noisy figures, which a comparison must detect if its "no
// difference" is to mean anything.
#include <fmt/format.h>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/control/injection.h"
#include "harness/stats/verdict.h"

namespace headroom {
namespace {

// (1 + δ)² − 1: twice the margin on the log scale, on which times are compared.
constexpr double kTwiceTheMargin = (1 + kNoisyMargin) * (1 + kNoisyMargin) - 1;

double share_of(const Spec& spec) {
  const double share = spec.number("share", kTwiceTheMargin);
  if (!(share > 0 && share <= 10))
    throw InputError(
        fmt::format("{}: share is of the step's own time and must be above 0 and at most 10",
                    spec.to_string()));
  return share;
}

class Slowdown final : public Injection {
 public:
  explicit Slowdown(double share) : share_(share) {}

  void end_step(std::chrono::nanoseconds own_time) override {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(share_ * own_time);
    while (Clock::now() < end) {
    }
    waited_ = waited_ || own_time.count() > 0;
  }

  Reason why_not_engaged() const override {
    return unless(waited_, "slowdown: no step took any time, so nothing was added");
  }

 private:
  double share_;
  bool waited_ = false;
};

const bool slowdown_is_registered = Registry<InjectionKind>::instance().add(
    {.name = "slowdown",
     .summary = "Each step busy-waits for an additional share of its own time",
     .parameters = {"share"},
     .examples = {"slowdown", "slowdown(share=0.2)"},
     .metric = "steady_step_time_ns",
     .shows = InjectionKind::Shows::ratio,
     .text =
         [](const Spec& spec) {
           return fmt::format("a wait of {:.1f} % of the step's own time", 100 * share_of(spec));
         },
     .create = [](const Spec& spec, Allocator&) -> std::unique_ptr<Injection> {
       return std::make_unique<Slowdown>(share_of(spec));
     }});

}  // namespace
}  // namespace headroom
