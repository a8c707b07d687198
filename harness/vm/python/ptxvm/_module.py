# SPDX-License-Identifier: MIT
"""Modules, their kernels, and launches."""

from __future__ import annotations

import ctypes
import json
import os
import stat
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ptxvm import _native
from ptxvm._arguments import Arguments, Parameter, extents, whole
from ptxvm._errors import Diagnostic, KernelFault, LaunchError, ParseError, diagnostic
from ptxvm._interrupt import interruptible
from ptxvm._result import Result, result_of

Extents = int | Sequence[int]
LONGEST_FILE = 32 << 20  # bytes; what is longer the machine refuses


def require_text(what: str, value: object) -> None:
    """Refuses what is not a string."""
    if not isinstance(value, str):
        raise TypeError(f"{what} has {value!r}; allowed: str")


def refuse_copy(value: Module | Kernel) -> NoReturn:
    """For pickle and copy: an address means nothing elsewhere."""
    name = type(value).__name__
    raise TypeError(f"a {name} cannot be pickled or copied; pass its PTX, and parse it there")


class Module:
    """A PTX module, read and checked. Module.parse and Module.load make one."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        weakref.finalize(self, _native.library().ptxvm_module_free, handle)
        data = json.loads(_native.take_text(_native.call("ptxvm_module_describe", handle)))
        self.file: str = data["file"]
        self.target: str = data["target"]  # "sm_90a"
        self.version: float = data["version"] / 10  # of the PTX ISA
        self.kernels = {each["name"]: Kernel(self, each) for each in data["kernels"]}
        #: __device__ and __constant__ variables, by their names in the source.
        self.variables = {each["readable"]: Variable(self, each) for each in data["variables"]}

    @classmethod
    def parse(cls, text: str | bytes, file: str = "module.ptx") -> Module:
        """Reads PTX text; `file` is its name in messages. Raises ParseError."""
        if not isinstance(text, (str, bytes, bytearray)):
            raise TypeError(f"text is a {type(text).__name__}; allowed: str or bytes")
        require_text("file", file)
        # What UTF-8 cannot hold is no PTX, and the machine says where it stands.
        data = text.encode(errors="replace") if isinstance(text, str) else bytes(text)
        name = file.encode(errors="replace")
        return cls(_native.call("ptxvm_module_parse", data, len(data), name))

    @classmethod
    def load(cls, path: str | Path) -> Module:
        """Reads a file of PTX. Raises ParseError, and OSError where it cannot be read."""
        # What is no file may be without an end, or nobody may write to it.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ParseError(f"{path}: not a regular file")
        with open(path, "rb") as file:
            return cls.parse(file.read(LONGEST_FILE + 1), str(path))

    def __reduce__(self) -> NoReturn:
        refuse_copy(self)

    def kernel(self, name: str = "") -> Kernel:
        """The one kernel that `name` may mean: its name, its demangled name, or a part of either;
        the only one where there is no name. KeyError that lists those there are."""
        require_text("name", name)
        try:
            address = _native.call("ptxvm_module_find", self._handle, name.encode())
        except LaunchError as error:
            names = ", ".join(self.kernels) or "none"
            what = f"no kernel '{name}'" if not self.matches(name) else f"several '{name}'"
            raise KeyError(f"{what} in {self.file}; there are: {names}") from error
        return self.kernels[_native.take_text(address)]

    def matches(self, name: str) -> bool:
        """Whether a kernel has this in its name."""
        return any(name in each.name or name in each.readable for each in self.kernels.values())

    def __repr__(self) -> str:
        return f"<Module {self.file}: {', '.join(self.kernels) or 'no kernels'} for {self.target}>"


class Variable:
    """A __device__ or __constant__ variable. It keeps its value from launch to launch."""

    def __init__(self, module: Module, data: Mapping[str, Any]) -> None:
        self.name: str = data["name"]  # in the PTX
        self.space: str = data["space"]  # "global" or "const"
        self.bytes = np.zeros(data["bytes"], np.uint8)
        address = _native.call(
            "ptxvm_module_variable",
            module._handle,
            self.name.encode(),
            self.bytes.ctypes.data,
            self.bytes.nbytes,
        )
        _native.take_text(address)

    def get(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """The value as an array of this type, a view: writing to it changes the variable."""
        return self.bytes.view(dtype)

    def set(self, value: ArrayLike) -> None:
        """Gives it the bytes of an array of the same size."""
        given = np.ascontiguousarray(value)
        if given.nbytes != self.bytes.nbytes:
            raise ValueError(
                f"{self.name} has {self.bytes.nbytes} bytes, got {given.nbytes} of {given.dtype}"
            )
        self.bytes[:] = given.reshape(-1).view(np.uint8)

    def to_c(self) -> _native.Buffer:
        return _native.Buffer(
            self.name.encode(), self.bytes.ctypes.data, self.bytes.nbytes, self.space == "global"
        )


class Kernel:
    """One .entry of a module."""

    def __init__(self, module: Module, data: Mapping[str, Any]) -> None:
        self.module = module
        self.name: str = data["name"]
        self.readable: str = data["readable"]  # demangled
        self.parameters = tuple(Parameter(**each) for each in data["parameters"])
        self.shared_bytes: int = data["shared_bytes"]  # static
        self.uses_dynamic_shared: bool = data["uses_dynamic_shared"]
        self.local_bytes: int = data["local_bytes"]  # of a thread
        self.instructions: int = data["instructions"]
        #: .maxntid, .reqntid and .reqnctapercluster as (x, y, z), or None.
        self.max_threads = extents_of(data["max_threads"])
        self.required_threads = extents_of(data["required_threads"])
        self.required_cluster = extents_of(data["required_cluster"])
        #: What is wrong with its text; other kernels of the module run all the same.
        self.errors = tuple(diagnostic(each) for each in data["errors"])
        #: Valid PTX that the machine does not run; a launch is refused while there is any.
        self.unsupported: tuple[Diagnostic, ...] = tuple(
            diagnostic(each) for each in data["unsupported"]
        )

    def __reduce__(self) -> NoReturn:
        refuse_copy(self)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{each.name}: {each.type}" for each in self.parameters)
        return f"<Kernel {self.name}({parameters})>"

    def launch(
        self,
        *arguments: object,
        grid: Extents,
        block: Extents,
        cluster: Extents = 1,
        shared: int = 0,
        checkers: bool = True,
        reverse: bool = False,
        trace: Sequence[int] = (),
        threads: int = 0,
        max_warp_steps: int = 0,
        ignore: Sequence[str] = (),
        comments: bool = True,
        cooperative: bool = False,
        card: str = "",
        registers: int = 0,
        max_steps: int = 0,
        global_races: bool = False,
        max_local: int = 0,
    ) -> Result:
        """Runs the kernel to its end.

        arguments  one a parameter: a numpy array is a pointer to its memory, a Python number takes
                   the parameter's type, a numpy scalar or bytes must have its size, a TensorMap is
                   128 bytes. Writable arrays hold what the kernel wrote afterwards.
        grid, block, cluster, shared   as between <<< and >>>: extents x, y, z; shared in bytes
        checkers   watch for races, copies never waited for, reads of what was never written
        reverse    warps and blocks take their turns last to first
        trace      linear indices of blocks whose timeline is recorded
        threads    of the host; 0: all cores
        max_warp_steps  instructions of one warp before it is stopped; 0: 2**32
        ignore     checkers whose findings are left out: "race", "uninitialised", ...
        cooperative  all blocks are resident at once, and may wait for each other
        card       what the launch is for: "h200", ...: how many blocks it holds at once
        registers  of a thread, as ptxas says: they limit those blocks
        max_steps  instructions of all warps before the launch is stopped
        max_local  bytes of local memory of all threads that run at once; 0: 512 MB
        global_races  look for races between blocks in global memory too; slow
        comments   leave out what a comment in the source excuses: // ptxvm: ignore race

        Raises LaunchError when the launch is refused or changes a read-only array, and
        KernelFault when the kernel fails. Ctrl-C ends it. In all of these cases arrays are as they
        were.
        """
        for what, several in (("trace", trace), ("ignore", ignore)):
            if not isinstance(several, Collection):
                raise TypeError(f"{what} has {several!r}; allowed: a sequence")
        limited = [("trace", index) for index in trace]
        for what, value in (
            *limited,
            ("shared", shared),
            ("threads", threads),
            ("max_warp_steps", max_warp_steps),
            ("registers", registers),
            ("max_steps", max_steps),
        ):
            whole(what, value)
        whole("max_local", max_local, most=2**63)
        require_text("card", card)
        for each in ignore:
            require_text("ignore", each)
        converted = Arguments(self.parameters, arguments)
        config = _native.LaunchConfig(
            grid=extents("grid", grid),
            block=extents("block", block),
            cluster=extents("cluster", cluster),
            shared_bytes=shared,
            threads=threads,
            reversed=reverse,
            checkers=checkers,
            traced=len(trace),
            trace_blocks=(ctypes.c_uint32 * len(trace))(*trace),
            max_warp_steps=max_warp_steps,
            ignored=(ctypes.c_char_p * len(ignore))(*(each.encode() for each in ignore)),
            n_ignored=len(ignore),
            comments=comments,
            card=card.encode() or None,
            max_steps=max_steps,
            cooperative=cooperative,
            global_races=global_races,
            registers=registers,
            max_local_bytes=max_local,
        )
        return self._run(config, converted)

    def _run(self, config: _native.LaunchConfig, arguments: Arguments) -> Result:
        timeline = ctypes.c_void_p()
        variables = [each.to_c() for each in self.module.variables.values()]
        memory = _native.Memory(
            arguments.c_buffers(),
            (_native.Buffer * len(variables))(*variables),
            len(arguments.buffers),
            len(variables),
        )

        def launch(stop: ctypes.c_uint8) -> int:
            config.stop = ctypes.pointer(stop)
            return _native.call(
                "ptxvm_launch",
                self.module._handle,
                self.name.encode(),
                config,
                memory,
                arguments.c_arguments(),
                len(arguments.list),
                timeline,
            )

        text = interruptible(launch)
        data = json.loads(_native.take_text(text))
        trace = _native.take_text(timeline.value)
        if data["fault"]:
            raise KernelFault(data["fault"])
        return result_of(data, self.module.file, trace)


def extents_of(data: Sequence[int] | None) -> tuple[int, int, int] | None:
    return None if data is None else (data[0], data[1], data[2])
