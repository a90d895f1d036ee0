// shared_devices: several real processes train on simulated cards whose memory they share. Each
// process takes its allocator's segments from a budget in shared memory. A process starts after the
// previous one has trained its steps; that one then waits and keeps its memory, so that the outcome
// is deterministic. visible=all: every process sees all cards and, as frameworks do, trains on the
// first; visible=own: process i sees card i alone.
//
// Each card is as large as the cell's device, which must be meta; nothing is computed. How
// processes slow each other down is not modelled.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/plan/scenario.h"
#include "harness/trace/recorder.h"
#include "harness/training/trainer.h"

namespace headroom {
namespace {

using Budget = std::atomic<Bytes>;  // free bytes of one card

// The memory of one card as one process sees it: memory held by other processes is unavailable.
class CardMemory final : public DeviceMemory {
 public:
  CardMemory(Bytes capacity, Bytes granule, Budget& left)
      : DeviceMemory(capacity, granule), left_(left) {}

  Bytes available() const override { return std::min(DeviceMemory::available(), left_.load()); }

  Segment allocate(Bytes bytes) override {
    const Segment segment = DeviceMemory::allocate(bytes);
    left_ -= segment.charged;
    return segment;
  }
  void free(const Segment& segment) override {
    DeviceMemory::free(segment);
    left_ += segment.charged;
  }

 private:
  Budget& left_;
};

// The cards' budgets, shared by forked processes.
class Cards {
 public:
  Cards(int count, Bytes capacity) : bytes_(static_cast<std::size_t>(count) * sizeof(Budget)) {
    void* place =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) throw DeviceError("shared_devices: no memory to share");
    budgets_ = static_cast<Budget*>(place);
    for (int i = 0; i < count; ++i) new (budgets_ + i) Budget(capacity);
  }
  ~Cards() { ::munmap(budgets_, bytes_); }
  Cards(const Cards&) = delete;
  Cards& operator=(const Cards&) = delete;

  Budget& operator[](int card) { return budgets_[card]; }

 private:
  std::size_t bytes_;
  Budget* budgets_;
};

void write_all(int descriptor, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + at, text.size() - at);
    if (count <= 0) return;  // the reader is gone
    at += static_cast<std::size_t>(count);
  }
}

// Reads one line; "" when the other end is closed.
std::string read_line(int descriptor) {
  std::string line;
  for (char c = 0; ::read(descriptor, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

// Trains, reports the outcome, and holds its memory until told to end.
[[noreturn]] void be_a_process(const Cell& cell, const DeviceMemory& card, Budget& left, int say,
                               int told) {
  const auto idle = make_device(cell.device);
  CardMemory memory(card.capacity(), card.granule(), left);
  try {
    const auto workload = make_workload(cell.workload);
    const TrainingPlan plan = plan_training(*workload, cell, cell.rules);
    const auto allocator = make_allocator(cell.allocator, memory);
    TraceRecorder recorder(0);
    Trainer trainer(plan, *idle, *allocator, recorder, nullptr, 0);
    for (int i = 0; i < cell.warmup_steps + cell.measured_steps; ++i) trainer.step();
    write_all(say, "trained\n");
    read_line(told);
    ::_exit(0);
  } catch (const std::exception& error) {
    std::string text = error.what();
    for (char& c : text)
      if (c == '\n') c = ' ';
    write_all(say, text + "\n");
  }
  ::_exit(1);
}

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw DeviceError("shared_devices: no pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    ::close(read_end);
    if (write_end >= 0) ::close(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write_end() { ::close(std::exchange(write_end, -1)); }
};

ScenarioResult share_devices(const Cell& cell, std::uint64_t) {
  const int processes = static_cast<int>(cell.scenario.integer("processes", 2));
  const bool all_visible = cell.scenario.text("visible", "all") == "all";
  const auto card = make_device(cell.device);
  if (card->computes())
    throw NotSupported("shared_devices: cards are simulated; the device must be meta");
  Cards cards(processes, card->memory().capacity());
  Pipe end;  // children block on it until its write end is closed
  std::vector<pid_t> children;
  int trained = 0;
  std::string note;
  for (int i = 0; i < processes; ++i) {
    Pipe answer;
    const pid_t child = ::fork();
    if (child < 0) throw DeviceError("shared_devices: no process");
    if (child == 0) {
      end.close_write_end();
      be_a_process(cell, card->memory(), cards[all_visible ? 0 : i], answer.write_end,
                   end.read_end);
    }
    children.push_back(child);
    answer.close_write_end();
    const std::string said = read_line(answer.read_end);
    if (said == "trained")
      ++trained;
    else
      note += fmt::format("Process {}: {}. ", i + 1, said.empty() ? "it crashed" : said);
  }
  end.close_write_end();
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  return {.figures = {{"trained", static_cast<double>(trained)},
                      {"all_trained", trained == processes ? 1.0 : 0.0}},
          .note = note,
          .why_not_engaged = {}};
}

void check_shared(const Spec& scenario) {
  scenario.require_known({"processes", "visible"});
  const auto processes = scenario.integer("processes", 2);
  if (processes < 1 || processes > 64)
    throw InputError(scenario.to_string() + ": processes must be from 1 to 64");
  const std::string visible = scenario.text("visible", "all");
  if (visible != "all" && visible != "own")
    throw_unknown_name("value of visible", visible, {"all", "own"});
}

const bool shared_devices_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "shared_devices",
     .summary = "Real processes (processes=) train at once on simulated cards; all see every card "
                "(visible=all), or each sees one of its own (visible=own)",
     .parameters = {"processes", "visible"},
     .examples = {"shared_devices(processes=2,visible=own)"},
     .figures = {{.name = "trained",
                  .unit = "1",
                  .text = "processes that train",
                  .exact = true,
                  .more_is_better = true,
                  .depends_on = DependsOn::allocator},
                 {.name = "all_trained",
                  .unit = "1",
                  .text = "all processes train",
                  .exact = true,
                  .more_is_better = true,
                  .depends_on = DependsOn::allocator}},
     .check = check_shared,
     .run = share_devices,
     .engine = nullptr,
     .takes_workload = true});

}  // namespace
}  // namespace headroom
