#include "harness/results/sample.h"

namespace headroom {

std::string to_string(SampleStatus status) {
  switch (status) {
    case SampleStatus::ok:
      return "ok";
    case SampleStatus::oom:
      return "oom";
    case SampleStatus::crash:
      return "crash";
    case SampleStatus::timeout:
      return "timeout";
    case SampleStatus::unsupported:
      return "unsupported";
    case SampleStatus::invalid:
      return "invalid";
  }
  return "invalid";
}

}  // namespace headroom
