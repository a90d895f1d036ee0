// An experiment compares configurations in blocks. Suites and claims define experiments. Their
// files, and result files, call a named configuration an arm; the report calls it a variant.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/cell.h"

namespace headroom {

struct Arm {
  std::string name;
  Cell cell;
  std::string program = {};  // path of the headroom binary that runs it; "" = this one
};

enum class ExperimentKind {
  comparison,  // compares strategies
  control,     // tests the instrument: a configuration against itself or with injected effects
};

struct Experiment {
  std::string id;         // "S02/v100/batch=32": unique in a run, stable between runs
  std::string origin;     // suite name or claim id
  std::string point;      // value of the sweep parameter, "" without a sweep
  std::vector<Arm> arms;  // the first is the baseline unless a claim part says otherwise
  int blocks = 1;         // each runs every configuration once, in random order, in new processes
  int max_blocks = 0;     // limit to which noisy pilots may raise `blocks`; 0 = they may not
  int timeout_s = 300;    // per sample
  // Estimated time of one sample, for showing the time left; 0 if unknown.
  double estimated_seconds = 0;
  ExperimentKind kind = ExperimentKind::comparison;
};

}  // namespace headroom
