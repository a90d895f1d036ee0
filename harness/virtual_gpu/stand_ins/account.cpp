#include "harness/virtual_gpu/stand_ins/account.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "harness/virtual_gpu/stand_ins/interface.h"

namespace headroom::virtual_gpu {
namespace {

std::atomic<Record*> current{nullptr};
std::mutex charges_mutex;

Record* map_record() {
  int file = -1;
  if (const char* directory = std::getenv("HEADROOM_GPU_RECORDS")) {
    const std::string path =
        std::string(directory) + "/process-" + std::to_string(getpid()) + ".record";
    file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0 && ftruncate(file, sizeof(Record)) != 0) {
      close(file);
      file = -1;
    }
  }
  void* memory = mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE,
                      file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    std::perror("headroom gpu: no memory for this process's record");
    std::_Exit(70);
  }
  // Every counter starts at zero, because the pages of a new file or mapping are zero.
  auto* result = static_cast<Record*>(memory);
  result->pid = getpid();
  result->magic = kRecordMagic;
  return result;
}

void note(NameList& list, const char* name) {
  const std::lock_guard lock(charges_mutex);
  const std::uint32_t count = std::min<std::uint32_t>(list.count, kMaxNames);
  for (std::uint32_t i = 0; i < count; ++i)
    if (std::strncmp(list.names[i], name, kNameBytes - 1) == 0) {
      ++list.calls[i];
      return;
    }
  if (count < kMaxNames) {
    std::strncpy(list.names[count], name, kNameBytes - 1);
    list.calls[count] = 1;
  }
  ++list.count;
}

// A forked child shares the parent's mapping, so it must use a record of its own.
void forget_record() { current = nullptr; }

// A process that has ended holds no memory, even if its parent has not waited for it yet.
bool is_running(int pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re");
  if (file == nullptr) return false;
  char text[512] = "";
  const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = '\0';
  const char* state = std::strrchr(text, ')');  // the name before it may contain anything
  return state != nullptr && std::strncmp(state, ") Z", 3) != 0;
}

}  // namespace

Record& record() {
  if (Record* known = current.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(charges_mutex);
  if (Record* known = current.load(std::memory_order_acquire)) return *known;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_record);
  (void)registered;
  Record* made = map_record();
  current.store(made, std::memory_order_release);
  return *made;
}

std::vector<Holder> holders_of(int card) {
  std::vector<Holder> result;
  const char* place = std::getenv("HEADROOM_GPU_RECORDS");
  DIR* directory = place == nullptr ? nullptr : opendir(place);
  if (directory == nullptr) return result;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (!name.ends_with(".record")) continue;
    const int file = open((std::string(place) + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const auto record = std::make_unique<Record>();
    constexpr ssize_t kHead = offsetof(Record, sizes_not_known);
    const bool whole = ::read(file, record.get(), kHead) == kHead;
    close(file);
    const int pid = static_cast<int>(record->pid);
    const std::uint64_t bytes = record->devices[card].used_bytes;
    if (whole && record->magic == kRecordMagic && bytes > 0 && is_running(pid))
      result.push_back({pid, bytes});
  }
  closedir(directory);
  return result;
}

CardsLock::CardsLock() {
  const char* place = std::getenv("HEADROOM_GPU_RECORDS");
  if (place == nullptr) return;
  file_ = open((std::string(place) + "/cards.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  while (fcntl(file_, F_SETLKW, &whole) != 0 && errno == EINTR) {
  }
}

CardsLock::~CardsLock() {
  if (file_ >= 0) close(file_);
}

void note_size_not_known(const char* function) { note(record().sizes_not_known, function); }

void note_size_estimated(const char* function) { note(record().sizes_estimated, function); }

void stop_at_unsupported(const char* library, const char* function) {
  note(record().not_supported, function);
  std::fprintf(stderr,
               "headroom gpu: the program called %s (%s), which the virtual GPU does not have.\n"
               "Please report the function's name and the framework's version.\n",
               function, library);
  std::abort();
}

namespace {
struct WorkspaceUse {
  std::int64_t time_us = 0;
  std::uint64_t address = 0;
};
constexpr std::size_t kMostWorkspaceUses = 1u << 20;  // the latest are kept
std::mutex workspaces_mutex;
std::deque<WorkspaceUse> workspace_uses;
}  // namespace

void note_workspace(const void* address) {
  if (address == nullptr) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(workspaces_mutex);
  if (workspace_uses.size() == kMostWorkspaceUses) workspace_uses.pop_front();
  workspace_uses.push_back({std::chrono::floor<std::chrono::microseconds>(now).count(),
                            reinterpret_cast<std::uintptr_t>(address)});
}

// Stores when the program gave which workspaces to a library, the earliest first, for at most
// `room` times. Returns how many there are.
HEADROOM_EXPORT std::size_t headroom_gpu_workspaces(std::int64_t* times_us,
                                                    std::uint64_t* addresses, std::size_t room) {
  const std::lock_guard lock(workspaces_mutex);
  for (std::size_t i = 0; i < std::min(room, workspace_uses.size()); ++i) {
    times_us[i] = workspace_uses[i].time_us;
    addresses[i] = workspace_uses[i].address;
  }
  return workspace_uses.size();
}

}  // namespace headroom::virtual_gpu
