// headroom verify: samples in, verdicts out.
#include <fmt/format.h>

#include "harness/base/file.h"
#include "harness/cli/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/plan.h"
#include "harness/run/run_directory.h"
#include "harness/run/schema_check.h"
#include "harness/run/verify.h"

namespace headroom {

void write_verdicts(const std::filesystem::path& run) {
  RecordedRun recorded = read_run(run);
  if (recorded.torn_last_line)
    fmt::print(stderr,
               "{}: the last line of samples.jsonl is torn (the run was killed while it wrote); "
               "that sample is left out. Complete the run with: headroom run --resume {}\n",
               run.string(), run.string());
  const VerifyInput input{.claims = recorded.info.claims.empty()
                                        ? std::vector<Claim>{}
                                        : find_claims(recorded.info.claims),
                          .experiments = std::move(recorded.info.experiments),
                          .samples = std::move(recorded.samples),
                          .calibration = {}};
  const std::string json = verdicts_json(input);
  const std::filesystem::path file = run / "verdicts.json";
  check_record(json, RecordKind::verdicts, file.string());
  write_file_durably(file, json);
}

ExitCode verify_command(const VerifyOptions& options) {
  write_verdicts(options.run);
  fmt::print("{}\n", (options.run / "verdicts.json").string());
  return ExitCode::ok;
}

}  // namespace headroom
