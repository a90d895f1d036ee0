// What every op and kernel includes, read once. Files name what they use all the same: builds with
// -Db_pch=false and the linters go without this one.
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
