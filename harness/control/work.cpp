// work: every step does a fixed amount of additional work of one kind. Unlike `slowdown`, which
// waits for a share of the step, its cost depends on caches and on the memory system. It shows
// whether configurations that take turns are measured as they are alone
// (bench/statistics/turns.cpp).
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/control/injection.h"

namespace headroom {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kStream = 64 * kMebibyte;  // beyond the caches of a core

struct WorkKind {
  const char* name;
  const char* unit;
};
constexpr WorkKind kArithmetic = {"arithmetic", "thousand dependent multiplications"};
constexpr WorkKind kFaults = {"faults", "pages mapped, touched and given back"};
constexpr WorkKind kBandwidth = {"bandwidth", "KiB copied in main memory"};

const WorkKind& work_kind_of(const Spec& spec) {
  const std::string by = spec.text("by", kArithmetic.name);
  for (const WorkKind* kind : {&kArithmetic, &kFaults, &kBandwidth})
    if (by == kind->name) return *kind;
  throw InputError(fmt::format("{}: by must be {}, {} or {}", spec.to_string(), kArithmetic.name,
                               kFaults.name, kBandwidth.name));
}

std::size_t work_amount_of(const Spec& spec) {
  const double amount = spec.number("amount", 100);
  if (!(amount >= 1 && amount <= 1e6))
    throw InputError(
        fmt::format("{}: amount must be at least 1 and at most 1000000", spec.to_string()));
  return static_cast<std::size_t>(amount);
}

// Returns how many steps work after as many have rested; 0 if every step works.
std::size_t work_alternates_of(const Spec& spec) {
  const std::int64_t steps = spec.integer("alternate", 0);
  if (steps < 0 || steps > 1000)
    throw InputError(fmt::format("{}: alternate must be from 0 to 1000", spec.to_string()));
  return static_cast<std::size_t>(steps);
}

class Work final : public Injection {
 public:
  Work(const WorkKind& kind, std::size_t amount, std::size_t alternate)
      : kind_(kind), amount_(amount), alternate_(alternate) {
    if (&kind_ == &kBandwidth) stream_.assign(kStream, 1);
  }

  void end_step(std::chrono::nanoseconds) override {
    const std::size_t step = steps_++;
    if (alternate_ > 0 && step / alternate_ % 2 == 0) return;
    if (&kind_ == &kArithmetic) multiply();
    if (&kind_ == &kFaults) touch_pages();
    if (&kind_ == &kBandwidth) copy();
  }

  Reason why_not_engaged() const override {
    return unless(done_ > 0, "work: no step that works ended, so no work was added");
  }

 private:
  void multiply() {
    std::uint64_t x = done_ + 1;
    for (std::size_t i = 0; i < 1000 * amount_; ++i)
      x = x * 6364136223846793005U + 1442695040888963407U;
    done_ += 1 + (x & 1);  // used, so that the loop stays
  }

  void touch_pages() {
    const std::size_t bytes = amount_ * kPage;
    void* place =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw Error(fmt::format("work: cannot map {} bytes", bytes));
    ::madvise(place, bytes, MADV_NOHUGEPAGE);
    auto* first = static_cast<volatile char*>(place);
    for (std::size_t page = 0; page < amount_; ++page) first[page * kPage] = 1;
    ::munmap(place, bytes);
    ++done_;
  }

  // Copies from one half of the stream to the other, continuing where the last step ended.
  void copy() {
    constexpr std::size_t kHalf = kStream / 2;
    for (std::size_t left = amount_ * 1024; left > 0;) {
      const std::size_t part = std::min(left, kHalf - at_);
      std::memcpy(stream_.data() + kHalf + at_, stream_.data() + at_, part);
      at_ = (at_ + part) % kHalf;
      left -= part;
    }
    ++done_;
  }

  const WorkKind& kind_;
  std::size_t amount_;
  std::size_t alternate_;
  std::size_t steps_ = 0;
  std::uint64_t done_ = 0;
  std::vector<char> stream_;
  std::size_t at_ = 0;
};

const bool work_registered = Registry<InjectionKind>::instance().add(
    {.name = "work",
     .summary = "Each step does a fixed amount of arithmetic, page faults or memory traffic more; "
                "with alternate=8, eight steps rest, then eight work, and so on",
     .parameters = {"by", "amount", "alternate"},
     .examples = {"work", "work(amount=300,by=faults)", "work(amount=1000,by=bandwidth)"},
     .metric = "steady_step_time_ns",
     .shows = InjectionKind::Shows::ratio,
     .text =
         [](const Spec& spec) {
           const std::size_t alternate = work_alternates_of(spec);
           return fmt::format(
               "{} {} more in each step{}", work_amount_of(spec), work_kind_of(spec).unit,
               alternate == 0 ? "" : fmt::format(" of every second {} steps", alternate));
         },
     .create = [](const Spec& spec, Allocator&) -> std::unique_ptr<Injection> {
       return std::make_unique<Work>(work_kind_of(spec), work_amount_of(spec),
                                     work_alternates_of(spec));
     }});

}  // namespace
}  // namespace headroom
