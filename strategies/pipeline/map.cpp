// map: decodes records to samples. By default it runs on the calling thread, as tf.data's map
// without num_parallel_calls; with threads=n on n threads, which also do the loading behind it.
// Keeps the order unless ordered=off, which passes on samples as they finish and makes batches
// depend on timing. Costs up to 2n samples in host memory.
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "strategies/pipeline/parallel.h"

namespace headroom {
namespace {

class Map final : public RecordStage {
 public:
  Map(std::unique_ptr<RecordStage> inner, const StageContext& context)
      : RecordStage("map"), inner_(std::move(inner)), records_(*context.records) {}

 private:
  Element do_next() override { return inner_->next(); }
  void do_load(Element& element) override {
    inner_->load(element);
    std::vector<std::byte> sample(records_.sample_bytes());
    at_element(name(), element, [&] { records_.decode(element.bytes, sample); });
    element.bytes = std::move(sample);
  }

  std::unique_ptr<RecordStage> inner_;
  const RecordSource& records_;
};

const bool map_is_registered = Registry<StageKind>::instance().add(
    {.name = "map",
     .summary = "Decodes records to samples, on the thread that asks or on threads= of its own",
     .parameters = {"ordered", "threads"},
     .examples = {"map|stream", "map(threads=3)|stream", "map(ordered=off,threads=2)|memory"},
     .check =
         [](const Spec& spec) {
           threads_of(spec, "threads", 1);
           spec.flag("ordered", true);
           if (spec.has("ordered") && !spec.has("threads"))
             throw InputError("map: without threads= the order is always kept; leave ordered= out");
         },
     .loads_ahead = [](const Spec& spec) { return spec.has("threads"); },
     .over_records = [](const Spec& spec, StageKind::Records inner,
                        const StageContext& context) -> StageKind::Records {
       auto map = std::make_unique<Map>(std::move(inner), context);
       if (!spec.has("threads")) return map;
       return make_parallel(
           std::move(map), context,
           {.name = spec.to_string(),
            .threads = threads_of(spec, "threads", 1),
            .delivery = spec.flag("ordered", true) ? Delivery::ordered : Delivery::as_finished});
     }});

}  // namespace
}  // namespace headroom
