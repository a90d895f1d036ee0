// The subcommands of the parser; one function per subcommand adds its options.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace headroom {

struct Subcommand {
  CLI::App* parser;
  std::function<Command()> command;  // to be called after parsing; throws InputError
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
// `command` is everything after "--", options included.
Subcommand add_watch(CLI::App& app, std::vector<std::string> command);

// `command` as for add_watch().
Subcommand add_gpu(CLI::App& app, std::vector<std::string> command);
Subcommand add_capture(CLI::App& app, std::vector<std::string> command);

// Returns a validator for CLI::Option::check(): a whole number of at least `least`. The library's
// own validator prints its bounds as real numbers, reads -1 as a very large number for unsigned
// options, and clamps numbers that are too large.
CLI::Validator whole_from(unsigned least);

// Adds "axis=value", the argument of -a; the value may hold '=' itself.
void add_override(AxisOverrides& axes, const std::string& text);

// Options that several commands have. The variables that they set must live until the command line
// is parsed.
void add_axes(CLI::App& command, AxisOverrides& axes, const std::string& help);
void add_progress(CLI::App& command, ProgressStyle& style);
CLI::Option* add_json(CLI::App& command, bool& json, const std::string& record);
void add_fail_on(CLI::App& command, const char* word, bool& fails, const char* help);
void add_strict(CLI::App& command, bool& strict);

}  // namespace headroom
