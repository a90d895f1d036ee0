#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/in_place.h"
#include "harness/program/program.h"

namespace headroom {
namespace {

class Validation {
 public:
  explicit Validation(const Program& program)
      : program_(program), defined_(program.values.size()), overwritten_(program.values.size()) {}

  void run() {
    check_persistent();
    for (const ValueId id : program_.inputs) {
      check_id(id, "the inputs");
      if (program_.value(id).persistent) fail("input '{}' is persistent", program_.value(id).name);
      define(id, "the inputs");
    }
    for (const Op& op : program_.ops) check(op);
    for (const ValueId id : program_.results) check_readable(id, "the results");
    if (program_.loss != kNoValue) check_defined(program_.loss, "the loss");
    for (const auto& [weight, gradient] : program_.gradients) {
      check_defined(weight, "the gradients");
      check_defined(gradient, "the gradients");
      if (program_.value(weight).shape != program_.value(gradient).shape)
        fail("weight '{}' and its gradient differ in shape", program_.value(weight).name);
    }
  }

 private:
  template <typename... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    throw Error(fmt::format("program '{}': {}", program_.name,
                            fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

  void check_persistent() {
    std::set<std::string> names;
    for (ValueId id = 0; id < program_.values.size(); ++id) {
      const Value& value = program_.value(id);
      if (!value.persistent) continue;
      defined_[id] = true;
      if (!names.insert(value.name).second)
        fail("two persistent values are called '{}'", value.name);
    }
  }

  void check_id(ValueId id, const std::string& user) const {
    if (id >= program_.values.size()) fail("{}: value {} does not exist", user, id);
  }

  void check_defined(ValueId id, const std::string& user) const {
    check_id(id, user);
    if (!defined_[id]) fail("{}: '{}' has no contents yet", user, program_.value(id).name);
  }

  void check_readable(ValueId id, const std::string& user) const {
    check_defined(id, user);
    if (overwritten_[id]) fail("{}: '{}' was overwritten before", user, program_.value(id).name);
  }

  void define(ValueId id, const std::string& producer) {
    check_id(id, producer);
    if (defined_[id]) fail("{}: '{}' is produced twice", producer, program_.value(id).name);
    defined_[id] = true;
  }

  void check_in_place(const Op& op, const InPlace& places) {
    const auto& choices = in_place_choices(op.kind);
    if (std::find(choices.begin(), choices.end(), places) == choices.end())
      fail("{} ({}): cannot write output {} over input {}", op.name, op.kind, places.output,
           places.input);
    const ValueId from = op.inputs.at(places.input);
    const Value& value = program_.value(from);
    const Value& made = program_.value(op.outputs.at(places.output));
    if (value.persistent) fail("{}: overwrites '{}', which is persistent", op.name, value.name);
    if (value.bytes != made.bytes || value.dtype != made.dtype || value.layout != made.layout)
      fail("{}: overwrites '{}', which has another layout in memory", op.name, value.name);
    if (std::count(op.inputs.begin(), op.inputs.end(), from) != 1)
      fail("{}: overwrites '{}', which it reads as another input too", op.name, value.name);
    overwritten_[from] = true;
  }

  void check(const Op& op) {
    Registry<OpDefinition>::instance().find(op.kind);
    for (const ValueId id : op.inputs)
      if (id != kNoValue) check_readable(id, op.name);
    for (const ValueId id : op.mutates)
      if (std::find(op.inputs.begin(), op.inputs.end(), id) == op.inputs.end())
        fail("{}: mutates a value that is not among its inputs", op.name);
    if (const auto places = in_place(op)) check_in_place(op, *places);
    for (const ValueId id : op.outputs) define(id, op.name);
    if (op.workspace != kNoValue) define(op.workspace, op.name);
  }

  const Program& program_;
  std::vector<bool> defined_;
  std::vector<bool> overwritten_;  // by a later value in the same memory
};

}  // namespace

void validate(const Program& program) { Validation(program).run(); }

}  // namespace headroom
