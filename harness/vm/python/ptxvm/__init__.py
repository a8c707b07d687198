# SPDX-License-Identifier: MIT
"""A virtual machine for PTX: runs any kernel's PTX on the CPU, counts what it does, finds races.

  import numpy as np, ptxvm
  module = ptxvm.Module.parse(text)               # what nvcc -ptx wrote, or Module.load(path)
  y = np.zeros(64, np.float32)
  result = module.kernel("scale").launch(y, 2.0, grid=2, block=32)
  print(result)                                   # counts; result.findings, result.by_line()

  module = ptxvm.nvcc("kernels.cu")               # compiles first
  ptxvm.triton.run(kernel, grid, x, y, n, BLOCK=1024)       # import ptxvm.triton
  ptxvm.numba.run(function, grid, block, x, y)              # import ptxvm.numba

Arrays are the kernel's global memory: copied in before the launch, and out of it afterwards where
they are writable. A view has bounds of its own. A text that is not PTX, a launch that is refused
and a kernel that fails raise Error with the machine's diagnostics.
"""

from __future__ import annotations

from ptxvm._arguments import Parameter, Struct, TensorMap
from ptxvm._compile import nvcc
from ptxvm._errors import Diagnostic, Error, KernelFault, LaunchError, ParseError
from ptxvm._module import Kernel, Module, Variable
from ptxvm._result import Counts, Finding, Hint, Line, Result

__all__ = [
    "Counts",
    "Diagnostic",
    "Error",
    "Finding",
    "Hint",
    "Kernel",
    "KernelFault",
    "LaunchError",
    "Line",
    "Module",
    "Parameter",
    "ParseError",
    "Result",
    "Struct",
    "TensorMap",
    "Variable",
    "nvcc",
]
