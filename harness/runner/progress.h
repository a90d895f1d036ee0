// Shows the progress of a run: a bar with the time left on a terminal, plain counters elsewhere.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace headroom {

enum class ProgressStyle { automatic, bar, plain, none };
// Parses "auto", "bar", "plain" or "none". Throws InputError for anything else.
ProgressStyle parse_progress_style(const std::string& text);

class Progress {
 public:
  explicit Progress(ProgressStyle style);  // writes to standard error
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add_to_total(int samples) { total_ += samples; }
  // `done` samples are recorded; `left` is an estimate.
  void update(int done, std::chrono::seconds left, std::string_view now);
  // Prints a permanent line.
  void note(std::string_view line);

 private:
  void erase_bar();

  ProgressStyle style_;
  int total_ = 0;
  bool colour_;
  bool bar_drawn_ = false;
};

// "1 h 05 min", "3 min 20 s", "4 s".
std::string format_duration(std::chrono::seconds duration);

}  // namespace headroom
