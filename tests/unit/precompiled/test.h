// What nearly every test includes, read once. Files name what they use all the same: builds with
// -Db_pch=false go without this one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
