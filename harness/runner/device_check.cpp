#include "harness/runner/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <source_location>
#include <span>
#include <tuple>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/execution/executor.h"
#include "harness/program/lowering/lowering.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/recorder.h"

namespace headroom {
namespace {

constexpr std::uint64_t kSeed = 20'23;
constexpr Bytes kOdd = 1'000'003;  // not a multiple of any alignment

[[noreturn]] void fail(const std::string& what,
                       std::source_location at = std::source_location::current()) {
  std::string_view file = at.file_name();
  if (const std::size_t root = file.rfind("harness/"); root != std::string_view::npos)
    file.remove_prefix(root);
  throw DeviceError(fmt::format("{} (found at {}:{})", what, file, at.line()));
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(kSeed);
  std::vector<std::byte> bytes(count);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

Value plain(Bytes bytes) {
  Value value;
  value.shape = {static_cast<std::int64_t>(bytes)};
  value.dtype = DType::u8;
  value.bytes = bytes;
  return value;
}

void compare_bytes(Device& device, const std::byte* data, std::span<const std::byte> expected,
                   std::source_location at = std::source_location::current()) {
  std::vector<std::byte> found(expected.size());
  device.read(plain(found.size()), data, found);
  const auto [theirs, ours] = std::mismatch(found.begin(), found.end(), expected.begin());
  if (theirs == found.end()) return;
  fail(fmt::format("byte {} of {} came back as {:#04x}, not {:#04x}", theirs - found.begin(),
                   found.size(), std::to_integer<int>(*theirs), std::to_integer<int>(*ours)),
       at);
}

void keep_bytes(Device& device) {
  const std::vector<std::byte> bytes = random_bytes(kOdd);
  const Segment first = device.memory().allocate(bytes.size());
  const Segment second = device.memory().allocate(bytes.size());
  device.write(plain(bytes.size()), first.data, bytes);
  // Writes to other memory must not change it.
  device.write(plain(bytes.size()), second.data, std::vector<std::byte>(bytes.size()));
  compare_bytes(device, first.data, bytes);
  device.memory().free(second);
  device.memory().free(first);
}

// Copies from staging memory of the host, which the device reads without the processor.
void stage_bytes(Device& device) {
  const std::vector<std::byte> bytes = random_bytes(kOdd);
  const auto host = device.make_host_memory();
  const Segment from = host->allocate(bytes.size());
  const Segment to = device.memory().allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), from.data);
  device.write(plain(bytes.size()), to.data, std::vector<std::byte>(bytes.size()));
  device.stage(plain(bytes.size()), to.data, {from.data, bytes.size()});
  device.finish_staging();
  compare_bytes(device, to.data, bytes);
  device.memory().free(to);
  host->free(from);
}

void move_pages(Device& device) {
  DeviceMemory& memory = device.memory();
  const Bytes page = memory.page();
  const std::vector<std::byte> bytes = random_bytes(page);
  const Reservation from = memory.reserve(2 * page);
  const Reservation to = memory.reserve(2 * page);
  memory.map(from, 0, 2 * page);
  device.write(plain(page), from.data + page, bytes);
  memory.move(from, page, to, 0, page);
  compare_bytes(device, to.data, bytes);
  memory.unmap(to, 0, page);
  memory.unmap(from, 0, page);
  memory.unreserve(to);
  memory.unreserve(from);
}

// y = x·wᵀ + b of random numbers, compared with sums in double precision.
void multiply(Device& device, const std::string& rules) {
  constexpr std::int64_t kRows = 33, kInputs = 301, kOutputs = 17;
  constexpr double kTolerance = 5e-4;  // plain f32 sums of 301 such products err by below 5e-5
  Program program{.name = "check"};
  ProgramBuilder build(program);
  const std::vector<ValueId> inputs = {build.input("x", {kRows, kInputs}, DType::f32),
                                       build.input("w", {kOutputs, kInputs}, DType::f32),
                                       build.input("b", {kOutputs}, DType::f32)};
  program.results = {build.emit_one("linear", "y", inputs)};
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> values;
  for (const ValueId id : inputs) {
    values.emplace_back(static_cast<std::size_t>(element_count(program.value(id).shape)));
    std::generate(values.back().begin(), values.back().end(), [&] { return normal(random); });
  }

  PersistentLayouts layouts;
  const Program lowered = lower(program, rules, layouts);
  const auto compiled = device.compile(lowered);
  const auto allocator = make_allocator(Spec("malloc"), device.memory());
  TraceRecorder recorder(64);
  Executor executor(lowered, compiled.get(), *allocator, recorder, {});
  std::vector<float> found(kRows * kOutputs);
  executor.run(
      [&](ValueId id, std::byte* data) {
        const auto at = std::find(lowered.inputs.begin(), lowered.inputs.end(), id);
        device.write(lowered.value(id), data,
                     std::as_bytes(std::span(
                         values.at(static_cast<std::size_t>(at - lowered.inputs.begin())))));
      },
      [&](ValueId id, std::byte* data) {
        device.read(lowered.value(id), data, std::as_writable_bytes(std::span(found)));
      });
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t column = 0; column < kOutputs; ++column) {
      double expected = values[2][column];
      for (std::size_t i = 0; i < kInputs; ++i)
        expected += static_cast<double>(values[0][row * kInputs + i]) *
                    static_cast<double>(values[1][column * kInputs + i]);
      const double is = found[row * kOutputs + column];
      if (!(std::abs(is - expected) <= kTolerance))  // NaN fails as well
        fail(fmt::format("element [{}, {}] of a product is {}, not {}", row, column, is, expected));
    }
}

// The first loss is the forward pass on the same weights and batch; the second follows an update,
// whose gradients round differently.
void train(const Spec& device, const char* workload, const char* optimizer, const char* pipeline) {
  constexpr double kTolerance[] = {1e-3, 1e-2};
  Cell cell;
  cell.workload = Spec::parse(workload);
  cell.allocator = Spec("bfc", {{"growth", "on"}});
  cell.optimizer = Spec::parse(optimizer);
  cell.pipeline = Spec::parse_composition(pipeline);
  cell.warmup_steps = 1;
  cell.measured_steps = 1;
  cell.device = Spec("host", {{"capacity", "512MiB"}});
  const Sample expected = run_cell(cell, kSeed, "");
  cell.device = device;
  const Sample found = run_cell(cell, kSeed, "");
  if (found.status == SampleStatus::unsupported) throw NotSupported(found.reason);
  for (const Sample* sample : {&expected, &found})
    if (sample->status != SampleStatus::ok || sample->loss.size() != 2)
      fail(fmt::format("{} on {} ended as {}: {}", workload, sample->cell.device.to_string(),
                       to_string(sample->status), sample->reason));
  for (std::size_t step = 0; step < 2; ++step)
    if (!(std::abs(found.loss[step] - expected.loss[step]) <=
          kTolerance[step] * std::max(1.0, std::abs(expected.loss[step]))))
      fail(fmt::format("{}: the loss of step {} is {} on {}, and {} on host", workload, step + 1,
                       found.loss[step], device.to_string(), expected.loss[step]));
}

// Compares captured execution with op-by-op execution: the same kernels on the same numbers at
// other addresses. The four steps cover an ordinary run, a capture and two replays, with copies to
// the host when the steps offload.
void replay_captured(const Spec& device, const char* workload, const char* checkpointing) {
  constexpr double kTolerance = 1e-3;
  Cell cell;
  cell.workload = Spec::parse(workload);
  cell.device = device;
  cell.allocator = Spec("bfc", {{"growth", "on"}});
  cell.optimizer = Spec("adam");
  cell.checkpointing = Spec::parse(checkpointing);
  cell.warmup_steps = 1;
  cell.measured_steps = 3;
  const Sample expected = run_cell(cell, kSeed, "");
  cell.execution = Spec("captured");
  const Sample found = run_cell(cell, kSeed, "");
  for (const Sample* sample : {&expected, &found}) {
    if (sample->status == SampleStatus::unsupported) throw NotSupported(sample->reason);
    if (sample->status != SampleStatus::ok || sample->loss.size() != 4)
      fail(fmt::format("{} with execution {} ended as {}: {}", workload,
                       sample->cell.execution.to_string(), to_string(sample->status),
                       sample->reason));
  }
  for (std::size_t step = 0; step < 4; ++step)
    if (!(std::abs(found.loss[step] - expected.loss[step]) <=
          kTolerance * std::max(1.0, std::abs(expected.loss[step]))))
      fail(fmt::format("{}: the loss of step {} is {} replayed, and {} run op by op", workload,
                       step + 1, found.loss[step], expected.loss[step]));
}

}  // namespace

std::vector<DeviceCheck> device_checks(const Spec& spec) {
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(spec.name());
  const auto on_device = [spec, &kind](const std::function<void(Device&)>& check) {
    return [spec, &kind, check] { check(*kind.create(spec)); };
  };
  std::vector<DeviceCheck> checks = {
      {"starts", on_device([](Device&) {})},
      {fmt::format("keeps {} bytes", kOdd), on_device(keep_bytes)},
      {"copies what is staged on the host", on_device(stage_bytes)},
      {"moves mapped pages with their contents", on_device(move_pages)},
      {"multiplies as double precision does",
       on_device([&kind](Device& device) { multiply(device, kind.default_rules); })}};
  const char* const adam = "adam(beta1=0.5,learning_rate=0.0002)";
  for (const auto& [workload, optimizer, pipeline] :
       {std::tuple("resnet(batch=4,depth=18,residual_scale=0.2,width=8)",
                   "sgd(learning_rate=0.001)", "direct"),
        std::tuple("bert(batch=2,sequence=16,size=tiny,vocabulary=500)", "adam", "direct"),
        std::tuple("gan(batch=4,latent=8,width=4)", adam, "direct"),
        std::tuple("gan(batch=4,latent=8,width=4)", adam, "staging(2)")})
    checks.push_back(
        {fmt::format("trains {} behind {} as host does", Spec::parse(workload).name(), pipeline),
         [spec, workload = workload, optimizer = optimizer, pipeline = pipeline] {
           train(spec, workload, optimizer, pipeline);
         }});
  for (const auto& [workload, checkpointing] :
       {std::pair("resnet(batch=4,depth=18,residual_scale=0.2,width=8)", "none"),
        std::pair("bert(batch=2,layers=4,sequence=16,size=tiny,vocabulary=500)", "offload")})
    checks.push_back({fmt::format("replays captured steps of {}", Spec::parse(workload).name()),
                      [spec, workload = workload, checkpointing = checkpointing] {
                        replay_captured(spec, workload, checkpointing);
                      }});
  return checks;
}

DeviceFinding run_check(const DeviceCheck& check) {
  try {
    check.run();
  } catch (const NotSupported& error) {
    return {check.what, DeviceFinding::Outcome::skipped, error.what()};
  } catch (const Error& error) {
    return {check.what, DeviceFinding::Outcome::failed, error.what()};
  }
  return {check.what, DeviceFinding::Outcome::passed, ""};
}

}  // namespace headroom
