#include "harness/trace/recorder.h"

namespace headroom {

TraceRecorder::TraceRecorder(std::size_t expected_events) {
  // Writing the events, not only reserving room for them, brings the pages in now.
  trace_.events.resize(expected_events);
  trace_.events.clear();
}

}  // namespace headroom
