// headroom list, verify, report, compare, merge and history: commands that read or keep results.
#include "harness/cli/arguments/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>

#include "harness/stats/verdict.h"

namespace headroom {
namespace {

constexpr const char* kVerifyNotes = R"(Examples
  headroom verify runs/RUN                  all claims of the run; writes its verdicts.json again
  headroom verify S02 S11 runs/RUN          two claims: the reasons, the data, what would change them
  headroom verify S02 runs/RUN --json       the same, point by point
  headroom verify S02 runs/RUN --expect REFUTED     in CI: exit status 11 when that has changed

A verdict is data, not success or failure. Exit status 0 whatever the verdict, 11 if it is not the one
that --expect names. With --strict 12 if times cannot be trusted: identical configurations differed too
often, or an injected effect was not detected.)";

constexpr const char* kCompareNotes = R"(Examples
  headroom compare before.pickle after.pickle          did my change make memory worse? On which lines?
  headroom compare runs/A-gpu runs/B-gpu --all         two runs of headroom gpu, every line and module
  headroom compare runs/A runs/B                       two runs: which configurations became worse
  headroom compare runs/A runs/B --fail-on worse       in CI: exit status 10 when memory is worse
  headroom report runs/A runs/B                        two runs of headroom run, as a page

Compares memory snapshots of PyTorch, traces, and whatever else headroom replay reads; directories of
headroom gpu; and bytes and counts of headroom run. The first line is the answer. With --fail-on worse
a snapshot is worse if its peak is higher by any amount, a configuration if it is worse by more than
1 %. Times of two runs cannot be compared: let two commits alternate with scripts/gate OLD NEW.)";

constexpr const char* kListNotes = R"(Examples
  headroom list                     the names of everything
  headroom list allocators          names, parameters and examples, as -a allocator=… takes them
  headroom list claims --json)";

constexpr const char* kMergeNotes = R"(Examples
  headroom run quick --seed 7 --shard 1/2       on one machine; --shard 2/2 on another of its kind
  headroom merge runs/*-quick-1of2 runs/*-quick-2of2

Shards that differ in suite, seed, program or kind of machine are refused. The last line on standard
output is the path of the report; headroom run --resume on the merged run does what is missing.)";

constexpr std::pair<const char*, const char*> kReportFormats[] = {
    {"html", "The page (default: beside the results)"},
    {"md", "A job summary in Markdown"},
    {"junit", "JUnit XML"},
    {"gbench", "Google Benchmark's JSON, for its compare.py"},
    {"csv", "Every sample as a row"},
    {"perfetto", "Recorded traces for ui.perfetto.dev or chrome://tracing"},
    {"share", "A folder to publish: the page, and a page with a preview image for each finding"}};

std::vector<std::string> claim_verdicts() {
  std::vector<std::string> words;
  for (int verdict = 0; verdict <= static_cast<int>(ClaimVerdict::invalid); ++verdict)
    words.emplace_back(to_string(static_cast<ClaimVerdict>(verdict)));
  return words;
}

constexpr const char* kHistoryNotes = R"(Examples
  headroom history add runs/RUN                    store tonight's figures
  headroom history check --issue issue.md          is it worse than what was accepted?
  headroom history accept S02 --reason 'the new growth rule'
  headroom history accept 'nightly/bert*' --reason 'weights are tied now'
  headroom history merge /mnt/other/history        take over what another machine stored

Exact figures must be equal; times are compared with the levels of the last 50 nights of the same
machine and environment. The first value of a figure is accepted, and so is every better one. Exit
status of check: 10 if something is worse than accepted, 11 if a verdict differs from the accepted
one, 12 if times cannot be trusted tonight.)";

// The arguments of headroom history ACTION.
class HistoryArguments {
 public:
  explicit HistoryArguments(CLI::App& app)
      : command_(
            *app.add_subcommand("history", "Compare nights: what became worse, and since when")) {
    command_.footer(kHistoryNotes);
    command_.require_subcommand(1);
    CLI::App& add =
        action(HistoryAction::add, "add", "Store the figures and verdicts of a run", "run",
               "  headroom history add runs/RUN\n"
               "  headroom history add runs/RUN --store /data/history --machine ci");
    add.add_option("--machine", history_.machine,
                   "Name of this machine in the history, for host names that change from night to "
                   "night (default: a hash of the host name)");
    CLI::App& check = action(
        HistoryAction::check, "check", "Compare a night with what was accepted", "run",
        "  headroom history check                     the last night\n"
        "  headroom history check --issue issue.md    what is worse, as the body of an issue\n"
        "  headroom history check runs/RUN --json");
    check.get_option("run")->required(false)->description(
        "The run of the night (default: the last)");
    check.add_option("--issue", history_.issue, "Write the body of an issue, in Markdown");
    add_json(check, history_.json, "check");
    action(HistoryAction::accept, "accept", "Accept a change of the last night as intended", "name",
           "  headroom history accept S02 --reason 'the new growth rule'\n"
           "  headroom history accept 'nightly/bert*' --reason 'weights are tied now'")
        .add_option("--reason", history_.reason, "Why")
        ->required();
    action(HistoryAction::merge, "merge", "Add the nights of another store", "other",
           "  headroom history merge /mnt/other/history");
  }

  CLI::App* parser() const { return &command_; }

  HistoryOptions options() const {
    HistoryOptions history = history_;
    for (const auto& [action, command] : actions_)
      if (command->parsed()) history.action = action;
    return history;
  }

 private:
  CLI::App& action(HistoryAction action, const char* name, const char* summary, const char* what,
                   const std::string& examples) {
    CLI::App& command = *command_.add_subcommand(name, summary);
    command.footer("Examples\n" + examples);
    command.add_option(what, history_.operand)->required();
    command.add_option("--store", history_.store, "Directory of the history")
        ->capture_default_str();
    actions_[action] = &command;
    return command;
  }

  CLI::App& command_;
  HistoryOptions history_;
  std::map<HistoryAction, CLI::App*> actions_;
};

}  // namespace

Subcommand add_list(CLI::App& app) {
  auto list = std::make_shared<ListOptions>();
  CLI::App* command =
      app.add_subcommand("list", "List workloads, strategies, devices, suites and claims by name");
  command->footer(kListNotes);
  command->add_option(
      "what", list->what,
      fmt::format("One of {}, with summaries and examples (default: the names of all)",
                  fmt::join(listed_kinds(), ", ")));
  command->add_flag("--json", list->json, "Print JSON");
  return {.parser = command, .command = [list]() -> Command { return *list; }};
}

Subcommand add_verify(CLI::App& app) {
  auto verify = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "Judge the claims of a recorded run, and say why");
  command->footer(kVerifyNotes);
  // The library does not support a list before a last positional argument.
  command
      ->add_option_function<std::vector<std::string>>(
          "arguments",
          [verify](const std::vector<std::string>& words) {
            verify->claims.assign(words.begin(), words.end() - 1);
            verify->run = words.back();
          },
          "Claims (default: all), then the run")
      ->required();
  command
      ->add_option("--expect", verify->expect,
                   "Exit status 11 if these claims have another verdict")
      ->check(CLI::IsMember(claim_verdicts()));
  command->add_flag("--json", verify->json, "Print JSON: verdicts.json, of these claims only");
  add_strict(*command, verify->strict);
  return {.parser = command, .command = [verify]() -> Command { return *verify; }};
}

Subcommand add_report(CLI::App& app) {
  auto report = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Write the report of a recorded run, or of the changes between two");
  command->footer(R"(Examples
  headroom report runs/RUN                       runs/RUN/report.html
  headroom report runs/RUN --md summary.md --junit results.xml      for a CI job
  headroom report runs/RUN --perfetto trace.json                    for ui.perfetto.dev
  headroom report runs/RUN --share public --address https://example.org/run     to link to
  headroom report runs/A runs/B --html changes.html                 bytes and counts of both
  headroom report runs/WATCHED                   the page of what headroom watch recorded

Without a file, the page is written beside the results. In JUnit, a changed verdict and a configuration
that is worse than in run A are failures, crashes are errors, and results that are inconclusive or
cannot be tested here are skipped. headroom export converts a single trace for PyTorch's viewer.)");
  command
      ->add_option(
          "run", report->run,
          "A run directory, or a directory of headroom gpu, capture or watch; of two, the earlier")
      ->required();
  command->add_option("run_b", report->second, "The later run directory");
  for (const auto& [format, what] : kReportFormats)
    command->add_option(std::string("--") + format, report->files[format], what);
  command
      ->add_option("--address", report->address,
                   "Web address of the folder of --share, which preview images need")
      ->needs(command->get_option("--share"));
  return {.parser = command, .command = [report]() -> Command { return *report; }};
}

Subcommand add_compare(CLI::App& app) {
  auto compare = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand(
      "compare", "Show what changed between two memory snapshots, traces or runs");
  command->footer(kCompareNotes);
  command->add_option("before", compare->first, "The earlier snapshot, trace or run directory")
      ->required();
  command->add_option("after", compare->second, "The later one, of the same kind")->required();
  add_fail_on(*command, "worse", compare->fail_on_worse, "exit status 10 if memory is worse");
  command->add_flag("--all", compare->all, "Show every change, not only the largest");
  add_json(*command, compare->json, "changes or peak_change");
  return {.parser = command, .command = [compare]() -> Command { return *compare; }};
}

Subcommand add_merge(CLI::App& app) {
  auto merge = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("merge", "Merge the shards of a run into one run");
  command->footer(kMergeNotes);
  command->add_option("shards", merge->shards, "Run directories made with --shard")->required();
  command->add_option("--out", merge->out, "Directory for run directories")->capture_default_str();
  command->add_flag("--samples-only", merge->samples_only, "Stop before verdicts and report");
  return {.parser = command, .command = [merge]() -> Command { return *merge; }};
}

Subcommand add_history(CLI::App& app) {
  auto arguments = std::make_shared<HistoryArguments>(app);
  return {.parser = arguments->parser(),
          .command = [arguments]() -> Command { return arguments->options(); }};
}

}  // namespace headroom
