// The driver's linker and the modules of code that a program loads. Code does not run, but its
// variables have a place in the device's memory, to which a program may copy.
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/driver/ptx.h"
#include "harness/virtual_gpu/stand_ins/interface.h"
#include "harness/virtual_gpu/stand_ins/kernels.h"

using namespace headroom::virtual_gpu;

namespace {

// The linker's result begins with this line. What was linked follows, in PTX.
constexpr std::string_view kLinked = "// linked by the virtual GPU\n";

// A module's memory of variables, where each of them lies in it, and the results of its kernels.
struct Module {
  struct Place {
    std::size_t offset = 0, bytes = 0;
  };
  char* begin = nullptr;
  std::map<std::string, Place> places;
  std::map<std::string, std::vector<unsigned>> results;
};

constexpr std::size_t kAlignment = 256;  // XLA asks for it

std::mutex code_mutex;
std::map<const void*, std::string> linked;  // by link state
std::map<const void*, Module> modules;

bool is_text(const char* code) { return code != nullptr && (code[0] == '/' || code[0] == '.'); }

bool is_elf(const char* code) {
  return code != nullptr && std::memcmp(code, ELFMAG, SELFMAG) == 0 && code[EI_CLASS] == ELFCLASS64;
}

// Returns the variables that a compiled image lists in its table of symbols.
std::vector<Variable> variables_of_elf(const char* image) {
  std::vector<Variable> result;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header->e_shnum) continue;
    const char* names = image + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(image + sections[i].sh_offset);
    for (std::size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k)
      if (ELF64_ST_TYPE(symbols[k].st_info) == STT_OBJECT)
        result.push_back({names + symbols[k].st_name, symbols[k].st_size});
  }
  return result;
}

int load(void** module, const char* code) {
  *module = new_object();
  std::vector<Variable> found;
  if (is_elf(code)) found = variables_of_elf(code);
  Module made;
  if (is_text(code)) {
    found = variables_of_ptx(code);
    made.results = results_of_ptx(code);
  }
  std::size_t bytes = 0;
  for (const Variable& variable : found) {
    if (variable.bytes == 0) continue;
    if (variable.bytes > SIZE_MAX / 2 - bytes) return kInvalidValue;
    made.places[variable.name] = {bytes, variable.bytes};
    bytes += (variable.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (!is_elf(code) && !is_text(code)) return kSuccess;  // its variables are not known
  if (bytes > 0) {
    made.begin = static_cast<char*>(allocate_uncharged(bytes, current_device()));
    if (made.begin == nullptr) return kOutOfMemory;
  }
  const std::lock_guard lock(code_mutex);
  modules[*module] = std::move(made);
  return kSuccess;
}

int variable_in(void** address, std::size_t* bytes, const void* module, const char* name,
                const char* function) {
  const std::lock_guard lock(code_mutex);
  const auto of_module = modules.find(module);
  if (of_module == modules.end()) stop_at_unsupported("libcuda", function);
  const Module& in = of_module->second;
  const auto found = in.places.find(name);
  if (found == in.places.end()) return kNotFound;
  if (address != nullptr) *address = in.begin + found->second.offset;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return kSuccess;
}

int function_in(void** function, const void* module, const char* name) {
  *function = new_object();
  std::vector<unsigned> results;
  {
    const std::lock_guard lock(code_mutex);
    if (const auto found = modules.find(module); found != modules.end())
      if (const auto known = found->second.results.find(name); known != found->second.results.end())
        results = known->second;
  }
  note_function(*function, name, std::move(results));
  return kSuccess;
}

}  // namespace

HEADROOM_EXPORT int cuLinkCreate_v2(unsigned, int*, void**, void** state) {
  *state = new_handle();
  const std::lock_guard lock(code_mutex);
  linked[*state] = kLinked;
  return kSuccess;
}
HEADROOM_EXPORT int cuLinkAddData_v2(void* state, int, const char* code, std::size_t bytes,
                                     const char*, unsigned, int*, void**) {
  if (!is_text(code)) return kSuccess;
  const std::lock_guard lock(code_mutex);
  linked[state].append(code, strnlen(code, bytes)).append("\n");
  return kSuccess;
}
HEADROOM_EXPORT int cuLinkComplete(void* state, const void** code, std::size_t* bytes) {
  const std::lock_guard lock(code_mutex);
  const std::string& made = linked[state];
  *code = made.c_str();
  *bytes = made.size() + 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuLinkDestroy(void* state) {
  const std::lock_guard lock(code_mutex);
  linked.erase(state);
  return kSuccess;
}

HEADROOM_EXPORT int cuModuleLoadData(void** module, const char* code) { return load(module, code); }
HEADROOM_EXPORT int cuModuleLoadDataEx(void** module, const char* code, unsigned, int*, void**) {
  return load(module, code);
}
HEADROOM_EXPORT int cuModuleLoadFatBinary(void** module, const char* code) {
  return load(module, code);
}
HEADROOM_EXPORT int cuModuleLoad(void** module, const char*) { return load(module, nullptr); }
HEADROOM_EXPORT int cuModuleUnload(void* module) {
  const std::lock_guard lock(code_mutex);
  const auto found = modules.find(module);
  if (found == modules.end()) return kSuccess;
  if (found->second.begin != nullptr) release_uncharged(found->second.begin);
  modules.erase(found);
  return kSuccess;
}
HEADROOM_EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  return function_in(function, module, name);
}
HEADROOM_EXPORT int cuModuleGetGlobal_v2(void** address, std::size_t* bytes, void* module,
                                         const char* name) {
  return variable_in(address, bytes, module, name, "cuModuleGetGlobal_v2");
}

// Libraries of code that a program loads at run time, as cuDNN does. A kernel serves as its own
// function, and a library as its own module.

HEADROOM_EXPORT int cuLibraryLoadData(void** library, const char* code) {
  return load(library, code);
}
HEADROOM_EXPORT int cuLibraryLoadFromFile(void** library) { return load(library, nullptr); }
HEADROOM_EXPORT int cuLibraryGetModule(void** module, void* library) {
  *module = library;
  return kSuccess;
}
HEADROOM_EXPORT int cuLibraryGetGlobal(void** address, std::size_t* bytes, void* library,
                                       const char* name) {
  return variable_in(address, bytes, library, name, "cuLibraryGetGlobal");
}
HEADROOM_EXPORT int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return function_in(kernel, library, name);
}
HEADROOM_EXPORT int cuLibraryGetKernelCount(unsigned* count, void*) {
  *count = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuLibraryEnumerateKernels(void** kernels, unsigned count, void*) {
  for (unsigned i = 0; i < count; ++i) kernels[i] = new_object();
  return kSuccess;
}
