// Precompiled header of what nearly every test includes. Files still include what they use, because
// builds with -Db_pch=false do not have it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
