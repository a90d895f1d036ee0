#include "harness/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>

#include "harness/base/build_info.h"
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/cli/arguments/arguments.h"
#include "harness/plan/axes.h"

namespace headroom {
namespace {

constexpr const char* kExamples = R"(Examples
  headroom selftest                     is this machine quiet enough to compare times?
  headroom doctor                       what this machine can run, and what the rest would need
  headroom check cuda                   does this GPU do what the host does?
  headroom list                         workloads, allocators, devices, suites and claims by name
  headroom run quick                    measure for a few minutes, judge the claims, write the report
  headroom run quick --dry-run          what that would run, and about how long it takes
  headroom run quick -a 'allocator=malloc' -a 'allocator=bfc(growth=on)'
  headroom run quick --filter 'claim=S02'
  headroom run --resume runs/RUN        continue after Ctrl-C, a crash or a full disk
  headroom run --resume runs/RUN --rerun inconclusive     more blocks where noise hides the answer
  headroom verify S02 runs/RUN          the verdict on a claim, its reason and its data
  headroom compare before.pickle after.pickle             did my change make memory worse?
  headroom history check                is last night worse than what was accepted?
  headroom report runs/RUN              write the report again; --md, --junit … for other programs
  headroom run quick --seed 7 --shard 1/2        half of it here, --shard 2/2 on a similar machine
  headroom merge runs/FIRST runs/SECOND          makes one run of both
  headroom replay snapshot.pickle --capacity 24GiB
                                        your own out-of-memory error under every strategy
  headroom export runs/RUN/traces/CELL.hrtrace --to pytorch -o snapshot.pickle
                                        a run in PyTorch's viewer
  headroom plan 'bert(size=large,sequence=512)' --device a100-80gb
                                        will it fit, and in how large a batch?
  headroom search 'resnet(batch=16)' --device 'host(capacity=256MiB)' -a allocator=caching
                                        the largest batch that really trains here, and the least memory
  headroom gpu rtx4090 -- python train.py --batch 16
                                        your own PyTorch script on a GPU that is not there: does it fit?
  headroom capture -- python train.py   the same on the real GPU of this machine
  headroom leaks snapshot.pickle        which lines hold memory that grows
  headroom watch -- python train.py     does it leak? Follows the command and all its workers

Exit status
   0  success; a refuted claim is a result
   2  wrong usage or bad input: the message says how to fix it
   3  plan: the training run fits under no allocator; gpu: the program does not fit on the card
   4  the filters selected nothing
  10  worse than before: compare --fail-on worse, history check, run --against
  11  a verdict differs: history check, from the accepted one; verify, from that of --expect
  12  times cannot be trusted: identical configurations differ too often, or an injected
      effect was not detected; check: a device does not do what the host does
  13  watch and gpu: over --budget
  14  watch and leaks: a leak, with --fail-on leak; watch otherwise exits as the command did
  70  internal error
 130  interrupted; the run can be resumed)";

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// Reports the arguments left over after parsing, with the nearest name that exists.
[[noreturn]] void throw_unexpected(const CLI::App& root) {
  const auto chosen = root.get_subcommands();
  if (chosen.empty()) {
    std::vector<std::string> commands;
    for (const CLI::App* command : root.get_subcommands(
             [](const CLI::App* candidate) { return !candidate->get_group().empty(); }))
      commands.push_back(command->get_name());
    const std::vector<std::string> left = root.remaining();
    if (left.empty()) throw InputError("no command is given; see headroom --help");
    throw_unknown_name(left.front().starts_with("-") ? "option" : "command", left.front(),
                       left.front().starts_with("-") ? flags_of(root) : commands);
  }
  const std::vector<std::string> left = root.remaining(true);
  const std::string first = left.empty() ? "" : left.front();
  const std::string& command = chosen.front()->get_name();
  if ((command == "plan" || command == "search") && (first == "--batch" || first == "--sequence"))
    throw InputError(
        fmt::format("headroom {}: {} is a parameter of the workload, as in "
                    "'bert(size=large,batch=16,sequence=512)'",
                    command, first.substr(2)));
  if (first.starts_with("-"))
    throw_unknown_name(fmt::format("option of headroom {}", command),
                       first.substr(0, first.find('=')), flags_of(*chosen.front()));
  throw InputError(fmt::format("headroom {}: '{}' is one argument too many; see headroom {} --help",
                               command, first, command));
}

Subcommand add_doctor(CLI::App& app) {
  auto doctor = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Show what this machine can run, and what is missing for the rest");
  add_json(*command, doctor->json, "doctor");
  command->footer(
      "Examples\n"
      "  headroom doctor        each device, library and permission, and what it is for\n"
      "  headroom doctor --json | jq '.devices[] | select(.ready).name'");
  return {.parser = command, .command = [doctor]() -> Command { return *doctor; }};
}

Subcommand add_check(CLI::App& app) {
  auto check = std::make_shared<CheckOptions>();
  CLI::App* command =
      app.add_subcommand("check", "Check that a device computes what the host computes");
  command->add_option("device", check->device, "cuda, host or either with parameters")
      ->capture_default_str();
  command
      ->add_option("--only", check->only, "Run only the check of this number, and in this process")
      ->check(whole_from(1));
  add_json(*command, check->json, "device_check");
  command->footer(
      "Examples\n"
      "  headroom check cuda        before the first run on a GPU\n"
      "  headroom check 'host(capacity=1GiB)' --json\n"
      "  headroom check cuda --only 5    the fifth check alone, for a debugger\n\n"
      "Compares bytes, pages, a matrix product and two training steps of each network in seconds.\n"
      "Each check has a process of its own, so that a failure does not end the others.\n"
      "Exit status 12 if one differs; 0 where there is no such device.");
  return {.parser = command, .command = [check]() -> Command { return *check; }};
}

// The command that a run starts for each sample.
Subcommand add_sample(CLI::App& app) {
  auto sample = std::make_shared<SampleOptions>();
  CLI::App* command = app.add_subcommand("sample", "Run one configuration in this process");
  command->add_option("request", sample->request)->required();
  command->add_option("--result-fd", sample->result_fd);
  command->group("");
  return {.parser = command, .command = [sample]() -> Command { return *sample; }};
}

Subcommand add_touch(CLI::App& app) {
  auto touch = std::make_shared<TouchOptions>();
  CLI::App* command = app.add_subcommand("touch", "Commit a device's memory once");
  command->add_option("device", touch->device)->required();
  command->group("");
  return {.parser = command, .command = [touch]() -> Command { return *touch; }};
}

}  // namespace

CLI::Validator whole_from(unsigned least) {
  return {[least](const std::string& text) -> std::string {
            std::uint64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [stopped, problem] = std::from_chars(text.data(), end, value);
            if (problem == std::errc::result_out_of_range)
              return fmt::format("'{}' is too large", text);
            if (stopped != end || problem != std::errc() || value < least)
              return fmt::format("'{}' is not a whole number of at least {}", text, least);
            return "";
          },
          "", "whole"};
}

void add_override(AxisOverrides& axes, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw InputError(
        fmt::format("-a '{}' is not of the form axis=value, as in allocator=malloc", text));
  const std::string axis = text.substr(0, equals);
  Cell cell;
  set_axis(cell, axis, text.substr(equals + 1));
  axes[axis].push_back(axis_value(cell, axis));
}

void add_axes(CLI::App& command, AxisOverrides& axes, const std::string& help) {
  command
      .add_option_function<std::vector<std::string>>(
          "-a,--axis",
          [&axes](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) add_override(axes, text);
          },
          help)
      ->take_all()
      ->expected(1);
}

void add_progress(CLI::App& command, ProgressStyle& style) {
  command
      .add_option_function<std::string>(
          "--progress", [&style](const std::string& text) { style = parse_progress_style(text); },
          "auto, bar, plain or none")
      ->default_str("auto");
}

CLI::Option* add_json(CLI::App& command, bool& json, const std::string& record) {
  return command.add_flag("--json", json,
                          fmt::format("Print JSON: {} of reports/schema.json", record));
}

void add_fail_on(CLI::App& command, const char* word, bool& fails, const char* help) {
  command
      .add_option_function<std::string>(
          "--fail-on", [&fails](const std::string&) { fails = true; },
          fmt::format("{}: {}", word, help))
      ->check(CLI::IsMember({word}));
}

void add_strict(CLI::App& command, bool& strict) {
  command.add_flag("--strict", strict, "Exit status 12 if the times of the run cannot be trusted");
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const last = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), last, shard.number);
  const bool divided = error == std::errc() && slash != last && *slash == '/';
  const auto [end, problem] = std::from_chars(divided ? slash + 1 : last, last, shard.count);
  const bool sound = divided && problem == std::errc() && end == last && shard.number >= 1 &&
                     shard.number <= shard.count;
  if (!sound)
    throw InputError(
        fmt::format("--shard: '{}' is not a part; write 2/4 for the second of four", text));
  return shard;
}

Command parse_command_line(const std::vector<std::string>& argv) {
  CLI::App app(
      "Headroom measures which memory strategy you should train with, and whether published claims "
      "about it hold.",
      "headroom");
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("headroom {}", kVersion));
  app.require_subcommand(0, 1);

  std::vector<std::string> own = argv;
  std::vector<std::string> started;  // the command that watch, gpu or capture starts
  const bool starts =
      !own.empty() && (own.front() == "watch" || own.front() == "gpu" || own.front() == "capture");
  if (const auto dashes = std::find(own.begin(), own.end(), "--"); starts && dashes != own.end()) {
    started.assign(dashes + 1, own.end());
    own.erase(dashes, own.end());
  }
  // --help lists them in this order.
  const std::vector<Subcommand> subcommands = {
      add_run(app, argv),    add_selftest(app),
      add_list(app),         add_verify(app),
      add_replay(app),       add_export(app),
      add_plan(app),         add_search(app),
      add_gpu(app, started), add_capture(app, started),
      add_leaks(app),        add_watch(app, started),
      add_report(app),       add_doctor(app),
      add_check(app),        add_compare(app),
      add_merge(app),        add_history(app),
      add_export_state(app), add_sample(app),
      add_touch(app),
  };

  std::vector<std::string> backwards(own.rbegin(), own.rend());
  try {
    app.parse(std::move(backwards));
  } catch (const CLI::CallForHelp&) {
    return PrintText{app.help()};
  } catch (const CLI::CallForVersion& version) {
    return PrintText{std::string(version.what()) + "\n"};
  } catch (const CLI::ExtrasError&) {
    throw_unexpected(app);
  } catch (const CLI::ParseError& error) {
    std::string command;
    for (auto chosen = app.get_subcommands(); !chosen.empty();
         chosen = chosen.front()->get_subcommands())
      command += chosen.front()->get_name() + " ";
    throw InputError(fmt::format("{}; see headroom {}--help", error.what(), command));
  }

  for (const Subcommand& subcommand : subcommands)
    if (subcommand.parser->parsed()) return subcommand.command();
  return PrintText{app.help()};
}

}  // namespace headroom
