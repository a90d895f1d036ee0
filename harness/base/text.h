// Text that others wrote: taken apart, and made fit for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Without the blanks and line ends at both its ends.
std::string_view trimmed(std::string_view text);

// The parts between separators: "a,b," has three, the last of them empty.
std::vector<std::string_view> split(std::string_view text, char separator);

// A name from a file or a process as one line that a terminal shows and does not obey: control
// characters, characters that reverse the direction of writing and bytes that are no UTF-8 become
// "\x1b" and the like.
std::string printable(std::string_view name);

// The same for text of several lines: line ends and tabulators stay.
std::string printable_lines(std::string_view text);

// Whether text from a file may name a file here: one part of a path, printable, of at most 200
// bytes.
bool is_file_name(std::string_view text);

}  // namespace headroom
