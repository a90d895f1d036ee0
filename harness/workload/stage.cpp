#include "harness/workload/stage.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "harness/base/duration.h"
#include "harness/base/error.h"

namespace headroom {
namespace {

std::string place_of(const std::string& stage, const Element& element) {
  return fmt::format("pipeline stage '{}', sample {} of the stream (record {}, epoch {})", stage,
                     element.position, element.record, element.epoch + 1);
}

}  // namespace

StageReport Stage::report() const {
  return {.name = name_,
          .elements = elements_,
          .wait_ns = wait_ns_,
          .host_bytes_peak = peak_,
          .counters = counters()};
}

void Stage::timed(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  wait_ns_ += ns_since(start);
}

void Stage::hold(Bytes bytes) {
  const Bytes now = held_ += bytes;
  Bytes peak = peak_;
  while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
  }
}

Element RecordStage::next() {
  Element element;
  timed([&] { element = do_next(); });
  count_element();
  return element;
}

void RecordStage::load(Element& element) {
  timed([&] { do_load(element); });
}

void BatchStage::next(BatchBuffers inputs) {
  timed([&] { do_next(inputs); });
  count_element();
}

LentBatch BatchStage::lend() {
  LentBatch batch;
  timed([&] { batch = do_lend(); });
  count_element();
  return batch;
}

LentBatch BatchStage::do_lend() {
  throw Error(fmt::format("pipeline stage {} lends no batches", name()));
}

void at_element(const std::string& stage, const Element& element,
                const std::function<void()>& work) try {
  work();
} catch (const NotSupported&) {
  throw;
} catch (const InputError& error) {
  throw InputError(fmt::format("{}: {}", place_of(stage, element), error.what()));
} catch (const std::exception& error) {
  throw Error(fmt::format("{}: {}", place_of(stage, element), error.what()));
}

void sleep_unless_stopped(std::uint64_t ns, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::nanoseconds(ns), [] { return false; });
  if (stop.stop_requested()) throw PipelineStopped{};
}

}  // namespace headroom
