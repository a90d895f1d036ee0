// libFuzzer's entry for the specs of a command line, and for suites and claims.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/base/units.h"
#include "harness/claims/claim.h"
#include "harness/plan/axes.h"
#include "harness/plan/suite.h"

namespace {

using namespace headroom;

// Parsing the text of a spec gives the same spec.
std::string wrong_with_spec(const std::string& text) {
  for (const auto parse : {&Spec::parse, &Spec::parse_composition}) {
    try {
      const std::string once = parse(text).to_string();
      if (parse(once).to_string() != once) return "a spec reads differently when read again";
    } catch (const InputError&) {
    }
  }
  try {
    if (parse_bytes(text, "fuzz") < 0) return "a size below zero";
  } catch (const InputError&) {
  }
  for (const std::string& axis : axis_names()) {
    try {
      Cell cell;
      set_axis(cell, axis, text);
      const std::string once = axis_value(cell, axis);
      set_axis(cell, axis, once);
      if (axis_value(cell, axis) != once) return "a value of " + axis + " reads differently again";
    } catch (const InputError&) {
    }
  }
  return "";
}

// A text that is neither a suite nor a claim must be refused with an error that names the place.
std::string wrong_with_file(const std::string& text) {
  static const int file = ::memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 ||
      ::pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return "the file cannot be written";
  const auto refused_well = [](const InputError& error) {
    return std::string(error.what()).find(path) != std::string::npos;
  };
  try {
    read_suite(path);
  } catch (const InputError& error) {
    if (!refused_well(error)) return std::string("names no place: ") + error.what();
  }
  try {
    experiments_of(read_claim(path));
  } catch (const InputError& error) {
    if (!refused_well(error)) return std::string("names no place: ") + error.what();
  }
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string wrong =
      text.find('\n') == std::string::npos ? wrong_with_spec(text) : wrong_with_file(text);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}
