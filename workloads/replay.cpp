// Any trace as a workload: the requests of a recorded run, one op for each, on any device and under
// any strategy. Ops only touch every page, so the time is that of memory alone. Each recorded step
// is one shape, and shapes take turns; blocks that live across steps in the trace live here from
// before the first step to the end. A trace without steps is one step.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/trace/requests.h"
#include "harness/trace/trace_io.h"
#include "harness/workload/workload.h"

namespace headroom {
namespace {

struct Lifetime {
  Bytes bytes = 0;
  Role role = Role::activation;
  std::int32_t first_step = 0;
  std::int32_t last_step = 0;  // step of its free; if never freed, one past the last step
};

class ReplayBatches final : public BatchSource {
 public:
  void next_training_batch(std::span<const std::span<std::byte>>) override {}
  bool next_held_out_batch(std::span<const std::span<std::byte>>) override { return false; }
  void restart_held_out() override {}
};

class Replay final : public Workload {
 public:
  explicit Replay(const std::string& file) : file_(file), list_(requests_of(read_trace(file))) {
    if (list_.requests.empty())
      throw InputError(file + ": contains no requests; there is nothing to replay");
    last_step_ = 0;
    for (const Request& request : list_.requests) last_step_ = std::max(last_step_, request.step);
    lifetimes_.resize(list_.blocks);
    for (const Request& request : list_.requests) {
      Lifetime& lifetime = lifetimes_[request.block];
      if (request.kind == Request::Kind::alloc)
        lifetime = {request.bytes, request.role, request.step, last_step_ + 1};
      else
        lifetime.last_step = request.step;
    }
  }

  bool is_trained() const override { return false; }
  Program training_forward() const override { return program_of(std::min(1, last_step_)); }
  std::vector<std::vector<Program>> training_shapes() const override {
    std::vector<std::vector<Program>> shapes;
    for (std::int32_t step = std::min(1, last_step_); step <= last_step_; ++step)
      shapes.push_back({program_of(step)});
    return shapes;
  }
  std::vector<std::size_t> shape_cycle() const override {
    std::vector<std::size_t> cycle(static_cast<std::size_t>(std::max(1, last_step_)));
    for (std::size_t i = 0; i < cycle.size(); ++i) cycle[i] = i;
    return cycle;
  }
  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return 1; }
  std::vector<std::filesystem::path> data_files() const override { return {file_}; }
  std::unique_ptr<BatchSource> open_data(std::uint64_t) const override {
    return std::make_unique<ReplayBatches>();
  }

 private:
  bool is_persistent(const Lifetime& lifetime) const {
    return last_step_ > 0 && lifetime.last_step > lifetime.first_step;
  }

  Program program_of(std::int32_t step) const {
    Program program;
    program.name = "train";
    ProgramBuilder builder(program);
    // Every Program contains all persistent blocks, because they live in every step.
    for (std::size_t block = 0; block < lifetimes_.size(); ++block)
      if (is_persistent(lifetimes_[block])) add_persistent(program, block);
    std::map<std::uint32_t, ValueId> values;
    std::vector<ValueId> given_back;  // since the previous op
    for (const Request& request : list_.requests) {
      const Lifetime& lifetime = lifetimes_[request.block];
      if (request.step != step || is_persistent(lifetime) || lifetime.bytes == 0) continue;
      if (request.kind == Request::Kind::free) {
        given_back.push_back(values.at(request.block));
        continue;
      }
      close(builder, given_back);
      builder.set_phase(request.phase);
      values[request.block] =
          builder.emit_one("touch", name_of(request.block), {},
                           {{"bytes", static_cast<std::int64_t>(lifetime.bytes)}});
      program.values[values[request.block]].role = lifetime.role;
    }
    close(builder, given_back);
    return program;
  }

  // A value is freed after the op that reads it last, so the previous op reads the values that are
  // freed now.
  static void close(ProgramBuilder& builder, std::vector<ValueId>& given_back) {
    if (given_back.empty()) return;
    auto& inputs = builder.program().ops.back().inputs;
    for (const ValueId id : given_back)
      if (const auto& made = builder.program().ops.back().outputs;
          std::find(made.begin(), made.end(), id) == made.end())
        inputs.push_back(id);
    given_back.clear();
  }

  void add_persistent(Program& program, std::size_t block) const {
    const Lifetime& lifetime = lifetimes_[block];
    if (lifetime.bytes == 0) return;
    program.values.push_back({.name = name_of(block),
                              .shape = {static_cast<std::int64_t>(lifetime.bytes)},
                              .dtype = DType::u8,
                              .role = lifetime.role,
                              .persistent = true});
  }

  static std::string name_of(std::size_t block) { return fmt::format("block{}", block); }

  std::filesystem::path file_;
  RequestList list_;
  std::int32_t last_step_ = 0;
  std::vector<Lifetime> lifetimes_;  // by block
};

const bool replay_is_registered = Registry<WorkloadKind>::instance().add(
    {.name = "replay",
     .summary =
         "The requests of a recorded trace (file=run.hrtrace), step by step; nothing is computed",
     .parameters = {"file"},
     .examples = {},
     .create = [](const Spec& spec) {
       const std::string file = spec.text("file", "");
       if (file.empty()) throw InputError("replay: name a trace, as in replay(file=run.hrtrace)");
       return std::make_unique<Replay>(file);
     }});

}  // namespace
}  // namespace headroom
