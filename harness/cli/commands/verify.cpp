// headroom verify: turns samples into verdicts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/run_plan.h"
#include "harness/cli/text/print.h"
#include "harness/results/run_directory.h"
#include "harness/results/schema_check.h"
#include "harness/verdicts/calibration_store.h"
#include "harness/verdicts/explain.h"
#include "harness/verdicts/verify.h"

namespace headroom {

namespace {

// Never makes the run fail, because calibration concerns later runs.
void keep_calibration(const CalibrationStore& store, const std::string& run_id,
                      const VerifyInput& input) {
  try {
    store.add(run_id, calibration_of(input));
  } catch (const InputError& error) {
    out::print(stderr, "headroom: {}\n", error.what());
  }
}

// Reports each claim whose verdict differs from the expected one.
bool all_as_expected(const Judged& judged, const VerifyOptions& options) {
  if (options.expect.empty()) return true;
  bool all = true;
  for (const auto& [word, claims] : judged.claims_by_word) {
    if (word == options.expect) continue;
    for (const std::string& claim : claims) {
      const bool asked =
          options.claims.empty() ||
          std::find(options.claims.begin(), options.claims.end(), claim) != options.claims.end();
      if (!asked) continue;
      out::print(stderr, "headroom: {} is {}, expected {}\n", claim, word, options.expect);
      all = false;
    }
  }
  return all;
}

// Throws InputError that explains the usage if the user named a claim but no run.
void require_run(const std::filesystem::path& run) {
  if (std::filesystem::exists(run)) return;
  for (const Claim& claim : find_claims({}))
    if (claim.id == run.string())
      throw InputError(fmt::format(
          "{0} is a claim; name a run behind it, as in headroom verify {0} runs/RUN. This makes "
          "one: headroom run claims --filter claim={0}",
          claim.id));
}

void tell(const Judged& judged) {
  out::print("{}\n", judged.headline);
  for (const auto& [word, claims] : judged.claims_by_word)
    out::print("  {:<18} {}\n", word, fmt::join(claims, " "));
}

void tell_distrust(const Judged& judged) {
  if (!judged.distrust.empty())
    out::print(stderr, "headroom: {} Close other programs, then see: headroom selftest\n",
               judged.distrust);
}

}  // namespace

Judged write_verdicts(const std::filesystem::path& run) {
  RecordedRun recorded = read_run(run);
  if (recorded.torn_last_line)
    out::print(
        stderr,
        "{}: the last line of samples.jsonl is incomplete (the run was killed while it wrote); "
        "that sample is left out. Complete the run with: headroom run --resume {}\n",
        run.string(), run.string());
  const CalibrationStore calibrations(calibration_file(), recorded.info.machine.hostname_hash);
  const VerifyInput input{.claims = recorded.info.claims.empty()
                                        ? std::vector<Claim>{}
                                        : find_claims(recorded.info.claims),
                          .experiments = std::move(recorded.info.experiments),
                          .samples = std::move(recorded.samples),
                          .additions = std::move(recorded.info.additions),
                          .calibration = calibrations.earlier_than(recorded.info.run_id)};
  const std::string json = verdicts_json(input);
  const std::filesystem::path file = run / "verdicts.json";
  check_record(json, RecordKind::verdicts, file.string());
  write_file_durably(file, json);
  keep_calibration(calibrations, recorded.info.run_id, input);
  return {.headline = headline_of(json),
          .claims_by_word = claims_by_word(json),
          .distrust = distrust_of(json)};
}

ExitCode code_of(const Judged& judged, bool strict) {
  return strict && !judged.distrust.empty() ? ExitCode::not_calibrated : ExitCode::ok;
}

ExitCode verify_command(const VerifyOptions& options) {
  require_run(options.run);
  const Judged judged = write_verdicts(options.run);
  const std::filesystem::path file = options.run / "verdicts.json";
  if (options.json) {
    out::print("{}\n", verdicts_of(read_file(file), options.claims));
  } else {
    if (options.claims.empty()) tell(judged);
    out::print("{}", explain(read_file(file), options.claims));
    tell_distrust(judged);
    out::print("All the evidence: {}, or --json\n", file.string());
  }
  return all_as_expected(judged, options) ? code_of(judged, options.strict)
                                          : ExitCode::verdict_changed;
}

}  // namespace headroom
