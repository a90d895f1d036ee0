// Helpers for untrusted text: splitting it, and making it safe to print on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// `text` without leading and trailing blanks and line ends.
std::string_view trimmed(std::string_view text);

// The parts between separators: "a,b," has three, the last of them empty.
std::vector<std::string_view> split(std::string_view text, char separator);

// Makes a name from a file or a process safe to print on one line of a terminal: control
// characters, characters that change the writing direction and bytes that are not UTF-8 become
// "\x1b" and the like.
std::string printable(std::string_view name);

// The same for text of several lines: line ends and tabs are kept.
std::string printable_lines(std::string_view text);

// UTF-8 `text` without its middle if it has more than `most` bytes: its begin and its end, about
// half of `most` each, and between them how many bytes were left out.
std::string shortened(std::string_view text, std::size_t most);

// Whether text from a file is safe to use as a file name here: a single path component, printable,
// at most 200 bytes.
bool is_file_name(std::string_view text);

}  // namespace headroom
