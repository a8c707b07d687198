// SPDX-License-Identifier: MIT
// Catch2, as the tests of the machine include it.
#pragma once
#include "harness/vm/tests/catch.h"
