// Stands in for cuDNN. Since version 9.8 cuDNN can choose algorithms for a described card
// (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Calls of its backend interface therefore go to the user's
// own library, named by HEADROOM_GPU_CUDNN, with that description in place of a handle, and
// convolutions get the workspaces that cuDNN's heuristics choose for the card. Without the library
// every plan has no workspace, and the report says that workspaces are unknown.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/cudnn/workspaces.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;
using std::int64_t;

namespace {

// Numbers from cuDNN's documentation (cudnn_graph.h).
constexpr int kEngine = 2, kEngineHeuristics = 4, kExecutionPlan = 5, kKnobChoice = 7;
constexpr int kDeviceProperties = 38;
constexpr int kHandleType = 0, kInt64Type = 3, kDescriptorType = 15, kCharType = 24;
constexpr int kKnobTypeType = 9;
constexpr int kConfigEngine = 300, kKnobChoices = 302;
constexpr int kPlanConfig = 401, kKnobType = 600, kKnobValue = 601, kEngineNumber = 1301;
constexpr int kHeuristicsResults = 202, kHeuristicsDevice = 204;
constexpr int kPlanWorkspace = 402, kPlanDevice = 407;
constexpr int kPackWorkspace = 1003;
constexpr int kEngineDevice = 1307;
constexpr int kDevicePropertiesJson = 2702;
constexpr int kMostKnobs = 32;  // of an engine
constexpr int kVersionWithoutLibrary = 92'600;
constexpr std::size_t kFirstWithoutCard = 90'800;  // 9.8

using Create = int(int, void**);
using OnDescriptor = int(void*);
using Set = int(void*, int, int, int64_t, const void*);
using Get = int(void*, int, int, int64_t, int64_t*, void*);

// Returns cuDNN's description of the card, or null if this version refuses it.
void* describe_card(void* cudnn) {
  auto* create = reinterpret_cast<Create*>(dlsym(cudnn, "cudnnBackendCreateDescriptor"));
  auto* set = reinterpret_cast<Set*>(dlsym(cudnn, "cudnnBackendSetAttribute"));
  auto* finalize = reinterpret_cast<OnDescriptor*>(dlsym(cudnn, "cudnnBackendFinalize"));
  if (create == nullptr || set == nullptr || finalize == nullptr) return nullptr;
  void* descriptor = nullptr;
  if (create(kDeviceProperties, &descriptor) != kSuccess) return nullptr;
  const Card& c = card();
  // The keys are those that OpenXLA's cudnn_device_props.cc writes, plus the width of the memory
  // bus, which cuDNN 9.28 requires (it names a missing key in its log).
  char json[2048];
  std::snprintf(
      json, sizeof json,
      "{\"deviceVer\":%d,\"multiProcessorCount\":%d,\"warpSize\":32,"
      "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
      "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,"
      "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"regsPerBlock\":65536,"
      "\"totalGlobalMem\":%zu,\"smClockRateKHz\":%d,\"l2CacheSize\":%d,"
      "\"maxBlockSize\":[1024,1024,64],\"memClockRateKHz\":%d,\"memoryBusWidth\":%d,"
      "\"maxGridSize\":[2147483647,65535,65535],\"supportCoopLaunch\":1,\"pciDeviceId\":0,"
      "\"isTccDriver\":0,\"cudaDeviceId\":0,\"driverVer\":%d,\"deviceName\":\"%s\"}",
      c.compute_major * 100 + c.compute_minor * 10, c.multiprocessors,
      c.shared_bytes_per_block_optin, c.blocks_per_multiprocessor, c.threads_per_multiprocessor,
      c.memory_bytes, c.clock_khz, c.l2_cache_bytes, c.memory_clock_khz, c.memory_bus_bits,
      c.driver_version, c.name.c_str());
  const auto length = static_cast<int64_t>(std::strlen(json) + 1);
  const bool accepted =
      set(descriptor, kDevicePropertiesJson, kCharType, length, json) == kSuccess &&
      finalize(descriptor) == kSuccess;
  return accepted ? descriptor : nullptr;
}

struct Library {
  void* handle = nullptr;  // null where cuDNN cannot be asked
  void* card = nullptr;    // its description
};

Library open_library() {
  const char* path = std::getenv("HEADROOM_GPU_CUDNN");
  if (path == nullptr) return {};
  void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    std::fprintf(stderr, "headroom gpu: no cuDNN: %s\n", dlerror());
    return {};
  }
  // Older versions choose algorithms only for a card that is present.
  const auto version = reinterpret_cast<std::size_t (*)()>(dlsym(opened, "cudnnGetVersion"));
  if (version == nullptr || version() < kFirstWithoutCard) return {};
  void* description = describe_card(opened);
  if (description == nullptr) {
    std::fprintf(
        stderr,
        "headroom gpu: cuDNN %zu refuses the description of the card, so the workspaces of "
        "convolutions are not known; an older version of the package nvidia-cudnn may know them\n",
        version());
    return {};
  }
  return {opened, description};
}

const Library& library() {
  static const Library result = open_library();
  return result;
}

template <typename Function>
Function* real(const char* name) {
  if (library().handle == nullptr) return nullptr;
  return reinterpret_cast<Function*>(dlsym(library().handle, name));
}

std::mutex backend_mutex;
std::map<void*, int> type_of_descriptor;

// A descriptor of the library for one question.
class Answer {
 public:
  explicit Answer(int type = kKnobChoice) {
    real<Create>("cudnnBackendCreateDescriptor")(type, &descriptor_);
  }
  ~Answer() { real<OnDescriptor>("cudnnBackendDestroyDescriptor")(descriptor_); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  void* descriptor() const { return descriptor_; }

 private:
  void* descriptor_ = nullptr;
};

Engine engine_of(void* configuration) {
  const auto get = real<Get>("cudnnBackendGetAttribute");
  Engine result;
  int64_t count = 0;
  const Answer engine(kEngine);
  void* asked = engine.descriptor();
  if (get(configuration, kConfigEngine, kDescriptorType, 1, &count, &asked) != kSuccess)
    return result;
  result.version = real<std::size_t()>("cudnnGetVersion")();
  get(asked, kEngineNumber, kInt64Type, 1, &count, &result.number);
  const std::array<Answer, kMostKnobs> choices;
  std::array<void*, kMostKnobs> pointers;
  std::transform(choices.begin(), choices.end(), pointers.begin(),
                 [](const Answer& choice) { return choice.descriptor(); });
  int64_t knobs = 0;
  get(configuration, kKnobChoices, kDescriptorType, kMostKnobs, &knobs, pointers.data());
  for (int64_t i = 0; i < knobs; ++i) {
    int knob = -1;
    int64_t value = 0;
    get(pointers[i], kKnobType, kKnobTypeType, 1, &count, &knob);
    get(pointers[i], kKnobValue, kInt64Type, 1, &count, &value);
    result.knobs[knob] = value;
  }
  return result;
}

}  // namespace

HEADROOM_EXPORT int cudnnBackendCreateDescriptor(int type, void** out) {
  auto* create = real<Create>("cudnnBackendCreateDescriptor");
  if (create == nullptr) {
    *out = new_object();
    return kSuccess;
  }
  const int status = create(type, out);
  const std::lock_guard lock(backend_mutex);
  if (status == kSuccess) type_of_descriptor[*out] = type;
  return status;
}
HEADROOM_EXPORT int cudnnBackendDestroyDescriptor(void* descriptor) {
  auto* destroy = real<OnDescriptor>("cudnnBackendDestroyDescriptor");
  if (destroy == nullptr) {
    delete_object(descriptor);
    return kSuccess;
  }
  {
    const std::lock_guard lock(backend_mutex);
    type_of_descriptor.erase(descriptor);
  }
  forget_attributes(descriptor);
  return destroy(descriptor);
}
HEADROOM_EXPORT int cudnnBackendSetAttribute(void* descriptor, int name, int type, int64_t count,
                                             const void* values) {
  if (name == kPackWorkspace && values != nullptr && count == 1)
    note_workspace(*static_cast<void* const*>(values));
  auto* set = real<Set>("cudnnBackendSetAttribute");
  if (set == nullptr || type == kHandleType) return kSuccess;  // there is no handle behind it
  note_attribute(descriptor, name, count, values);
  if (name == kPlanConfig && values != nullptr && count == 1)
    note_engine(descriptor, engine_of(*static_cast<void* const*>(values)));
  return set(descriptor, name, type, count, values);
}
HEADROOM_EXPORT int cudnnBackendFinalize(void* descriptor) {
  auto* finalize = real<OnDescriptor>("cudnnBackendFinalize");
  if (finalize == nullptr) return kSuccess;
  int type = -1;
  {
    const std::lock_guard lock(backend_mutex);
    if (const auto found = type_of_descriptor.find(descriptor); found != type_of_descriptor.end())
      type = found->second;
  }
  const int attribute = type == kEngineHeuristics ? kHeuristicsDevice
                        : type == kExecutionPlan  ? kPlanDevice
                        : type == kEngine         ? kEngineDevice
                                                  : -1;
  if (attribute != -1)
    real<Set>("cudnnBackendSetAttribute")(descriptor, attribute, kDescriptorType, 1,
                                          &library().card);
  return finalize(descriptor);
}
HEADROOM_EXPORT int cudnnBackendGetAttribute(void* descriptor, int name, int type, int64_t wanted,
                                             int64_t* count, void* values) {
  if (auto* get = real<Get>("cudnnBackendGetAttribute")) {
    const int status = get(descriptor, name, type, wanted, count, values);
    if (status != kSuccess || values == nullptr || wanted < 1) return status;
    if (name == kHeuristicsResults)
      note_choices(descriptor, count != nullptr ? std::min(wanted, *count) : wanted,
                   static_cast<void**>(values));
    auto* bytes = static_cast<int64_t*>(values);
    if (name == kPlanWorkspace) {
      const int64_t described = std::exchange(*bytes, workspace_of_plan(descriptor, *bytes));
      if (*bytes != described)
        note_size_estimated("cudnnBackendGetAttribute (workspace on the card)");
    }
    return status;
  }
  // There is one plan, without a workspace and without knobs.
  const bool one = name != kKnobChoices && (type == kDescriptorType || type == kInt64Type);
  if (count != nullptr) *count = one ? 1 : 0;
  if (name == kPlanWorkspace) note_size_not_known("cudnnBackendGetAttribute (workspace)");
  if (type == kInt64Type && values != nullptr && wanted > 0)
    std::memset(values, 0, sizeof(int64_t));
  return kSuccess;
}
HEADROOM_EXPORT int cudnnBackendExecute(void*, void*, void*) {
  ++record().kernel_launches;
  return kSuccess;
}
// Batch normalisation needs no memory beside its tensors, except in persistent mode, where it may.
namespace {
constexpr int kPersistentMode = 2;
int batch_normalisation_size(const char* function, int mode, std::size_t* bytes) {
  if (mode == kPersistentMode) note_size_not_known(function);
  *bytes = 0;
  return kSuccess;
}
}  // namespace
HEADROOM_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int mode, int,
                                                                             void*, void*, void*,
                                                                             void*, void*,
                                                                             std::size_t* bytes) {
  return batch_normalisation_size(__func__, mode, bytes);
}
HEADROOM_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int mode, int, void*,
                                                                      void*, void*, void*, void*,
                                                                      void*, void*,
                                                                      std::size_t* bytes) {
  return batch_normalisation_size(__func__, mode, bytes);
}
HEADROOM_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int mode, int,
                                                                         void*, void*,
                                                                         std::size_t* bytes) {
  return batch_normalisation_size(__func__, mode, bytes);
}
// TensorFlow 2.19 and JAX 0.5 describe convolutions in cuDNN's older way, and read back whether
// they have allowed tensor cores.
namespace {
std::map<void*, int> math_of_convolution;
}  // namespace
HEADROOM_EXPORT int cudnnSetConvolutionMathType(void* convolution, int math) {
  const std::lock_guard lock(backend_mutex);
  math_of_convolution[convolution] = math;
  return kSuccess;
}
HEADROOM_EXPORT int cudnnGetConvolutionMathType(void* convolution, int* math) {
  const std::lock_guard lock(backend_mutex);
  *math = math_of_convolution[convolution];
  return kSuccess;
}
HEADROOM_EXPORT int cudnnGetStream(void*, void** stream) {
  *stream = nullptr;  // the default stream, since nothing waits for another stream
  return kSuccess;
}
HEADROOM_EXPORT std::size_t cudnnGetVersion() {
  auto* version = real<std::size_t()>("cudnnGetVersion");
  return version != nullptr ? version() : kVersionWithoutLibrary;
}
HEADROOM_EXPORT std::size_t cudnnGetCudartVersion() { return 13'020; }
HEADROOM_EXPORT int cudnnGetProperty(int which, int* value) {
  const auto version = static_cast<int>(cudnnGetVersion());
  *value = which == 0 ? version / 10'000 : which == 1 ? version / 100 % 100 : version % 100;
  return kSuccess;
}
HEADROOM_EXPORT const char* cudnnGetErrorString(int status) {
  auto* text = real<const char*(int)>("cudnnGetErrorString");
  return text != nullptr ? text(status) : "CUDNN_STATUS_SUCCESS";
}
HEADROOM_EXPORT void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (auto* last = real<void(char*, std::size_t)>("cudnnGetLastErrorString"))
    last(message, size);
  else if (size > 0)
    *message = '\0';
}
