#include "harness/device/cuda/load_module.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "harness/device/cuda/cuda_build.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kWhyNotBuilt = HEADROOM_WHY_NO_CUDA;
constexpr const char* kPathVariable = "HEADROOM_CUDA_MODULE";

class CudaModulePlaces : public ::testing::Test {
 protected:
  CudaModulePlaces() {
    if (const char* value = std::getenv(kPathVariable)) kept_ = value;
    unsetenv(kPathVariable);
  }
  ~CudaModulePlaces() override {
    unsetenv(kPathVariable);
    if (!kept_.empty()) setenv(kPathVariable, kept_.c_str(), 1);
  }

 private:
  std::string kept_;
};

TEST_F(CudaModulePlaces, begin_beside_the_program_and_go_on_in_its_build_directory) {
  if (!std::filesystem::exists(HEADROOM_BUILD_ROOT)) GTEST_SKIP() << "packed: it is not built here";
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_THAT(cuda_module_places(),
              ElementsAre(here / "libheadroom_cuda.so",
                          std::filesystem::path(HEADROOM_BUILD_ROOT) / HEADROOM_CUDA_MODULE_BUILT));
}

TEST_F(CudaModulePlaces, are_what_the_environment_says_and_nothing_else) {
  setenv(kPathVariable, "/elsewhere/module.so", 1);
  EXPECT_THAT(cuda_module_places(), ElementsAre("/elsewhere/module.so"));
}

TEST(CudaModule, that_is_missing_is_a_reason_with_the_mend) {
  const LoadedCudaModule loaded = load_cuda_module({"/nowhere/one.so", "/nowhere/two.so"});
  EXPECT_EQ(loaded.module, nullptr);
  if (kWhyNotBuilt.empty()) {
    EXPECT_THAT(loaded.problem, AllOf(HasSubstr("libheadroom_cuda.so"),
                                      HasSubstr("HEADROOM_CUDA_MODULE"), Not(HasSubstr("/"))));
  } else {
    EXPECT_THAT(loaded.problem,
                AllOf(HasSubstr(std::string(kWhyNotBuilt)), HasSubstr("needs the CUDA toolkit")));
  }
}

TEST(CudaModule, that_is_no_library_is_a_reason_that_names_the_file) {
  const std::string path = ::testing::TempDir() + "not_a_library.so";
  std::ofstream(path) << "text";
  const LoadedCudaModule loaded = load_cuda_module({path});
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.problem, AllOf(HasSubstr("does not load"), HasSubstr("not_a_library.so"),
                                    Not(HasSubstr(path))));
  std::filesystem::remove(path);
}

TEST(CudaModule, that_is_another_library_is_a_reason_that_names_the_file) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::getenv), &libc), 0);
  const LoadedCudaModule loaded = load_cuda_module({libc.dli_fname});
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_THAT(loaded.problem,
              AllOf(HasSubstr("is not a CUDA module of Headroom"),
                    HasSubstr(std::filesystem::path(libc.dli_fname).filename().string())));
}

TEST(CudaModule, of_this_build_loads_without_a_driver) {
  if (!kWhyNotBuilt.empty()) GTEST_SKIP() << "this build has no CUDA module: " << kWhyNotBuilt;
  const LoadedCudaModule loaded = load_cuda_module(cuda_module_places());
  EXPECT_THAT(loaded.problem, IsEmpty());
  ASSERT_NE(loaded.module, nullptr);
  EXPECT_EQ(loaded.module->version, HEADROOM_VERSION);
}

}  // namespace
}  // namespace headroom
