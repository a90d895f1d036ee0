// The JSON fields of a run's machine and program in run.json.
#pragma once

#include "harness/results/json/record.h"
#include "harness/results/run_info.h"

namespace headroom {

template <typename Visitor, RecordOf<MachineInfo> Record>
void fields(Visitor& visit, Record& machine) {
  visit.required("hostname_hash", machine.hostname_hash);
  visit.required("cpu", machine.cpu);
  visit.required("cores", machine.cores);
  visit.required("governor", machine.governor);
  visit.required("ram_bytes", machine.ram_bytes);
  visit.required("kernel", machine.kernel);
  visit.required("os", machine.os);
  visit.required("transparent_hugepages", machine.transparent_hugepages);
  visit.required("load_average_1m", machine.load_average_1m);
  visit.required("gpu", machine.gpu);
  visit.required("gpu_driver", machine.gpu_driver);
}

template <typename Visitor, RecordOf<BuildInfo> Record>
void fields(Visitor& visit, Record& build) {
  visit.required("version", build.version);
  visit.required("commit", build.commit);
  visit.required("dirty", build.dirty);
  visit.required("compiler", build.compiler);
  visit.required("build_type", build.build_type);
  visit.required("flags", build.flags);
  visit.required("cuda", build.cuda);
  visit.required("executable_sha256", build.executable_sha256);
}

}  // namespace headroom
