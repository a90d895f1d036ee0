// Watched figures as JSON, one line each; reports/schema.json describes them.
#pragma once

#include <string>
#include <vector>

#include "harness/watch/watch_summary.h"

namespace headroom {

std::string to_json(const WatchSample& sample);

struct WatchHeader {
  std::vector<std::string> command;  // empty: a process that was already running
  pid_t pid = 0;
  std::string started;  // UTC
  WatchPlan plan;
  LeakOptions leak;
};
// `record` and `summary` are null while watching goes on.
std::string to_json(const WatchHeader& header, const WatchRecord* record,
                    const WatchSummary* summary);

}  // namespace headroom
