#include "harness/results/json/provenance_json.h"

namespace headroom {

Json machine_to_json(const MachineInfo& machine) {
  return {{"hostname_hash", machine.hostname_hash},
          {"cpu", machine.cpu},
          {"cores", machine.cores},
          {"governor", value_or_null(machine.governor)},
          {"ram_bytes", machine.ram_bytes},
          {"kernel", machine.kernel},
          {"os", machine.os},
          {"transparent_hugepages", value_or_null(machine.transparent_hugepages)},
          {"load_average_1m", value_or_null(machine.load_average_1m)},
          {"gpu", value_or_null(machine.gpu)},
          {"gpu_driver", value_or_null(machine.gpu_driver)}};
}

MachineInfo machine_from(const Json& json) {
  return {.hostname_hash = json.at("hostname_hash").get<std::string>(),
          .cpu = json.at("cpu").get<std::string>(),
          .cores = json.at("cores").get<int>(),
          .governor = optional_from<std::string>(json.at("governor")),
          .ram_bytes = json.at("ram_bytes").get<Bytes>(),
          .kernel = json.at("kernel").get<std::string>(),
          .os = json.at("os").get<std::string>(),
          .transparent_hugepages = optional_from<std::string>(json.at("transparent_hugepages")),
          .load_average_1m = optional_from<double>(json.at("load_average_1m")),
          .gpu = optional_from<std::string>(json.at("gpu")),
          .gpu_driver = optional_from<std::string>(json.at("gpu_driver"))};
}

Json build_to_json(const BuildInfo& build) {
  return {{"version", build.version},
          {"commit", value_or_null(build.commit)},
          {"dirty", value_or_null(build.dirty)},
          {"compiler", build.compiler},
          {"build_type", build.build_type},
          {"flags", build.flags},
          {"cuda", build.cuda},
          {"executable_sha256", build.executable_sha256}};
}

BuildInfo build_from(const Json& json) {
  return {.version = json.at("version").get<std::string>(),
          .commit = optional_from<std::string>(json.at("commit")),
          .dirty = optional_from<bool>(json.at("dirty")),
          .compiler = json.at("compiler").get<std::string>(),
          .build_type = json.at("build_type").get<std::string>(),
          .flags = json.at("flags").get<std::string>(),
          .cuda = json.at("cuda").get<std::string>(),
          .executable_sha256 = json.at("executable_sha256").get<std::string>()};
}

}  // namespace headroom
