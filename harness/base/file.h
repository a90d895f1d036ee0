// Reads and writes whole files, and bounds the time of reading one; errors name the file.
#pragma once

#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// Throws InputError naming the file and the system's reason.
std::string read_file(const std::filesystem::path& file);
// The first line without its line end; nullopt if the file is empty, not there or not ours to read.
// Throws InputError if reading fails for another reason.
std::optional<std::string> read_first_line(const std::filesystem::path& file);

// Waits until what was written to an open file is on its disk. False, with errno, if that fails.
bool on_disk(int descriptor);

// Replaces the file atomically: after a crash it holds either the old or the new text.
void write_file_durably(const std::filesystem::path& file, std::string_view text);

// A minute, and a second for each 128 KiB of the file; as importers have (harness/trace/formats).
std::chrono::nanoseconds longest_reading(const std::filesystem::path& file);

// While it lives, the processor time of this thread is bounded by `limit`. Beyond it the program
// ends with exit status 2 and a message that names the file: parsers cannot be interrupted in any
// other way. Temporary files are then left. Has no effect where the system has no such timer.
class ReadingTime {
 public:
  explicit ReadingTime(const std::filesystem::path& file)
      : ReadingTime(file, longest_reading(file)) {}
  ReadingTime(const std::filesystem::path& file, std::chrono::nanoseconds limit);
  ~ReadingTime();
  ReadingTime(const ReadingTime&) = delete;
  ReadingTime& operator=(const ReadingTime&) = delete;

 private:
  std::string message_;
  timer_t timer_ = nullptr;
  bool started_ = false;
};

}  // namespace headroom
