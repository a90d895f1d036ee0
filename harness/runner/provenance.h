// Records what a result depends on besides the cell: program, libraries, machine, environment.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/results/run_info.h"

namespace headroom {

BuildInfo build_info();
std::map<std::string, std::string> library_versions();
MachineInfo machine_info();
// The variables that change how libraries compute or allocate, and no others: environments hold
// secrets.
std::map<std::string, std::string> relevant_environment();

// Fills everything above into `info`, and environment_id: equal ids make results comparable.
void add_provenance(RunInfo& info);

// The training data files of the experiments that ran on this machine.
std::vector<DataFile> training_data(const std::vector<Experiment>& experiments);

DataFile describe_data_file(const std::filesystem::path& file, const std::string& origin);

}  // namespace headroom
