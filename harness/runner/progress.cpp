#include "harness/runner/progress.h"

#include <fmt/color.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/text.h"

namespace headroom {
namespace {

constexpr int kBarWidth = 30;

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// A write error on standard error must not end a run.
void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressStyle parse_progress_style(const std::string& text) {
  if (text == "auto") return ProgressStyle::automatic;
  if (text == "bar") return ProgressStyle::bar;
  if (text == "plain") return ProgressStyle::plain;
  if (text == "none") return ProgressStyle::none;
  throw_unknown_name("--progress", text, {"auto", "bar", "plain", "none"});
}

Progress::Progress(ProgressStyle style) : style_(style) {
  if (style_ == ProgressStyle::automatic)
    style_ = ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar : ProgressStyle::plain;
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = no_colour == nullptr || *no_colour == '\0';
}

Progress::~Progress() { erase_bar(); }

void Progress::erase_bar() {
  if (bar_drawn_) put("\r\x1b[K");
  bar_drawn_ = false;
}

void Progress::update(int done, std::chrono::seconds left, std::string_view now) {
  if (style_ == ProgressStyle::none) return;
  const std::string counters =
      fmt::format("{}/{} samples, about {} left", done, total_, format_duration(left));
  const std::string shown = printable(now);
  if (style_ == ProgressStyle::plain) return put(fmt::format("{}: {}\n", counters, shown));
  const int filled = total_ == 0 ? kBarWidth : std::min(kBarWidth, kBarWidth * done / total_);
  const std::string full(static_cast<std::size_t>(filled), '#');
  const std::string empty(static_cast<std::size_t>(kBarWidth - filled), '-');
  std::string line = fmt::format(" {}  {}", counters, shown);
  const int room = terminal_width() - kBarWidth - 3;
  if (static_cast<int>(line.size()) > room)
    line.resize(static_cast<std::size_t>(std::max(0, room)));
  erase_bar();
  put(fmt::format("[{}{}]{}",
                  colour_ ? fmt::format(fmt::fg(fmt::terminal_color::green), "{}", full) : full,
                  empty, line));
  bar_drawn_ = true;
}

void Progress::note(std::string_view line) {
  if (style_ == ProgressStyle::none) return;
  erase_bar();
  put(fmt::format("{}\n", printable_lines(line)));
}

std::string format_duration(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  if (seconds >= 3600) return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
  if (seconds >= 60) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} s", seconds);
}

}  // namespace headroom
