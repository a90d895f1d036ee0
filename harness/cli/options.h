// The command line as plain structs; only options.cpp and arguments/ know the library that parses
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/plan/shard.h"
#include "harness/plan/suite.h"
#include "harness/results/run_info.h"
#include "harness/runner/progress.h"
#include "harness/watch/watch_summary.h"

namespace headroom {

struct RunOptions {
  std::string suite;  // a name in bench/suites or a path; "" when --resume names the run
  AxisOverrides axes;
  std::vector<std::string> filters;
  std::optional<std::uint64_t> seed;
  std::optional<int> max_pairs;
  std::optional<Shard> shard;
  std::optional<std::chrono::milliseconds> budget;
  std::filesystem::path out = "runs";
  std::filesystem::path resume;
  std::filesystem::path against;  // another headroom program, which also runs every cell
  std::optional<AddedFor> rerun;  // blocks to add to the run that is resumed
  ProgressStyle progress = ProgressStyle::automatic;
  bool dry_run = false;
  bool json = false;              // for a dry run
  bool samples_only = false;      // no verdicts, no report
  bool strict = false;            // exit status 12 if times cannot be trusted
  std::vector<std::string> argv;  // the whole command line, for the record
};

struct ListOptions {
  std::string what;  // "" = everything
  bool json = false;
};

struct VerifyOptions {
  std::vector<std::string> claims;  // ids; none: all of the run
  std::filesystem::path run;
  std::string expect;  // the verdict they must have; "" = any
  bool json = false;
  bool strict = false;  // as in RunOptions
};

struct ReportOptions {
  std::filesystem::path run;
  std::filesystem::path second;                        // "" = the report of one run
  std::map<std::string, std::filesystem::path> files;  // by format, such as md
  std::string address;                                 // of the folder to publish; "" = not known
};

struct ReplayOptions {
  std::filesystem::path file;
  std::vector<std::string> allocators;  // none: all of them
  std::string capacity;                 // "" = the trace's own
  std::string granule;                  // "" = the trace's own, else 2 MiB
  std::chrono::milliseconds plan_time{2000};
  bool json = false;
  bool all = false;  // print every figure of every strategy
};

struct ExportOptions {
  std::filesystem::path file;
  std::filesystem::path out;
  std::string format;  // one of history_formats()
};

struct PlanOptions {
  std::string workload;
  std::string device;  // a device or the short form meta:CARD, CARD or a capacity
  AxisOverrides axes;
  int steps = 3;
  bool json = false;
  bool all = false;      // plan: print the figures of every allocator
  bool pytorch = false;  // plan: also train it in PyTorch on the virtual GPU
};

struct SearchOptions {
  PlanOptions asked;
  int points = 16;  // points per grid
};

struct LeaksOptions {
  std::filesystem::path file;
  std::optional<int> warmup;  // steps, or windows where the history has no steps
  bool fail_on_leak = false;
  bool json = false;
};

struct DoctorOptions {
  bool json = false;
};

struct CheckOptions {
  std::string device = "cuda";
  unsigned only = 0;  // number of the one check to run, in this process; 0: all, each in its own
  bool json = false;
};

struct CompareOptions {
  std::filesystem::path first;
  std::filesystem::path second;
  bool fail_on_worse = false;
  bool all = false;
  bool json = false;
};

struct MergeOptions {
  std::vector<std::filesystem::path> shards;
  std::filesystem::path out = "runs";
  bool samples_only = false;  // no verdicts, no report
};

enum class HistoryAction { add, check, accept, merge };

struct HistoryOptions {
  HistoryAction action = HistoryAction::check;
  std::string operand;  // a run, a claim or cell, or another store; check: "" = the last night
  std::filesystem::path store = "history";
  std::string machine;          // add: name of this machine in the history; "" = the run's
  std::string reason;           // for accept
  std::filesystem::path issue;  // check: a file for the body of an issue
  bool json = false;            // for check
};

struct ExportStateOptions {
  std::string workload;
  std::string device = "host";
  std::string optimizer = "sgd";
  std::uint64_t seed = 1;
  int steps = 5;
  std::filesystem::path out;
};

struct WatchOptions {
  std::vector<std::string> command;  // to start, or
  std::optional<int> pid;            // to follow
  WatchPlan plan;
  LeakOptions leak;  // per minute
  bool fail_on_leak = false;
  std::filesystem::path out;  // "" = runs/TIME-watch-PID
  bool page = true;
};

// Options that both capture and gpu take.
struct RecordingOptions {
  std::vector<std::string> command;
  int until_step = 5;                   // optimizer steps; 0: run the program to its end
  std::vector<std::string> allocators;  // run again with these in place of the framework's
  std::filesystem::path out;            // "" = runs/TIME-capture-PID or runs/TIME-gpu-PID
  bool html = false;                    // write its page, too
  bool json = false;
};

struct CaptureOptions : RecordingOptions {
  std::optional<Bytes> capacity;  // what each allocator may take of the machine's memory
  int rounds = 1;                 // how often each of them runs
};

struct GpuOptions : RecordingOptions {
  std::string card;    // a card or a machine; "" with `which`
  bool which = false;  // find the smallest card that is large enough
  // The option, argument or variable that sets the batch whose largest value is sought; "" = none.
  std::string batch;
  bool settings = false;        // run again with other settings of the framework's allocator
  int devices = 0;              // 0: those of the machine, or 1
  int world = 0;                // ranks that one process pretends there are; 0: none
  double mask_share = 0;        // of elements that a mask of unknown values selects
  std::optional<Bytes> memory;  // of the card, in place of the table's figure
  Bytes context = 0;            // taken by the CUDA context
  std::optional<Bytes> budget;  // limit on reserved memory
  std::string cudnn;            // its library, or none; "" = that of the program's environment
  bool beside_real_gpu = false;
  bool check = false;             // run it on the machine's own GPU as well, and compare
  std::filesystem::path against;  // gpu.json of an earlier run, or its directory; "" = none
};

struct SelftestOptions {
  std::optional<std::uint64_t> seed;
  std::filesystem::path out = "runs";
  ProgressStyle progress = ProgressStyle::automatic;
  bool json = false;
};

// A hidden command: the runner starts it for each sample.
struct SampleOptions {
  std::string request;
  int result_fd = 1;
};

// A hidden command: the runner starts it before it measures on a device.
struct TouchOptions {
  std::string device;
};

// --help and --version: text to print, then exit 0.
struct PrintText {
  std::string text;
};

using Command = std::variant<RunOptions, ListOptions, VerifyOptions, ReplayOptions, ExportOptions,
                             PlanOptions, SearchOptions, LeaksOptions, ReportOptions, WatchOptions,
                             GpuOptions, CaptureOptions, DoctorOptions, CheckOptions,
                             CompareOptions, MergeOptions, HistoryOptions, ExportStateOptions,
                             SelftestOptions, SampleOptions, TouchOptions, PrintText>;

// Parses argv without the program's name. Throws InputError that names the nearest flag or command.
Command parse_command_line(const std::vector<std::string>& argv);

// The kinds that `headroom list` accepts, in its order.
std::vector<std::string> listed_kinds();

// Parses "2/4". Throws InputError.
Shard parse_shard(const std::string& text);

}  // namespace headroom
