#include <fmt/core.h>

int main() { fmt::print("headroom\n"); }
