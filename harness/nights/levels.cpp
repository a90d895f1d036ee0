#include "harness/nights/levels.h"

#include <cmath>
#include <unordered_map>

#include "harness/stats/change_points.h"
#include "harness/stats/multiplicity.h"
#include "harness/stats/verdict.h"

namespace headroom {
namespace {

constexpr double kFalseDiscoveries = 0.05;

struct LevelSeries {
  std::vector<const Night*> nights;
  std::vector<double> values;  // logarithms, more is worse
};

std::string identity_of(const NightCell& cell) {
  return cell.experiment + "\n" + cell.arm + "\n" + cell.cell_id + "\n" + cell.rules;
}

using CellsByName = std::unordered_map<std::string, const NightCell*>;

CellsByName by_name(const Night& night) {
  CellsByName cells;
  for (const NightCell& cell : night.cells) cells.emplace(identity_of(cell), &cell);
  return cells;
}

double orientation(const Metric& metric) { return metric.better == Metric::Better::less ? 1 : -1; }

LevelSeries series_of(const std::vector<const Night*>& nights,
                      const std::vector<CellsByName>& cells, const std::string& identity,
                      const Metric& metric, const std::string& since) {
  LevelSeries series;
  for (std::size_t i = 0; i < nights.size(); ++i) {
    if (nights[i]->started < since) continue;
    const auto cell = cells[i].find(identity);
    if (cell == cells[i].end()) continue;
    const auto value = cell->second->noisy.find(metric.name);
    if (value == cell->second->noisy.end()) continue;
    series.nights.push_back(nights[i]);
    series.values.push_back(orientation(metric) * std::log(value->second));
  }
  return series;
}

// The trusted nights of the latest uninterrupted period in the judged night's environment.
std::vector<const Night*> comparable(const std::vector<Night>& nights) {
  std::vector<const Night*> found;
  for (auto night = nights.rbegin();
       night != nights.rend() && night->environment_id == nights.back().environment_id; ++night)
    if (night->distrust.empty()) found.insert(found.begin(), &*night);
  return found;
}

}  // namespace

std::vector<Shift> shifts_of(const std::vector<Night>& nights, const AcceptedState& state) {
  const Night& judged = nights.back();
  const std::vector<const Night*> looked_at = comparable(nights);
  std::vector<CellsByName> cells;
  for (const Night* night : looked_at) cells.push_back(by_name(*night));

  std::vector<Shift> shifts;
  std::vector<double> p;
  for (const NightCell& cell : judged.cells) {
    const AcceptedCell* accepted = state.find(judged, cell);
    const std::string since = accepted == nullptr ? "" : accepted->levels_since;
    for (const auto& [name, value] : cell.noisy) {
      const Metric& metric = find_metric(name);
      const LevelSeries series = series_of(looked_at, cells, identity_of(cell), metric, since);
      const auto shift = latest_shift(series.values);
      p.push_back(shift ? shift->p : 1);
      Shift found{.cell = &cell, .metric = &metric};
      if (shift) {
        found.before = std::exp(orientation(metric) * shift->best);
        found.after = std::exp(orientation(metric) * shift->last);
        found.first_night = series.nights[shift->since]->night_id;
        found.previous_night = series.nights[shift->since - 1]->night_id;
        found.worse = shift->last > shift->best;
      }
      shifts.push_back(found);
    }
  }
  const std::vector<double> adjusted = benjamini_hochberg_adjusted(p);
  std::vector<Shift> staying;
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    shifts[i].p = adjusted[i];
    if (shifts[i].first_night.empty() || adjusted[i] > kFalseDiscoveries) continue;
    if (std::abs(std::log(shifts[i].after / shifts[i].before)) <= std::log1p(kNoisyMargin))
      continue;
    staying.push_back(shifts[i]);
  }
  return staying;
}

}  // namespace headroom
