// A stand-in for Seastar's header of this name: see README.md.
#pragma once
#include <seastar/core/future.hh>
