// main() of every Catch2 test program: here with version 2, in the library Catch2Main with version 3.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
