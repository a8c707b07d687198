# SPDX-License-Identifier: MIT
"""scripts/ptxas_report.py: reading reports, the compiler launcher, merging, --forbid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path

import support

import files
import ptxas_report

REPORT = textwrap.dedent(
    """\
    ptxas info    : 0 bytes gmem
    ptxas info    : Compiling entry function 'fa_a' for 'sm_80'
    ptxas info    : Function properties for fa_a
        40 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads
    ptxas info    : Used 168 registers, used 1 barriers, 256 bytes smem, 360 bytes cmem[0]
    ptxas info    : Compile time = 1.0 ms
    ptxas info    : Function properties for helper
        99 bytes stack frame, 77 bytes spill stores, 0 bytes spill loads
    ptxas info    : (C7519) warpgroup.arrive is injected in around line 64 in function 'fa_b'
    ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored
    ptxas info    : 0 bytes gmem
    ptxas info    : Compiling entry function 'fa_a' for 'sm_90a'
    ptxas info    : Function properties for fa_a
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 90 registers, used 1 barriers
    ptxas info    : Compiling entry function 'fa_b' for 'sm_90a'
    ptxas info    : Function properties for fa_b
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 240 registers, used 1 barriers
    """
)


class WriteTest(support.FolderTest):
    """What every script writes its --out with."""

    def test_links_and_modes_stay(self) -> None:
        real, link = self.folder / "real.json", self.folder / "link.json"
        real.write_text("old")
        real.chmod(0o640)
        link.symlink_to("real.json")
        files.require_writable(link)
        files.write_atomically(link, "new")
        self.assertTrue(link.is_symlink())
        self.assertEqual((real.read_text(), real.stat().st_mode & 0o777), ("new", 0o640))
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"real.json", "link.json"})

    def test_what_is_no_regular_file_stays_what_it_is(self) -> None:
        os.mkfifo(self.folder / "pipe")
        (self.folder / "null").symlink_to("/dev/null")
        for name in ("pipe", "null", "."):
            with self.assertRaisesRegex(OSError, "not a regular file"):
                files.require_writable(self.folder / name)
            with self.assertRaisesRegex(OSError, "not a regular file"):
                files.write_atomically(self.folder / name, "x")
        self.assertTrue((self.folder / "pipe").is_fifo() and Path("/dev/null").is_char_device())
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"pipe", "null"})

    def test_scripts_find_out_before_they_measure(self) -> None:
        for script in ("sass.py", "sanitize.py", "profile_kernels.py", "../harness/vm/foreign/run.py"):
            with self.subTest(script=script):
                option = "--json" if script.endswith("run.py") else "--out"
                path = support.REPOSITORY / "scripts" / script
                words = [sys.executable, path, option, "/dev/full"]
                done = subprocess.run(words, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (3, ""))
                self.assertRegex(done.stderr, r"error: .*not a regular file|cannot write /dev/full")
        self.assertTrue(Path("/dev/full").is_char_device())


class ParseTest(unittest.TestCase):
    def setUp(self) -> None:
        self.entries = {(e.entry, e.arch): e for e in ptxas_report.parse_report(REPORT, "x.cu")}

    def test_every_entry_of_every_architecture(self) -> None:
        self.assertEqual(
            set(self.entries), {("fa_a", "sm_80"), ("fa_a", "sm_90a"), ("fa_b", "sm_90a")}
        )

    def test_numbers_are_the_entry_s_not_those_of_a_device_function(self) -> None:
        entry = self.entries["fa_a", "sm_80"]
        self.assertEqual((entry.registers, entry.stack, entry.static_shared), (168, 40, 256))
        self.assertEqual((entry.spill_stores, entry.spill_loads), (8, 16))
        self.assertEqual(self.entries["fa_a", "sm_90a"].static_shared, 0)

    def test_messages_go_to_the_entry_they_name_in_their_own_section(self) -> None:
        self.assertEqual(self.entries["fa_a", "sm_80"].warnings, [])
        self.assertEqual(len(self.entries["fa_b", "sm_90a"].warnings), 2)

    def test_a_message_without_a_name_goes_to_the_whole_section(self) -> None:
        (warning,) = self.entries["fa_a", "sm_90a"].warnings
        self.assertTrue(warning.startswith("C7508: "))

    def test_empty_report(self) -> None:
        self.assertEqual(ptxas_report.parse_report(""), [])


class LauncherTest(support.FolderTest):
    """The compiler is a Python program that prints what nvcc would."""

    def compile(self, stderr: str, code: int = 0, output: bool = True) -> tuple[int, str]:
        source = self.folder / "kernel.cu"
        source.touch()
        self.object = self.folder / "kernel.cu.o"
        program = f"import sys; open(sys.argv[1], 'w').close(); sys.stderr.write({stderr!r}); "
        program += f"sys.exit({code})"
        words = [sys.executable, "-c", program, self.object, "-c", source]
        words += ["-o", self.object] if output else []
        exit_code, _, err = support.run_main(ptxas_report.main, "compile", *words)
        return exit_code, err

    @property
    def report(self) -> Path:
        return self.object.with_name("kernel.cu.o.ptxas")

    def test_report_is_kept_and_only_other_lines_are_shown(self) -> None:
        code, err = self.compile("kernel.cu(3): warning: x\n" + REPORT)
        self.assertEqual(code, 0)
        self.assertIn("kernel.cu(3): warning: x", err)
        self.assertIn("(C7519)", err)
        self.assertNotIn("gmem", err)
        self.assertNotIn("spill", err)
        self.assertEqual(len(ptxas_report.parse_report(self.report.read_text())), 3)

    def test_exit_code_is_preserved_and_a_failed_compilation_leaves_no_report(self) -> None:
        self.compile(REPORT)
        code, err = self.compile("error: no\n", code=3)
        self.assertEqual((code, err), (3, "error: no\n"))
        self.assertFalse(self.report.exists())

    def test_without_an_output_option(self) -> None:
        code, _ = self.compile(REPORT, output=False)
        self.assertEqual(code, 0)
        self.assertFalse(self.report.exists())

    def test_missing_compiler(self) -> None:
        code, _, err = support.run_main(ptxas_report.main, "compile", "/nonexistent/nvcc")
        self.assertEqual(code, 2)
        self.assertIn("cannot run /nonexistent/nvcc", err)


# What nvcc does with the options that matter here. NAMES: the PTX that it keeps.
COMPILER = """
import pathlib, sys
words = sys.argv[1:]
if "-ptx" in words:
    pathlib.Path(words[words.index("-o") + 1]).write_text("alone " + " ".join(words))
for word in words:
    if word.startswith("--keep-dir="):
        for name in NAMES:
            (pathlib.Path(word.partition("=")[2]) / name).write_text("kept " + name)
sys.exit(CODE)
"""


class PtxTest(support.FolderTest):
    def compile(self, *names: str, code: int = 0) -> int:
        program = COMPILER.replace("NAMES", repr(names)).replace("CODE", str(code))
        object_file = self.folder / "kernel.cu.o"
        compiler = self.folder / "nvcc.py"
        compiler.write_text(program)
        words = [sys.executable, compiler, "-O3", "--generate-code=arch=compute_80,code=[sm_80]"]
        words += ["-Xptxas=-v", "-MD", "-MT", object_file, "-MF", f"{object_file}.d"]
        words += ["-c", self.folder / "kernel.cu", "-o", object_file]
        out = self.folder / "ptx"
        found, _, _ = support.run_main(ptxas_report.main, "compile", "--ptx", out, "80", *words)
        self.ptx = out / "kernel.ptx"
        self.assertFalse(object_file.with_name("kernel.cu.o.keep").exists())
        return found

    def test_the_ptx_of_the_object_is_kept(self) -> None:
        self.assertEqual(self.compile("kernel.ptx", "kernel.cubin"), 0)
        self.assertEqual(self.ptx.read_text(), "kept kernel.ptx")

    def test_of_several_architectures_it_is_the_wanted_one(self) -> None:
        self.compile("kernel.compute_90.ptx", "kernel.compute_80.ptx")
        self.assertEqual(self.ptx.read_text(), "kept kernel.compute_80.ptx")

    def test_it_is_compiled_alone_after_an_object_from_a_cache(self) -> None:
        self.compile()
        made = self.folder / "kernel.cu.o.keep/kernel.ptx"
        wanted = f"alone -O3 -c {self.folder}/kernel.cu -ptx -arch=compute_80 -o {made}"
        self.assertEqual(self.ptx.read_text(), wanted)

    def test_sources_are_named_without_detours(self) -> None:
        line = '\t.file\t1 "/a/build/../kernels/b.cu"\n.loc 1 2 3\n'
        wanted = '\t.file\t1 "/a/kernels/b.cu"\n.loc 1 2 3\n'
        self.assertEqual(ptxas_report.with_plain_paths(line), wanted)

    def test_a_failed_compilation_leaves_none(self) -> None:
        self.assertEqual(self.compile("kernel.ptx", code=3), 3)
        self.assertFalse(self.ptx.exists())


class MergeTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "sub").mkdir()
        self.object = self.folder / "sub" / "a.cu.o"
        self.object.touch()
        self.object.with_name("a.cu.o.ptxas").write_text(REPORT)
        self.out = self.folder / "ptxas.json"

    def merge(self, *options: str) -> tuple[int, str]:
        code, _, err = support.run_main(ptxas_report.main, "merge", self.folder, self.out, *options)
        return code, err

    def test_list_of_entries(self) -> None:
        self.assertEqual(self.merge(), (0, ""))
        entries = json.loads(self.out.read_text())
        self.assertEqual(len(entries), 3)
        fields = "entry arch registers stack spill_stores spill_loads static_shared file warnings"
        self.assertEqual(set(entries[0]), set(fields.split()))

    def test_report_of_a_deleted_object_is_ignored(self) -> None:
        self.object.unlink()
        self.merge()
        self.assertEqual(json.loads(self.out.read_text()), [])

    def test_report_of_a_deleted_source_is_ignored(self) -> None:
        report = self.object.with_name("a.cu.o.ptxas")
        report.write_text(f"# source: {self.folder / 'gone.cu'}\n{REPORT}")
        self.merge()
        self.assertEqual(json.loads(self.out.read_text()), [])

    def test_forbidden_spills_and_messages_fail(self) -> None:
        code, err = self.merge("--forbid", "^fa_a")
        self.assertEqual(code, 1)
        self.assertIn("fa_a (sm_80): 24 bytes of spills", err)
        self.assertIn("fa_a (sm_90a): C7508", err)
        self.assertTrue(self.out.exists())
        self.assertEqual(self.merge("--forbid", "^fa_c")[0], 0)

    def test_bad_input(self) -> None:
        self.assertEqual(self.merge("--forbid", "(")[0], 2)
        code, _, err = support.run_main(ptxas_report.main, "merge", self.folder / "none", self.out)
        self.assertEqual(code, 2)
        self.assertIn("is not a folder", err)


if __name__ == "__main__":
    unittest.main()
