#include "harness/memory/trace.h"

namespace headroom {

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::alloc:
      return "alloc";
    case EventKind::free:
      return "free";
    case EventKind::segment_alloc:
      return "segment_alloc";
    case EventKind::segment_free:
      return "segment_free";
    case EventKind::oom:
      return "oom";
  }
  return "?";
}

}  // namespace headroom
