#include "harness/planning/instance.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

namespace headroom {
namespace {

struct Measures {
  double size, lifetime, area, total;
};

std::tuple<double, double, double> key_of(RankOrder order, const Measures& m) {
  switch (order) {
    case RankOrder::lifetime_area_total:
      return {-m.lifetime, -m.area, -m.total};
    case RankOrder::lifetime_total_area:
      return {-m.lifetime, -m.total, -m.area};
    case RankOrder::total_area_lifetime:
      return {-m.total, -m.area, -m.lifetime};
    case RankOrder::total_lifetime_area:
      return {-m.total, -m.lifetime, -m.area};
    case RankOrder::area_total_lifetime:
      return {-m.area, -m.total, -m.lifetime};
    case RankOrder::size_lifetime_total:
      return {-m.size, -m.lifetime, -m.total};
  }
  return {};
}

}  // namespace

PlanInstance make_instance(const std::vector<PlanBuffer>& buffers,
                           const std::vector<PlanIndex>& chosen) {
  struct Moment {
    std::int64_t time;
    bool begins;
    PlanIndex buffer;
  };
  std::vector<Moment> moments;
  for (PlanIndex i = 0; i < chosen.size(); ++i) {
    for_each_piece(buffers[chosen[i]], [&](const PlanPiece& piece) {
      moments.push_back({piece.lower, true, i});
      moments.push_back({piece.upper, false, i});
    });
  }
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    return std::tie(a.time, a.begins, a.buffer) < std::tie(b.time, b.begins, b.buffer);
  });
  PlanInstance instance;
  instance.sections_of.resize(chosen.size());
  std::vector<PlanIndex> since(chosen.size());
  // A section closes at the first buffer end that follows a buffer begin.
  PlanIndex section = 0;
  bool begun = false;
  for (const Moment& moment : moments) {
    if (moment.begins) {
      since[moment.buffer] = section;
      begun = true;
    } else {
      if (begun) ++section;
      begun = false;
      for (PlanIndex s = since[moment.buffer]; s < section; ++s)
        instance.sections_of[moment.buffer].push_back(s);
    }
  }
  instance.members.resize(section);
  for (PlanIndex i = 0; i < chosen.size(); ++i) {
    instance.first.push_back(instance.sections_of[i].front());
    instance.last.push_back(instance.sections_of[i].back());
    instance.size.push_back(buffers[chosen[i]].size);
    instance.alignment.push_back(buffers[chosen[i]].alignment);
    instance.fixed.push_back(buffers[chosen[i]].offset);
    for (const PlanIndex s : instance.sections_of[i]) instance.members[s].push_back(i);
  }
  instance.neighbours.resize(chosen.size());
  std::vector<PlanIndex> seen(chosen.size(), std::numeric_limits<PlanIndex>::max());
  for (PlanIndex i = 0; i < chosen.size(); ++i) {
    for (const PlanIndex s : instance.sections_of[i]) {
      for (const PlanIndex j : instance.members[s]) {
        if (j == i || seen[j] == i) continue;
        seen[j] = i;
        instance.neighbours[i].push_back(j);
      }
    }
  }
  return instance;
}

std::vector<PlanIndex> ranks(const PlanInstance& instance, RankOrder order, std::uint32_t shuffle) {
  std::vector<Bytes> section_total(instance.sections());
  for (std::size_t s = 0; s < instance.sections(); ++s)
    for (const PlanIndex i : instance.members[s]) section_total[s] += instance.size[i];
  std::mt19937 random(shuffle);
  std::uniform_real_distribution<double> factor(0.7, 1.0 / 0.7);
  std::vector<std::tuple<double, double, double>> keys(instance.buffers());
  for (PlanIndex i = 0; i < instance.buffers(); ++i) {
    const double noise = shuffle == 0 ? 1 : factor(random);
    const double lifetime = noise * (instance.last[i] - instance.first[i] + 1);
    const double area = lifetime * static_cast<double>(instance.size[i]);
    double total = 0;
    for (const PlanIndex s : instance.sections_of[i])
      total = std::max(total, static_cast<double>(section_total[s]));
    keys[i] = key_of(order, {.size = noise * static_cast<double>(instance.size[i]),
                             .lifetime = lifetime,
                             .area = area,
                             .total = noise * total});
  }
  std::vector<PlanIndex> by_key(instance.buffers());
  std::iota(by_key.begin(), by_key.end(), PlanIndex{0});
  std::stable_sort(by_key.begin(), by_key.end(),
                   [&](PlanIndex a, PlanIndex b) { return keys[a] < keys[b]; });
  std::vector<PlanIndex> rank(instance.buffers());
  for (PlanIndex i = 0; i < by_key.size(); ++i) rank[by_key[i]] = i;
  return rank;
}

}  // namespace headroom
