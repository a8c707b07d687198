// Programmatic dependent launch: thread blocks of a launch may start before the previous launch of
// the stream has ended (Launch::early). The names are those of CUTLASS.
#pragma once

/// When all thread blocks have called this or have ended, thread blocks of the next launch may
/// start. PTX ISA: "griddepcontrol.launch_dependents".
__device__ __forceinline__ void launch_dependent_grids() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Waits until all previous launches have ended and their stores are visible. PTX ISA:
/// "griddepcontrol.wait".
__device__ __forceinline__ void wait_on_dependent_grids() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
