// stream: reads each record from its file when it is asked for, and keeps none. This takes the
// least host memory; every epoch reads every byte again, at least from the page cache.
#include <atomic>

#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"
#include "harness/workload/record_sequence.h"

namespace headroom {
namespace {

class Stream final : public RecordStage {
 public:
  explicit Stream(const StageContext& context)
      : RecordStage("stream"),
        records_(*context.records),
        sequence_(*context.records, context.order) {
    hold(sequence_.host_bytes());
  }

 private:
  Element do_next() override { return sequence_.next(); }
  void do_load(Element& element) override {
    element.bytes.resize(records_.record_bytes());
    at_element(name(), element, [&] { records_.read(element.record, element.bytes); });
    file_bytes_ += element.bytes.size();
  }
  std::map<std::string, std::uint64_t> counters() const override {
    return {{"file_bytes_read", file_bytes_}};
  }

  const RecordSource& records_;
  RecordSequence sequence_;
  std::atomic<std::uint64_t> file_bytes_ = 0;
};

const bool stream_is_registered = Registry<StageKind>::instance().add(
    {.name = "stream",
     .summary = "Source: reads each record from its file when it is asked for",
     .parameters = {},
     .examples = {"stream", "prefetch(2)|map(threads=2)|stream"},
     .record_source = [](const Spec&, const StageContext& context) -> StageKind::Records {
       return std::make_unique<Stream>(context);
     }});

}  // namespace
}  // namespace headroom
