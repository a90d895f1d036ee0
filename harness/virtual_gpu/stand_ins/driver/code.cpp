// The driver's linker and the modules of code that a program loads. Code does not run, but its
// variables have a place in the device's memory, to which a program may copy.
#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"
#include "harness/virtual_gpu/stand_ins/kernels.h"

using namespace headroom::virtual_gpu;

namespace {

// The linker's result begins with this line. Declarations of variables follow, in PTX.
constexpr std::string_view kLinked = "// linked by the virtual GPU\n";

// A module's memory of variables, and where each of them lies in it.
struct Variables {
  struct Place {
    std::size_t offset = 0, bytes = 0;
  };
  char* begin = nullptr;
  std::map<std::string, Place> places;
};

constexpr std::size_t kAlignment = 256;  // XLA asks for it

std::mutex mutex;
std::map<const void*, std::string> linked;   // by link state
std::map<const void*, Variables> variables;  // by module

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Returns the declarations of variables in PTX, each from .global or .const up to its value.
std::vector<std::string_view> declarations(std::string_view code) {
  std::vector<std::string_view> found;
  for (const std::string_view space : {".global", ".const"})
    for (std::size_t at = code.find(space); at != code.npos; at = code.find(space, at + 1)) {
      // ".global" within "ld.global.f32" is part of an instruction.
      const std::size_t behind = at + space.size();
      if ((at > 0 && !is_space(code[at - 1])) || behind >= code.size() || !is_space(code[behind]))
        continue;
      const std::size_t end = code.find_first_of(";={", at);
      if (end != code.npos) found.push_back(code.substr(at, end - at));
    }
  return found;
}

struct Variable {
  std::string name;
  std::size_t bytes = 0;  // 0 where the declaration does not say
};

// Reads ".global .align 128 .v2 .f32 name[4][8]". A type ends with its number of bits.
Variable variable_of(std::string_view declaration) {
  Variable result;
  std::size_t bytes = 1;
  const std::size_t bracket = std::min(declaration.find('['), declaration.size());
  std::string word;
  bool is_alignment = false;
  const auto end_of_word = [&] {
    if (word.empty()) return;
    const std::size_t digits = word.find_last_not_of("0123456789") + 1;
    const auto number = digits < word.size() ? std::stoull(word.substr(digits).substr(0, 9)) : 0;
    if (is_alignment)
      is_alignment = false;
    else if (word == ".align")
      is_alignment = true;
    else if (word[0] != '.')
      result.name = word;
    else if (word.starts_with(".v"))
      bytes *= number;
    else if (number >= 8)
      bytes *= number / 8;
    word.clear();
  };
  for (const char c : declaration.substr(0, bracket))
    if (is_space(c))
      end_of_word();
    else
      word += c;
  end_of_word();
  for (std::size_t at = bracket; at < declaration.size(); at = declaration.find('[', at + 1)) {
    const std::size_t length = std::strtoull(declaration.data() + at + 1, nullptr, 10);
    if (__builtin_mul_overflow(bytes, length, &bytes)) bytes = 0;
  }
  result.bytes = bytes;
  return result;
}

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
  if (is_text(code))
    for (const std::string_view declaration : declarations(code))
      found.push_back(variable_of(declaration));
  Variables made;
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
  const std::lock_guard lock(mutex);
  variables[*module] = std::move(made);
  return kSuccess;
}

int variable_in(void** address, std::size_t* bytes, const void* module, const char* name,
                const char* function) {
  const std::lock_guard lock(mutex);
  const auto of_module = variables.find(module);
  if (of_module == variables.end()) stop_at_unsupported("libcuda", function);
  const auto& [begin, places] = of_module->second;
  const auto found = places.find(name);
  if (found == places.end()) return kNotFound;
  if (address != nullptr) *address = begin + found->second.offset;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return kSuccess;
}

}  // namespace

HEADROOM_EXPORT int cuLinkCreate_v2(unsigned, int*, void**, void** state) {
  *state = new_handle();
  const std::lock_guard lock(mutex);
  linked[*state] = kLinked;
  return kSuccess;
}
HEADROOM_EXPORT int cuLinkAddData_v2(void* state, int, const char* code, std::size_t bytes,
                                     const char*, unsigned, int*, void**) {
  if (!is_text(code)) return kSuccess;
  const std::lock_guard lock(mutex);
  for (const std::string_view declaration : declarations({code, strnlen(code, bytes)}))
    linked[state].append(declaration).append(";\n");
  return kSuccess;
}
HEADROOM_EXPORT int cuLinkComplete(void* state, const void** code, std::size_t* bytes) {
  const std::lock_guard lock(mutex);
  const std::string& made = linked[state];
  *code = made.c_str();
  *bytes = made.size() + 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuLinkDestroy(void* state) {
  const std::lock_guard lock(mutex);
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
  const std::lock_guard lock(mutex);
  const auto found = variables.find(module);
  if (found == variables.end()) return kSuccess;
  if (found->second.begin != nullptr) release_uncharged(found->second.begin);
  variables.erase(found);
  return kSuccess;
}
HEADROOM_EXPORT int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = new_object();
  note_function(*function, name);
  return kSuccess;
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
HEADROOM_EXPORT int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = new_object();
  return kSuccess;
}
HEADROOM_EXPORT int cuLibraryGetKernelCount(unsigned* count, void*) {
  *count = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuLibraryEnumerateKernels(void** kernels, unsigned count, void*) {
  for (unsigned i = 0; i < count; ++i) kernels[i] = new_object();
  return kSuccess;
}
