// Headers that every op and kernel includes, compiled once. Files include what they use anyway,
// because builds with -Db_pch=false and the linters do without this one.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
