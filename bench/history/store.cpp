// Measures how long the history takes at scale: store [NIGHTS [CONFIGURATIONS]], by default 1,000
// nights of 1,000 cells, which need 1 GB in the temporary directory during the run. Half of the
// cells are timed, with noise; the last night has one slower and one larger cell, and the check
// must find both.
#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

#include "harness/base/duration.h"
#include "harness/base/file.h"
#include "harness/nights/check.h"
#include "harness/results/metric.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr double kNoise = 0.02;
constexpr int kSlowNights = 10;

class MadeUpNights {
 public:
  explicit MadeUpNights(int cells) : cells_(cells) {}

  Night make(int number, int of) {
    Night night;
    night.night_id = fmt::format("{:08}T020000Z-benchmark-{:08}", number, number);
    night.run_id = fmt::format("{:08}T020000Z-made-up", number);
    night.suite = "made up";
    night.started = fmt::format("{:08}T020000Z", number);
    night.commit = fmt::format("{:040x}", number);
    night.machine = night.environment_id = "benchmark";
    for (int i = 0; i < cells_; ++i) night.cells.push_back(cell(i, number, of));
    return night;
  }

 private:
  NightCell cell(int i, int number, int of) {
    const bool timed = i % 2 == 0;
    NightCell cell{.experiment = fmt::format("made-up/workload=resnet(batch={},depth=50)", i / 4),
                   .arm = i % 4 < 2 ? "malloc" : "bfc(growth=on)",
                   .cell_id = fmt::format("resnet(batch={},depth=50) cell {}", i / 4, i),
                   .device_class = timed ? "host" : "meta",
                   .rules = "dense",
                   .status = kResult,
                   .why = "",
                   .exact = {},
                   .noisy = {}};
    for (const Metric& metric : metrics())
      if (metric.on_device == Metric::Class::exact) cell.exact[metric.name] = 1e9 + i;
    if (i == 1 && number == of) cell.exact["reserved_bytes.steady_peak"] += 1;
    if (!timed) return cell;
    const double slow = i == 0 && number > of - kSlowNights ? 1.1 : 1;
    for (const std::string& name : watched_metrics())
      cell.noisy[name] = 1e8 * slow * std::exp(kNoise * normal_(random_));
    return cell;
  }

  int cells_;
  std::mt19937_64 random_{20261121};
  std::normal_distribution<double> normal_;
};

double seconds_of(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return seconds_since(begin);
}

int run(int nights, int cells, const fs::path& directory) {
  HistoryStore store(directory);
  MadeUpNights made_up(cells);
  const double first = seconds_of([&] { store.add(made_up.make(1, nights)); });
  std::uintmax_t bytes = 0;
  for (int number = 2; number < nights; ++number) {
    const Night night = made_up.make(number, nights);
    const std::string text = to_json(night);
    bytes += text.size();
    write_file_durably(directory / "nights" / (night.night_id + ".json"), text);
  }
  const Night last = made_up.make(nights, nights);
  const double later = seconds_of([&] { store.add(last); });
  NightCheck check;
  const double checked = seconds_of([&] { check = check_night(store, store.last_night()); });
  fmt::print("{} nights of {} configurations, {:.0f} MB\n", nights, cells,
             static_cast<double>(bytes) / 1e6);
  fmt::print("add: {:.2f} s the first night, {:.2f} s the last\n", first, later);
  fmt::print("check: {:.2f} s; {}\n", checked, check.headline());
  for (const NightFinding& finding : check.failures)
    fmt::print("  {}: {}\n", finding.what, finding.sentence);
  return check.failures.size() == 3 ? 0 : 1;  // one larger, one slower in both watched metrics
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const int nights = argc > 1 ? ::atoi(argv[1]) : 1000;
  const int cells = argc > 2 ? ::atoi(argv[2]) : 1000;
  if (nights < 30 || cells < 4) {
    fmt::print(stderr,
               "store [NIGHTS [CONFIGURATIONS]]: 30 nights and 4 configurations at least\n");
    return 2;
  }
  std::string directory = (fs::temp_directory_path() / "headroom-history-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    fmt::print(stderr, "store: no directory can be made for {}; set TMPDIR\n", directory);
    return 2;
  }
  const int code = headroom::run(nights, cells, directory);
  fs::remove_all(directory);
  return code;
}
