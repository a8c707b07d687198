// Programmatic dependent launch: a launch that its plan lets begin early may have thread blocks on
// the SMs before the launch ahead of it in the stream has ended.
#pragma once

/// Once all thread blocks have called this or have ended, those of the next launch may begin. PTX
/// ISA: "griddepcontrol.launch_dependents".
__device__ __forceinline__ void launch_next() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Waits until all launches ahead have ended and what they wrote can be read. PTX ISA:
/// "griddepcontrol.wait".
__device__ __forceinline__ void wait_for_last() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
