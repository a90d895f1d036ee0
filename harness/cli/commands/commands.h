// One function per command; main prints the errors that they throw.
#pragma once

#include "harness/base/error.h"
#include "harness/cli/options.h"

namespace headroom {

ExitCode run_command(const RunOptions& options);
ExitCode list_command(const ListOptions& options);
ExitCode verify_command(const VerifyOptions& options);
ExitCode replay_command(const ReplayOptions& options);
ExitCode export_command(const ExportOptions& options);
ExitCode plan_command(const PlanOptions& options);
ExitCode leaks_command(const LeaksOptions& options);
ExitCode search_command(const SearchOptions& options);
ExitCode report_command(const ReportOptions& options);
ExitCode doctor_command(const DoctorOptions& options);
ExitCode check_command(const CheckOptions& options);
ExitCode compare_command(const CompareOptions& options);
ExitCode merge_command(const MergeOptions& options);
ExitCode watch_command(const WatchOptions& options);
ExitCode gpu_command(const GpuOptions& options);
ExitCode capture_command(const CaptureOptions& options);
ExitCode history_command(const HistoryOptions& options);
ExitCode export_state_command(const ExportStateOptions& options);
ExitCode selftest_command(const SelftestOptions& options);
ExitCode sample_command(const SampleOptions& options);
ExitCode touch_command(const TouchOptions& options);

}  // namespace headroom
