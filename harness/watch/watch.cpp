#include "harness/watch/watch.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "harness/base/duration.h"

namespace headroom {
namespace {

constexpr std::chrono::seconds kGrace{5};
// PSS is read again only after this many times the duration of the last reading.
constexpr int kProportionalShare = 10;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

double own_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

class Watcher {
 public:
  Watcher(ProcessTree& tree, const WatchPlan& plan) : tree_(tree), plan_(plan) {
    gpu_ = GpuMemory::open(no_gpu_);
  }
  const std::string& no_gpu() const { return no_gpu_; }

  WatchSample take() {
    WatchSample sample = look(Clock::now() >= next_proportional_);
    // Shared pages, which RSS counts in each process, must not be reported as a breach.
    if (plan_.budget && !sample.proportional && sample.resident > *plan_.budget)
      sample = look(true);
    return sample;
  }

  std::optional<BudgetBreach> breach_of(const WatchSample& sample) const {
    if (!plan_.budget || sample.processes.empty()) return std::nullopt;
    const ProcessUsage& largest =
        *std::max_element(sample.processes.begin(), sample.processes.end(),
                          [](const auto& a, const auto& b) { return a.resident < b.resident; });
    if (sample.charged() > *plan_.budget)
      return BudgetBreach{sample.time_s, sample.charged(), false, largest};
    const ProcessUsage& highest = *std::max_element(
        sample.processes.begin(), sample.processes.end(),
        [](const auto& a, const auto& b) { return a.high_water_mark < b.high_water_mark; });
    if (highest.high_water_mark > *plan_.budget)
      return BudgetBreach{sample.time_s, highest.high_water_mark, true, highest};
    return std::nullopt;
  }

 private:
  WatchSample look(bool proportional) {
    const Clock::time_point now = Clock::now();
    WatchSample sample;
    sample.time_s = seconds(now - begin_);
    sample.processes = tree_.read(proportional ? Proportional::read : Proportional::left_out);
    if (proportional) next_proportional_ = now + kProportionalShare * (Clock::now() - now);
    Bytes shared_out = 0;
    bool known = false;
    std::vector<pid_t> pids;
    for (const ProcessUsage& process : sample.processes) {
      sample.resident += process.resident;
      sample.swapped += process.swapped;
      // A process that is ending or cannot be read counts with its full RSS.
      shared_out += process.proportional.value_or(process.resident);
      known = known || process.proportional.has_value();
      pids.push_back(process.pid);
    }
    if (known) sample.proportional = shared_out;
    if (gpu_) sample.gpu = gpu_->read(pids);
    return sample;
  }

  ProcessTree& tree_;
  const WatchPlan& plan_;
  std::unique_ptr<GpuMemory> gpu_;
  std::string no_gpu_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_proportional_ = begin_;
};

void signal_all(const std::vector<ProcessUsage>& processes, int signal) {
  for (const ProcessUsage& process : processes) ::kill(process.pid, signal);
}

// Kills and reaps the processes that the command left behind; returns those still alive after the
// grace period.
std::vector<ProcessUsage> kill_the_rest(ForeignProcess& process, ProcessTree& tree) {
  const Clock::time_point end = Clock::now() + kGrace;
  for (;;) {
    std::vector<ProcessUsage> left = tree.read(Proportional::left_out);
    signal_all(left, SIGKILL);
    const bool all_buried = !process.reap() && left.empty();
    if (all_buried || Clock::now() >= end) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

WatchRecord watch(ForeignProcess& process, ProcessTree& tree, const WatchPlan& plan,
                  const OnSample& on_sample, const OnBreach& on_breach) {
  WatchRecord record;
  Watcher watcher(tree, plan);
  record.no_gpu = watcher.no_gpu();
  const Clock::time_point begin = Clock::now();
  const double cpu_before = own_cpu_s();
  std::optional<Clock::time_point> kill_at;
  for (Clock::time_point next = begin;;) {
    const WatchSample sample = watcher.take();
    on_sample(sample);
    const bool was_within = !record.breach;
    if (was_within) record.breach = watcher.breach_of(sample);
    if (was_within && record.breach) {
      on_breach(*record.breach);
      if (plan.stop_over_budget) {
        signal_all(sample.processes, SIGTERM);
        kill_at = Clock::now() + kGrace;
      }
    }
    if (kill_at && Clock::now() >= *kill_at) signal_all(sample.processes, SIGKILL);
    // Missed polls are not repeated.
    next = std::max(next + plan.interval, Clock::now());
    if (process.wait_until(next) != ForeignProcess::Event::time_is_up) break;
  }
  record.duration_s = seconds_since(begin);
  record.own_cpu_s = own_cpu_s() - cpu_before;
  record.end = process.end();
  if (kill_at)
    record.left_behind = kill_the_rest(process, tree);
  else if (record.end.known)
    record.left_behind = tree.read(Proportional::left_out);
  return record;
}

}  // namespace headroom
