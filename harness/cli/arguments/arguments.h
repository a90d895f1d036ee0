// The subcommands as the parser knows them: one function each adds its options.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace headroom {

struct Subcommand {
  CLI::App* parser;
  std::function<Command()> command;  // once parsed; throws InputError
};

Subcommand add_run(CLI::App& app, const std::vector<std::string>& argv);
Subcommand add_selftest(CLI::App& app);
Subcommand add_export_state(CLI::App& app);

Subcommand add_list(CLI::App& app);
Subcommand add_verify(CLI::App& app);
Subcommand add_report(CLI::App& app);
Subcommand add_compare(CLI::App& app);
Subcommand add_merge(CLI::App& app);
Subcommand add_history(CLI::App& app);

Subcommand add_plan(CLI::App& app);
Subcommand add_search(CLI::App& app);
Subcommand add_replay(CLI::App& app);
Subcommand add_export(CLI::App& app);
Subcommand add_leaks(CLI::App& app);
// What stands after -- is the command's, options and all.
Subcommand add_watch(CLI::App& app, std::vector<std::string> command);

// Likewise.
Subcommand add_gpu(CLI::App& app, std::vector<std::string> command);

// For check(): a whole number from `least` on. The library's own says its bounds as real numbers,
// takes -1 for a very large one where the option has no sign, and too large ones for the largest.
CLI::Validator whole_from(unsigned least);

// "axis=value" as -a takes it; the value may hold '=' itself.
void add_override(AxisOverrides& axes, const std::string& text);

}  // namespace headroom
