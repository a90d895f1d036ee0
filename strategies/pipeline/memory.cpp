// memory: reads all records before the first step and keeps them, as stored, for the whole run:
// this takes the most host memory, and no file is read again.
#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"
#include "harness/workload/record_sequence.h"

namespace headroom {
namespace {

class Memory final : public RecordStage {
 public:
  explicit Memory(const StageContext& context)
      : RecordStage("memory"),
        records_(*context.records),
        sequence_(*context.records, context.order),
        bytes_(static_cast<std::size_t>(records_.count()) * records_.record_bytes()) {
    hold(bytes_.size() + sequence_.host_bytes());
    Element element;
    for (; element.record < records_.count(); ++element.record, ++element.position)
      at_element(name(), element, [&] { records_.read(element.record, record(element.record)); });
  }

 private:
  std::span<std::byte> record(std::int64_t number) {
    const std::size_t size = records_.record_bytes();
    return std::span(bytes_).subspan(static_cast<std::size_t>(number) * size, size);
  }

  Element do_next() override { return sequence_.next(); }
  void do_load(Element& element) override {
    const auto stored = record(element.record);
    element.bytes.assign(stored.begin(), stored.end());
  }
  std::map<std::string, std::uint64_t> counters() const override {
    return {{"file_bytes_read", bytes_.size()}};
  }

  const RecordSource& records_;
  RecordSequence sequence_;
  std::vector<std::byte> bytes_;
};

const bool memory_is_registered = Registry<StageKind>::instance().add(
    {.name = "memory",
     .summary = "Source: reads all records before the first step and keeps them as stored",
     .parameters = {},
     .examples = {"memory", "map(threads=2)|memory"},
     .record_source = [](const Spec&, const StageContext& context) -> StageKind::Records {
       return std::make_unique<Memory>(context);
     }});

}  // namespace
}  // namespace headroom
