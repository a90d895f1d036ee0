#include "harness/trace/recorder.h"

namespace headroom {

TraceRecorder::TraceRecorder(std::size_t expected_events) {
  // Reserving would not fault the pages in; writing the events does.
  trace_.events.resize(expected_events);
  trace_.events.clear();
}

}  // namespace headroom
