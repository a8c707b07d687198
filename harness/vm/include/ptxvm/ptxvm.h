// SPDX-License-Identifier: MIT
// The whole machine: modules, launches, counts, findings, traces.
#pragma once

#include "ptxvm/card.h"
#include "ptxvm/diagnostic.h"
#include "ptxvm/findings.h"
#include "ptxvm/hints.h"
#include "ptxvm/json.h"
#include "ptxvm/launch.h"
#include "ptxvm/module.h"
#include "ptxvm/observer.h"
#include "ptxvm/races.h"
#include "ptxvm/report.h"
#include "ptxvm/trace.h"
